"""Tables as a page shows them: tuples as lists, whole columns of numbers as numbers."""

from __future__ import annotations

from typing import Any

import pandas as pd

#: Entries of a list that are shown; a longer one is cut in the middle.
_MOST = 8


def joined(numbers: tuple[int, ...]) -> str:
    """Return ``0, 1, 2``, or ``0, 1, 2 … 63`` for a long list."""
    if len(numbers) <= _MOST:
        return ", ".join(map(str, numbers))
    return ", ".join(map(str, numbers[:3])) + f" … {numbers[-1]}"


def readable(table: pd.DataFrame, *lists: str) -> pd.DataFrame:
    """Return a copy for the page; the CSV is written from the table itself.

    Args:
        table: of :mod:`tinydec.evidence`.
        lists: columns whose tuples are lists of positions, not shapes.
    """
    shown = table.copy()
    for name in table.columns:
        if not table[name].isna().any():  # an empty cell would become NaN
            shown[name] = table[name].infer_objects()
    for name in lists:
        shown[name] = pd.Series([_text(value) for value in table[name]], dtype=object)
    return shown


def _text(value: Any) -> Any:
    return joined(value) if isinstance(value, tuple) else value
