"""Layouts refuse fields that contradict each other; bytes per dtype and byte counts in words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tinydec.errors import InputError
from tinydec.memory import AttentionLayout, LayoutError, dense_layout, dtype_bytes, format_bytes

GROUPED = AttentionLayout("tiny", "gqa", 3, 0, None, 6, 2, 5, None, 101, "float16", True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("float64", 8), ("float32", 4), ("float16", 2), ("bfloat16", 2), ("float8", 1), ("int8", 1)],
)
def test_dtype_bytes(name: str, expected: int) -> None:
    assert dtype_bytes(name) == expected
    if hasattr(np, name):
        assert np.dtype(name).itemsize == expected


@pytest.mark.parametrize("name", [None, 4, "half", "Float32", []])
def test_an_unknown_dtype_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match=r"dtype: expected one of float64, .*, int8, found "):
        dtype_bytes(name)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (256, "256 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2**20 - 1, "1 MiB"),
        (2**31, "2 GiB"),
        (3 * 2**30 + 2**27, "3.13 GiB"),  # 3.125, half up
        (100 * 2**20, "100 MiB"),
        (3 * 2**70, "3072 EiB"),
    ],
)
def test_format_bytes(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"attention": "linear"}, "attention"),
        ({"kv_heads": 4}, "kv_heads"),  # does not divide 6
        ({"kv_heads": None}, "kv_heads"),
        ({"kv_heads": 0}, "kv_heads"),
        ({"head_dim": None}, "head_dim"),
        ({"head_dim": 2.0}, "head_dim"),
        ({"latent_dim": 3}, "latent_dim"),
        ({"window": 3}, "window"),
        ({"window_layers": 1}, "window_layers"),
        ({"global_layers": 0}, "global_layers"),
        ({"global_layers": True}, "global_layers"),
        ({"max_context": 0}, "max_context"),
        ({"attention": "mha"}, "kv_heads"),
        ({"attention": "mqa"}, "kv_heads"),
        ({"attention": "mla"}, "latent_dim"),
        ({"attention": "mla", "latent_dim": 3}, "kv_heads"),
        ({"attention": "mla", "latent_dim": 3, "kv_heads": None}, "head_dim"),
        ({"attention": "sliding"}, "window_layers"),
        ({"attention": "sliding", "window_layers": 1}, "window"),
        ({"dtype": "float"}, "dtype"),
        ({"verified": "yes"}, "verified"),
        ({"name": " "}, "name"),
    ],
)
def test_contradicting_layouts_name_the_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(LayoutError) as caught:
        replace(GROUPED, **change)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert isinstance(caught.value, InputError)
    assert "\n" not in str(caught.value)


def test_layouts_are_immutable() -> None:
    with pytest.raises(AttributeError):
        GROUPED.kv_heads = 1  # type: ignore[misc]


def test_scalars_per_position_by_hand() -> None:
    # 2 x 2 kv heads x 5 wide; the latent alone; two heads of 2 in the frozen model
    assert GROUPED.scalars_per_position == 20
    latent = AttentionLayout("l", "mla", 5, 0, None, 7, None, None, 13, 101, "bfloat16", True)
    assert latent.scalars_per_position == 13
    frozen = dense_layout("f", layers=2, heads=2, head_dim=2, context=4, dtype="float32")
    assert (frozen.scalars_per_position, frozen.layers, frozen.attention) == (8, 2, "mha")
