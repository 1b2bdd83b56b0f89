"""Plain text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PASS, FAIL = "pass", "FAIL"


@dataclass(frozen=True)
class Outcome:
    """What a command prints and its exit code: 0 pass, 1 fail; and what files it has written."""

    text: str
    code: int = 0
    written: str = ""


def printable(text: str) -> str:
    """Return text whose control characters are written out, so that none reaches a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return text on one line, its line breaks as spaces."""
    return printable(" ".join(text.splitlines()))


def verdict(passed: bool) -> str:
    """Return ``pass`` or ``FAIL``."""
    return PASS if passed else FAIL


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns under a header and a rule, without trailing blanks."""
    cells = [list(header), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)
