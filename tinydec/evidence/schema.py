"""What a table's columns are called, hold and mean, declared once for every file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: ``numbers`` is a tuple of integers, such as a shape or token ids.
Kind = Literal["text", "int", "float", "bool", "numbers"]
KINDS: tuple[Kind, ...] = ("text", "int", "float", "bool", "numbers")

#: How replay compares a recorded cell with the recomputed one.
#: ``exact``: the same value. ``close``: floats within the tolerance, relative above 1.
#: ``scaled``: as ``close``, with the tolerance doubled and divided by a temperature below 1.
#: ``ulp`` and ``argmax``: may differ as far as logits within the tolerance allow.
#: ``session``: as ``close``, with the tolerance of the audited session.
#: ``figures``: text in which numbers with a point or an exponent may differ as under ``session``,
#: and by one unit of the last digit shown, since they are rounded.
Rule = Literal["exact", "close", "scaled", "ulp", "argmax", "session", "figures"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: header of the column.
        kind: what each cell holds.
        meaning: one line for captions and for ``columns.csv``.
        optional: whether a cell may hold nothing.
        rule: how replay compares it.
    """

    name: str
    kind: Kind
    meaning: str
    optional: bool = False
    rule: Rule = "exact"


@dataclass(frozen=True)
class TableSchema:
    """One file of the bundle: its name, what it shows and its columns in order."""

    file: str
    title: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return the column called ``name``; a ``KeyError`` when there is none."""
        return {column.name: column for column in self.columns}[name]

    def captions(self) -> Mapping[str, str]:
        """Return the meaning of each column by name."""
        return {column.name: column.meaning for column in self.columns}


def text(name: str, meaning: str, *, optional: bool = False, rule: Rule = "exact") -> Column:
    """Return a column of text."""
    return Column(name, "text", meaning, optional, rule)


def integer(name: str, meaning: str, *, optional: bool = False, rule: Rule = "exact") -> Column:
    """Return a column of integers."""
    return Column(name, "int", meaning, optional, rule)


def number(name: str, meaning: str, *, optional: bool = False, rule: Rule = "close") -> Column:
    """Return a column of floats, compared within the tolerance unless said otherwise."""
    return Column(name, "float", meaning, optional, rule)


def flag(name: str, meaning: str, *, optional: bool = False, rule: Rule = "exact") -> Column:
    """Return a column of booleans."""
    return Column(name, "bool", meaning, optional, rule)


def numbers(name: str, meaning: str, *, optional: bool = False) -> Column:
    """Return a column of integer tuples."""
    return Column(name, "numbers", meaning, optional)
