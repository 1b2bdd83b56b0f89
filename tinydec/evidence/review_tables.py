"""Tables of the review: how each exercise of a visit went, and the glossary."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, text

SCORES = TableSchema(
    "exercises.csv",
    "Every exercise with what this visit made of it",
    (
        text("topic", "what it practises"),
        text("exercise", "its title"),
        text("lesson", "the page that prepares for it"),
        text("result", "right, not yet (checked, never right) or open"),
    ),
)

GLOSSARY = TableSchema(
    "glossary.csv",
    "Symbols, tensors and words",
    (
        text("term", "symbol, tensor or word"),
        text("here", "its size or axes on this checkpoint; empty for a word", optional=True),
        text("meaning", "in a sentence"),
        text("lesson", "the page that shows it"),
    ),
)

RIGHT, NOT_YET, OPEN = "right", "not yet", "open"


def scores(rows: Iterable[tuple[str, str, str, bool | None]]) -> pd.DataFrame:
    """Return the table of exercises.

    Args:
        rows: topic, title, lesson, and whether it was ever right (None: never checked).
    """
    names = {True: RIGHT, False: NOT_YET, None: OPEN}
    return frame(SCORES, [(topic, title, page, names[done]) for topic, title, page, done in rows])


def glossary(rows: Iterable[tuple[str, str, str, str]]) -> pd.DataFrame:
    """Return the glossary from term, size here, meaning and lesson."""
    return frame(GLOSSARY, [(term, here or None, *rest) for term, here, *rest in rows])
