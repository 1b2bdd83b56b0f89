"""Which part of a large model a grid of numbers shows; the shipped one is shown whole."""

from __future__ import annotations

from typing import NamedTuple

#: Rows (positions) and columns (numbers of a row) of a grid.
MOST_ROWS = 12
MOST_COLUMNS = 8


class Window(NamedTuple):
    """Rows from ``first`` to ``end`` - 1 of ``rows``, and the first ``columns`` of ``width``."""

    first: int
    end: int
    rows: int
    columns: int
    width: int

    @property
    def note(self) -> str:
        """What is left out, or an empty text."""
        parts = []
        if self.end - self.first < self.rows:
            parts.append(f"positions {self.first} to {self.end - 1} of {self.rows}")
        if self.columns < self.width:
            parts.append(f"the first {self.columns} of {self.width} numbers of a row")
        return f"Shown: {' and '.join(parts)}; the CSV has all." if parts else ""


def window(rows: int, width: int, current: int) -> Window:
    """Return a window of at most ``MOST_ROWS`` rows that holds the current one near its end.

    Args:
        rows: all rows.
        width: numbers in a row.
        current: the row that has to be seen.
    """
    first = min(max(current - MOST_ROWS + 2, 0), max(rows - MOST_ROWS, 0))
    return Window(first, min(first + MOST_ROWS, rows), rows, min(width, MOST_COLUMNS), width)
