"""One cell: written, read back, and never a formula."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.errors import InputError
from tinydec.evidence.cells import cell_text, cell_value, escape_text, unescape_text
from tinydec.evidence.schema import KINDS, Column

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\u00a0=1",
    "\u200b=1",
    "\ufeff=1",
    "\x00=1",
    " \t -2+3",
    "\uff1d1",
    "\ttext",
    "\rtext",
    "-",
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def column(kind: Any, optional: bool = False) -> Column:
    return Column("c", kind, "a test", optional)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("float", 0.1, "0.1"),
        ("float", np.float32(0.1), "0.10000000149011612"),
        ("float", np.float16(0.1), "0.0999755859375"),
        ("float", 16.0, "16.0"),
        ("float", -0.0, "-0.0"),
        ("float", 1e-5, "1e-05"),
        ("float", math.inf, "inf"),
        ("float", -math.inf, "-inf"),
        ("float", math.nan, "nan"),
        ("int", -3, "-3"),
        ("int", np.int64(7), "7"),
        ("int", 2**127, "170141183460469231731687303715884105728"),
        ("bool", True, "true"),
        ("bool", np.bool_(False), "false"),
        ("numbers", (1, 2, 3, 2), "(1, 2, 3, 2)"),
        ("numbers", (3,), "(3,)"),
        ("numbers", (), "()"),
        ("text", "A B", "A B"),
        ("text", "", "'"),
        ("text", "'tis", "''tis"),
        ("text", "=1+1", "'=1+1"),
    ],
)
def test_spelling_is_the_declared_one(kind: Any, value: Any, text: str) -> None:
    assert cell_text(value, column(kind)) == text
    back = cell_value(text, column(kind))
    kinds = {"float": float, "int": int, "bool": bool, "numbers": tuple, "text": str}
    assert isinstance(back, kinds[kind])
    assert back == value or text == "nan"


@given(value=st.floats(width=64))
def test_float64_comes_back_bit_for_bit(value: float) -> None:
    back = cell_value(cell_text(value, column("float")), column("float"))
    assert np.float64(back).tobytes() == np.float64(value).tobytes() or math.isnan(value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@given(bits=st.integers(0, 2**32 - 1))
def test_narrow_float_comes_back_after_casting(dtype: Any, bits: int) -> None:
    unsigned = {2: np.uint16, 4: np.uint32}[np.dtype(dtype).itemsize]
    value = np.array(bits % 2 ** (8 * np.dtype(dtype).itemsize), unsigned).view(dtype)[()]
    back = dtype(cell_value(cell_text(value, column("float")), column("float")))
    assert back.tobytes() == value.tobytes() or np.isnan(value)


@given(value=TEXTS)
def test_every_text_comes_back_and_none_starts_like_a_formula(value: str) -> None:
    written = cell_text(value, column("text"))
    assert cell_value(written, column("text")) == value
    assert written.strip()[:1] not in set(SIGNS)
    assert written[:1] not in ("", "\t", "\r", "\n")


@pytest.mark.parametrize("value", FORMULAS)
def test_formula_is_escaped_reversibly(value: str) -> None:
    assert escape_text(value) == "'" + value
    assert unescape_text(escape_text(value)) == value


@pytest.mark.parametrize("value", ["A = B", "1-2", "a@b", "x\t=1", "<bos>", "(1, 2)", " A"])
def test_harmless_text_is_written_as_it_is(value: str) -> None:
    assert escape_text(value) == value


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_an_empty_cell_where_it_is_allowed(kind: Any) -> None:
    assert cell_text(None, column(kind, optional=True)) == ""
    assert cell_value("", column(kind, optional=True)) is None
    with pytest.raises(InputError, match="expected"):
        cell_text(None, column(kind))
    with pytest.raises(InputError, match="found ''"):
        cell_value("", column(kind))


def test_empty_text_and_nothing_stay_apart() -> None:
    optional = column("text", optional=True)
    assert [cell_text(value, optional) for value in (None, "")] == ["", "'"]
    assert [cell_value(cell, optional) for cell in ("", "'")] == [None, ""]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", True),
        ("int", 1.0),
        ("int", "1"),
        pytest.param("int", 10**5000, id="int-of-5001-digits"),
        ("float", 1),
        ("float", True),
        ("float", "1.0"),
        ("bool", 1),
        ("bool", "true"),
        ("text", 1),
        ("text", b"a"),
        ("text", "\ud800"),
        ("numbers", [1, 2]),
        ("numbers", (1, True)),
        ("numbers", (1.0,)),
    ],
)
def test_value_of_another_kind_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(InputError, match="column c: expected") as caught:
        cell_text(value, column(kind))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("int", "1.0"),
        ("int", "01"),
        ("int", "-0"),
        ("int", "1_0"),
        ("int", " 1"),
        ("int", "\u0661"),
        ("float", "1_0.0"),
        ("float", "abc"),
        ("float", "1.0 "),
        ("float", "Infinity"),
        ("float", "."),
        ("bool", "True"),
        ("bool", "1"),
        ("numbers", "(1)"),
        ("numbers", "1, 2"),
        ("numbers", "(1,2)"),
        ("numbers", "(1, 2"),
        ("text", "=1"),
        ("text", "'A"),
        ("text", "\t"),
    ],
)
def test_text_that_the_writer_never_writes_is_refused(kind: Any, cell: str) -> None:
    with pytest.raises(InputError, match="expected"):
        cell_value(cell, column(kind))
