"""The one CSV writer, and the reader that gives back exactly what was written.

The bytes are UTF-8 without a byte order mark, with LF line ends, commas and a header row. A cell
is quoted only when it holds a comma, a quote or a line break. How each kind of value is spelled
stands in :mod:`tinydec.evidence.cells`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from tinydec.errors import InputError
from tinydec.evidence.cells import cell_text, cell_value, describe
from tinydec.evidence.schema import Column, Kind, TableSchema
from tinydec.runspec import shown

_NEEDS_QUOTES = re.compile(r'[,"\r\n]')
_DTYPES: dict[Kind, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_}


class CsvError(InputError):
    """A CSV file that the writer did not write; says where, what was expected and found."""

    def __init__(
        self, file: str, row: int | None, column: str | None, expected: str, found: str
    ) -> None:
        self.file, self.row, self.column = file, row, column
        self.expected, self.found = expected, found
        place = file + (f", row {row}" if row else "") + (f", column {column}" if column else "")
        super().__init__(f"{place}: expected {expected}, found {found}")


def frame(schema: TableSchema, rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Return a table with the schema's columns, in order, from rows of cells.

    Columns that always hold a number or boolean get that dtype; all others keep Python objects,
    so that None stays None.
    """
    cells = list(zip(*rows, strict=True)) or [()] * len(schema.columns)
    if len(cells) != len(schema.columns):
        raise ValueError(f"{schema.file}: {len(schema.columns)} columns, {len(cells)} cells a row")
    return pd.DataFrame(
        {
            column.name: pd.Series(values, dtype=_dtype(column, values))
            for column, values in zip(schema.columns, cells, strict=True)
        }
    )


def _dtype(column: Column, values: Sequence[Any]) -> Any:
    if column.optional or column.kind not in _DTYPES:
        return object
    small = column.kind != "int" or all(-(2**63) <= value < 2**63 for value in values)
    return _DTYPES[column.kind] if small else object


def write_csv(table: pd.DataFrame, schema: TableSchema) -> bytes:
    """Return the bytes of the CSV file; equal tables give equal bytes.

    Raises:
        InputError: other columns than the schema's, or a cell of another kind than its column.
    """
    if tuple(table.columns) != schema.names:
        raise InputError(
            f"{schema.file}: expected the columns {', '.join(schema.names)}, "
            f"found {', '.join(map(str, table.columns))}"
        )
    written = [
        _column_texts(schema.file, column, table[column.name].tolist()) for column in schema.columns
    ]
    lines = [",".join(_quoted(name) for name in schema.names)]
    lines += [",".join(cells) or '""' for cells in zip(*written, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def read_csv(data: bytes, schema: TableSchema) -> pd.DataFrame:
    """Return the table that :func:`write_csv` wrote, every cell of its exact type.

    Raises:
        CsvError: not UTF-8 CSV, other columns than the schema's, or a cell that cannot be read;
            the file, the row (1 is the first below the header) and the column are named.
    """
    rows = parse_rows(data, schema.file)
    header = tuple(rows[0]) if rows else ()
    if header != schema.names:
        raise _header_error(schema, header)
    table = []
    for index, row in enumerate(rows[1:], start=1):
        if len(row) != len(schema.columns):
            counts = (f"{len(schema.columns)} cells", str(len(row)))
            raise CsvError(schema.file, index, None, *counts)
        table.append(
            [_read(schema.file, index, *pair) for pair in zip(schema.columns, row, strict=True)]
        )
    return frame(schema, table)


def parse_rows(data: bytes, file: str) -> list[list[str]]:
    """Return the cells of a CSV file as text, the header first, escapes left as they are.

    Raises:
        CsvError: not UTF-8, or not CSV.
    """
    try:
        return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CsvError(file, None, None, "a UTF-8 CSV file", f"another: {error}") from None


def _header_error(schema: TableSchema, header: Sequence[str]) -> CsvError:
    """Say which column is the first that differs."""
    pairs = enumerate(zip_longest(schema.names, header))
    index, (expected, found) = next(entry for entry in pairs if entry[1][0] != entry[1][1])
    texts = (
        "no more" if name is None else f"the header {shown(name)}" for name in (expected, found)
    )
    return CsvError(schema.file, None, f"number {index + 1}", *texts)


def _column_texts(file: str, column: Column, values: list[Any]) -> list[str]:
    known: dict[tuple[type, Any], str] = {}  # most columns repeat a few words and small integers
    texts = []
    try:
        for value in values:
            if type(value) not in (str, int, bool):
                texts.append(_quoted(cell_text(value, column)))
                continue
            key = (type(value), value)
            if key not in known:
                known[key] = _quoted(cell_text(value, column))
            texts.append(known[key])
    except InputError as error:
        raise InputError(f"{file}, {error}") from None
    return texts


def _quoted(cell: str) -> str:
    if _NEEDS_QUOTES.search(cell) is None:
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _read(file: str, row: int, column: Column, cell: str) -> Any:
    try:
        return cell_value(cell, column)
    except InputError:
        raise CsvError(file, row, column.name, describe(column), shown(cell)) from None


def schema_of(
    file: str, title: str, table: pd.DataFrame, meanings: Mapping[str, str]
) -> TableSchema:
    """Return a schema for a table that is in no bundle, such as the one beside a chart.

    Args:
        file: name of the file to write.
        title: what it shows.
        table: its columns' kinds are read off their values; a column without any is text.
        meanings: of the columns that have one.

    Raises:
        InputError: a column with values of several kinds, or of none that the writer knows.
    """
    columns = []
    for name in table.columns:
        values = table[name].tolist()
        kinds = {_kind(value) for value in values if value is not None} or {"text"}
        kind = kinds.pop()
        if kinds or kind is None:
            raise InputError(f"{file}, column {name}: expected values of one kind, found others")
        columns.append(Column(str(name), kind, meanings.get(name, ""), None in values))
    return TableSchema(file, title, tuple(columns))


def _kind(value: Any) -> Kind | None:
    types: tuple[tuple[Kind, Any], ...] = (
        ("bool", bool | np.bool_),
        ("int", int | np.integer),
        ("float", float | np.floating),
        ("text", str),
        ("numbers", tuple),
    )
    return next((kind for kind, known in types if isinstance(value, known)), None)
