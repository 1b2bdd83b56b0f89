"""A row of numbers by token as a Markdown table, for exercises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tinydec.figures.logits import shown_ids
from tinydec.generation.policy import Selection


def row_choices(selection: Selection, most: int = 8) -> list[int]:
    """Return the ids an exercise shows: all of a small vocabulary, else the highest."""
    return shown_ids([selection.logits], [selection.token_id], most)


def row_text(tokens: Sequence[str], row: NDArray[np.floating], ids: Iterable[int]) -> str:
    """Return a Markdown table of the numbers of some tokens, three digits after the point."""
    chosen = list(ids)
    head = " | ".join(f"`{_cell(tokens[i])}`" for i in chosen)
    rule = "|".join("--:" for _ in chosen)
    values = " | ".join(f"{row[i]:.3f}".replace("-", "−") for i in chosen)
    return f"| {head} |\n|{rule}|\n| {values} |"


def _cell(token: str) -> str:
    return token.replace("|", "\\|").replace("`", "'")
