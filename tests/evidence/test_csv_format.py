"""Whole CSV files: their bytes, the way back, and what is refused."""

import csv
import io
import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.errors import InputError
from tinydec.evidence.csv_format import CsvError, frame, read_csv, schema_of, write_csv
from tinydec.evidence.schema import KINDS, Column, TableSchema, flag, integer, number, numbers, text

SCHEMA = TableSchema(
    "things.csv",
    "Things",
    (
        text("name", "a name"),
        integer("count", "how many", optional=True),
        number("size", "how large"),
        flag("whole", "whether whole"),
        numbers("shape", "axes"),
    ),
)
ROWS = [
    ("A, B", 3, 0.1, True, (1, 2)),
    ('say "x"', None, math.inf, False, (5,)),
    ("=SUM(A1)", 0, -2.5e-7, True, ()),
]
#: Written out by hand from the rules in the docstrings of csv_format and cells.
BYTES = (
    b"name,count,size,whole,shape\n"
    b'"A, B",3,0.1,true,"(1, 2)"\n'
    b'"say ""x""",,inf,false,"(5,)"\n'
    b"'=SUM(A1),0,-2.5e-07,true,()\n"
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "int": st.integers(-(2**130), 2**130),
    "float": st.floats(),
    "bool": st.booleans(),
    "numbers": st.lists(st.integers()).map(tuple),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[TableSchema, list[tuple[Any, ...]]]:
    kinds = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=5))
    columns = tuple(Column(f"c{i}", kind, "any", opt) for i, (kind, opt) in enumerate(kinds))
    cells = [
        st.none() | VALUES[column.kind] if column.optional else VALUES[column.kind]
        for column in columns
    ]
    rows = draw(st.lists(st.tuples(*cells), max_size=5))
    return TableSchema("any.csv", "Any", columns), rows


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)


def cells(table: pd.DataFrame) -> list[list[Any]]:
    return [table[name].tolist() for name in table.columns]


def test_bytes_are_those_of_the_rules() -> None:
    assert write_csv(frame(SCHEMA, ROWS), SCHEMA) == BYTES


def test_reading_gives_back_every_value_and_type() -> None:
    found = read_csv(BYTES, SCHEMA)
    assert list(found.itertuples(index=False, name=None)) == ROWS
    assert [type(value) for value in found["count"]] == [int, type(None), int]
    pd.testing.assert_frame_equal(found, frame(SCHEMA, ROWS))


@given(drawn=tables())
def test_every_table_comes_back_exactly(
    drawn: tuple[TableSchema, list[tuple[Any, ...]]],
) -> None:
    schema, rows = drawn
    data = write_csv(frame(schema, rows), schema)
    found = cells(read_csv(data, schema))
    expected = [[row[i] for row in rows] for i in range(len(schema.columns))]
    for one, other in zip(expected, found, strict=True):
        assert len(one) == len(other)
        assert all(map(same, one, other))
    assert write_csv(read_csv(data, schema), schema) == data


@given(drawn=tables())
def test_another_csv_reader_finds_the_same_cells_and_no_formula(
    drawn: tuple[TableSchema, list[tuple[Any, ...]]],
) -> None:
    schema, rows = drawn
    data = write_csv(frame(schema, rows), schema)
    assert not data.startswith(b"\xef\xbb\xbf")
    assert data.endswith(b"\n")
    parsed = list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert [len(row) for row in parsed] == [len(schema.columns)] * (len(rows) + 1)
    for row in parsed[1:]:
        for column, cell in zip(schema.columns, row, strict=True):
            if column.kind == "text":
                assert cell.strip()[:1] not in set("=+-@")


def test_pandas_reads_the_same_numbers() -> None:
    values = [0.1, 1 / 3, 2.0**-1074, 1.7976931348623157e308, 5e-324, -0.0]
    schema = TableSchema("n.csv", "Numbers", (number("x", "any"),))
    data = write_csv(frame(schema, [(value,) for value in values]), schema)
    found = pd.read_csv(io.BytesIO(data))["x"].tolist()
    assert [value.hex() for value in found] == [value.hex() for value in values]


def test_table_without_rows_keeps_its_header() -> None:
    data = write_csv(frame(SCHEMA, []), SCHEMA)
    assert data == b"name,count,size,whole,shape\n"
    assert len(read_csv(data, SCHEMA)) == 0


def test_single_empty_cell_is_a_row() -> None:
    schema = TableSchema("one.csv", "One", (integer("n", "any", optional=True),))
    data = write_csv(frame(schema, [(None,), (3,)]), schema)
    assert data == b'n\n""\n3\n'
    assert read_csv(data, schema)["n"].tolist() == [None, 3]


@pytest.mark.parametrize("columns", [["b", "a"], ["a"], ["a", "b", "c"]])
def test_other_columns_than_declared_are_not_written(columns: list[str]) -> None:
    schema = TableSchema("t.csv", "T", (integer("a", "any"), integer("b", "any")))
    with pytest.raises(InputError, match=r"t.csv: expected the columns a, b, found"):
        write_csv(pd.DataFrame({name: [1] for name in columns}), schema)


def test_cell_of_another_kind_is_not_written() -> None:
    schema = TableSchema("t.csv", "T", (integer("a", "any"),))
    with pytest.raises(InputError, match=r"t.csv, column a: expected an integer, found 1.5"):
        write_csv(pd.DataFrame({"a": [1.5]}), schema)


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"\xff\xfe", (None, None), "expected a UTF-8 CSV file"),
        (BYTES.replace(b"size", b"width"), (None, "number 3"), "expected the header 'size'"),
        (BYTES.replace(b",shape", b",shape,more"), (None, "number 6"), "expected no more"),
        (BYTES.replace(b",shape\n", b"\n"), (None, "number 5"), "expected the header 'shape'"),
        (b"", (None, "number 1"), "expected the header 'name', found no more"),
        (BYTES.replace(b",3,", b",x,"), (1, "count"), "expected an integer or nothing, found 'x'"),
        (BYTES.replace(b",inf,", b",,"), (2, "size"), "expected a number, found ''"),
        (BYTES.replace(b",0,-2.5e-07", b",-2.5e-07"), (3, None), "expected 5 cells, found 4"),
        (BYTES + b'"open', (None, None), "expected a UTF-8 CSV file"),
        (b"\xef\xbb\xbf" + BYTES, (None, "number 1"), "expected the header 'name'"),
    ],
)
def test_damage_is_named_by_file_row_and_column(
    data: bytes, place: tuple[int | None, str | None], message: str
) -> None:
    with pytest.raises(CsvError, match=message) as caught:
        read_csv(data, SCHEMA)
    assert (caught.value.row, caught.value.column) == place
    assert str(caught.value).startswith("things.csv")
    assert "\n" not in str(caught.value)


def test_schema_of_any_table_lets_it_be_written() -> None:
    table = pd.DataFrame({"token": ["=A", "B"], "logit": [0.1, -1.0], "id": [0, 1]})
    table["shape"] = pd.Series([(1, 2), None], dtype=object)
    schema = schema_of("page.csv", "A page's table", table, {"logit": "final logit"})
    assert [(c.kind, c.optional) for c in schema.columns] == [
        ("text", False),
        ("float", False),
        ("int", False),
        ("numbers", True),
    ]
    assert schema.column("logit").meaning == "final logit"
    data = write_csv(table, schema)
    assert data == b'token,logit,id,shape\n\'=A,0.1,0,"(1, 2)"\nB,-1.0,1,\n'


def test_schema_of_a_mixed_column_is_refused() -> None:
    with pytest.raises(InputError, match="column x: expected values of one kind"):
        schema_of("page.csv", "Any", pd.DataFrame({"x": ["a", 1]}), {})
