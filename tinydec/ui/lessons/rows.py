"""A row of numbers by token as Markdown, for exercises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tinydec.figures.logits import shown_ids
from tinydec.generation.policy import Selection
from tinydec.ui.html import code


def row_choices(selection: Selection, most: int = 8) -> list[int]:
    """Return the ids an exercise shows: all of a small vocabulary, else the highest."""
    return shown_ids([selection.logits], [selection.token_id], most)


def row_text(tokens: Sequence[str], row: NDArray[np.floating], ids: Iterable[int]) -> str:
    """Return the numbers of some tokens as Markdown, three digits after the point.

    A line that wraps: a table of eight columns is wider than a phone.
    """
    return " · ".join(f"{code(tokens[i])} {_number(row[i])}" for i in ids)


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
