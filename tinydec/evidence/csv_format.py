"""The one CSV writer, and the reader that gives back exactly what was written.

The format, byte for byte:

- UTF-8 without a byte order mark, LF line ends, a header row, commas. A cell is quoted only when
  it holds a comma, a quote or a line break.
- Floats are ``repr`` of their float64 value, which float16 and float32 fit in exactly: reading
  back and casting gives the same number. Infinities are ``inf`` and ``-inf``, not-a-number ``nan``.
- Integers in plain digits; booleans ``true`` and ``false``; tuples of integers as Python writes
  them, ``(1, 2, 3, 2)``; nothing (None) is an empty cell.
- Text that a spreadsheet might run as a formula gets an apostrophe in front: text that begins
  with a tab or carriage return, or whose first visible character is one of ``= + - @`` (or its
  full-width form). So does text that begins with an apostrophe, and the empty text, so that
  dropping one leading apostrophe gives back every text.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tinydec.errors import InputError
from tinydec.evidence.schema import Column, Kind, TableSchema
from tinydec.runspec import shown

#: = + - @ and their full-width forms.
_FORMULA_SIGNS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
_APOSTROPHE = "'"
_NEEDS_QUOTES = re.compile(r'[,"\r\n]')
_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_NUMBERS = re.compile(r"\(\)|\((-?[0-9]+),\)|\((-?[0-9]+(, -?[0-9]+)+)\)", re.ASCII)
#: One float has one spelling: what ``repr`` gives.
_FLOAT = re.compile(r"-?[0-9.]+(e[+-][0-9]+)?|-?inf|nan", re.ASCII)

_DTYPES: dict[Kind, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_}


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
        InputError: not UTF-8 CSV, other columns than the schema's, or a cell that cannot be read;
            the file, the row (1 is the first below the header) and the column are named.
    """
    rows = parse_rows(data, schema.file)
    header = tuple(rows[0]) if rows else ()
    if header != schema.names:
        raise InputError(header_error(schema, header))
    table = []
    for index, row in enumerate(rows[1:], start=1):
        if len(row) != len(schema.columns):
            raise InputError(
                f"{schema.file}, row {index}: expected {len(schema.columns)} cells, "
                f"found {len(row)}"
            )
        table.append(
            [_read(schema.file, index, *pair) for pair in zip(schema.columns, row, strict=True)]
        )
    return frame(schema, table)


def parse_rows(data: bytes, file: str) -> list[list[str]]:
    """Return the cells of a CSV file as text, the header first, escapes left as they are.

    Raises:
        InputError: not UTF-8, or not CSV.
    """
    try:
        return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: expected a UTF-8 CSV file, found: {error}") from None


def header_error(schema: TableSchema, header: Sequence[str]) -> str:
    """Say which column is the first that differs."""
    for index in range(max(len(schema.names), len(header))):
        expected = repr(schema.names[index]) if index < len(schema.names) else "no more columns"
        found = shown(header[index]) if index < len(header) else "none"
        if expected != found:
            return f"{schema.file}, column {index + 1}: expected {expected}, found {found}"
    raise ValueError("the header is right")


def cell_text(value: Any, column: Column) -> str:
    """Return the unquoted text of one cell.

    Raises:
        InputError: a value of another kind than the column's.
    """
    if value is None and column.optional:
        return ""
    try:
        return _WRITERS[column.kind](value)
    except (TypeError, ValueError):  # the latter: an integer of over 4300 digits, no text
        raise InputError(
            f"column {column.name}: expected {_describe(column)}, found {shown(value)}"
        ) from None


def cell_value(cell: str, column: Column) -> Any:
    """Return what :func:`cell_text` was given.

    Raises:
        InputError: text that the writer never writes in this column.
    """
    if cell == "" and column.optional:
        return None
    try:
        return _READERS[column.kind](cell)
    except ValueError:
        raise InputError(
            f"column {column.name}: expected {_describe(column)}, found {shown(cell)}"
        ) from None


def escape_text(value: str) -> str:
    """Return text with an apostrophe in front where a spreadsheet might run it, or it has one."""
    if value == "" or value[0] in "\t\r\n'" or _first_visible(value) in _FORMULA_SIGNS:
        return _APOSTROPHE + value
    return value


def unescape_text(value: str) -> str:
    """Return the text that :func:`escape_text` was given."""
    return value[1:] if value.startswith(_APOSTROPHE) else value


def _first_visible(value: str) -> str:
    for character in value:
        if not character.isspace() and unicodedata.category(character) not in ("Cc", "Cf"):
            return character
    return ""


def _column_texts(file: str, column: Column, values: list[Any]) -> list[str]:
    try:
        return [_quoted(cell_text(value, column)) for value in values]
    except InputError as error:
        raise InputError(f"{file}, {error}") from None


def _quoted(cell: str) -> str:
    if _NEEDS_QUOTES.search(cell) is None:
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _read(file: str, row: int, column: Column, cell: str) -> Any:
    try:
        return cell_value(cell, column)
    except InputError as error:
        raise InputError(f"{file}, row {row}, {error}") from None


def _describe(column: Column) -> str:
    kinds = {
        "text": "text",
        "int": "an integer",
        "float": "a number",
        "bool": "true or false",
        "numbers": "a tuple of integers",
    }
    return kinds[column.kind] + (" or nothing" if column.optional else "")


def _write_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a surrogate pair is no text
    return escape_text(value)


def _write_int(value: Any) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError
    return str(int(value))


def _write_float(value: Any) -> str:
    if not isinstance(value, float | np.float16 | np.float32):
        raise TypeError
    return repr(float(value))


def _write_bool(value: Any) -> str:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return "true" if value else "false"


def _write_numbers(value: Any) -> str:
    if not isinstance(value, tuple):
        raise TypeError
    inside = ", ".join(_write_int(item) for item in value)
    return f"({inside},)" if len(value) == 1 else f"({inside})"


def _read_text(cell: str) -> str:
    value = unescape_text(cell)
    if escape_text(value) != cell:
        raise ValueError
    return value


def _read_int(cell: str) -> int:
    if _INTEGER.fullmatch(cell) is None:
        raise ValueError
    return int(cell)


def _read_float(cell: str) -> float:
    if _FLOAT.fullmatch(cell) is None:
        raise ValueError
    return float(cell)


def _read_bool(cell: str) -> bool:
    if cell not in ("true", "false"):
        raise ValueError
    return cell == "true"


def _read_numbers(cell: str) -> tuple[int, ...]:
    if _NUMBERS.fullmatch(cell) is None:
        raise ValueError
    return tuple(int(part) for part in cell.strip("()").replace(",", " ").split())


_WRITERS: dict[Kind, Callable[[Any], str]] = {
    "text": _write_text,
    "int": _write_int,
    "float": _write_float,
    "bool": _write_bool,
    "numbers": _write_numbers,
}
_READERS: dict[Kind, Callable[[str], Any]] = {
    "text": _read_text,
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "numbers": _read_numbers,
}
