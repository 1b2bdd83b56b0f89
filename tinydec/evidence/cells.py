"""One cell of a CSV file: from a value to text and back, exactly.

- Floats are ``repr`` of their float64 value, which float16 and float32 fit in exactly: reading
  back and casting gives the same number. Infinities are ``inf`` and ``-inf``, not-a-number ``nan``.
- Integers in plain digits; booleans ``true`` and ``false``; tuples of integers as Python writes
  them, ``(1, 2, 3, 2)``; nothing (None) is an empty cell.
- Text that a spreadsheet might run as a formula gets an apostrophe in front: text that begins
  with a tab or line break, or whose first visible character is one of ``= + - @`` (or its
  full-width form). So does text that begins with an apostrophe, and the empty text, so that
  dropping one leading apostrophe gives back every text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from tinydec.errors import InputError
from tinydec.evidence.schema import Column, Kind
from tinydec.runspec import shown

#: = + - @ and their full-width forms.
_FORMULA_SIGNS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
_APOSTROPHE = "'"
_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_NUMBERS = re.compile(r"\(\)|\((-?[0-9]+),\)|\((-?[0-9]+(, -?[0-9]+)+)\)", re.ASCII)
#: One float has one spelling: what ``repr`` gives.
_FLOAT = re.compile(r"-?[0-9.]+(e[+-][0-9]+)?|-?inf|nan", re.ASCII)


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
            f"column {column.name}: expected {describe(column)}, found {shown(value)}"
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
            f"column {column.name}: expected {describe(column)}, found {shown(cell)}"
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


def describe(column: Column) -> str:
    """Say what a cell of a column holds, for an error."""
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
