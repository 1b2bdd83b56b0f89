"""What the review page says and shows of a visit's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from tinydec.evidence import review_tables
from tinydec.figures.review import score_figure
from tinydec.model.config import ModelConfig
from tinydec.ui.exercises import glossary
from tinydec.ui.exercises.catalogue import Exercise, Score
from tinydec.ui.pages import CATALOGUE


def page_title(url_path: str) -> str:
    """Return a page's title."""
    return CATALOGUE.find(url_path).title


def score_numbers(scores: Sequence[Score]) -> str:
    """Return the score's formula with this visit's numbers."""
    right, total = sum(s.right for s in scores), sum(s.total for s in scores)
    missed = sum(s.tried for s in scores)
    return f"{right} / {total} = {right / total:.0%} so far; {missed} checked and not right yet"


def board_figure(scores: Sequence[Score]) -> go.Figure:
    """Return the picture of a visit's score."""
    return score_figure(
        [s.topic for s in scores],
        [s.right for s in scores],
        [s.tried for s in scores],
        [s.untouched for s in scores],
    )


def board_text(scores: Sequence[Score]) -> str:
    """Return what a screen reader says of that picture."""
    return "Solved exercises: " + ", ".join(f"{s.topic} {s.right} of {s.total}" for s in scores)


def scores_table(exercises: Sequence[Exercise], known: Mapping[str, bool]) -> pd.DataFrame:
    """Return every exercise with its result."""
    return review_tables.scores(
        (e.topic, e.title, page_title(e.page), known.get(e.key)) for e in exercises
    )


def glossary_tables(config: ModelConfig) -> dict[str, pd.DataFrame]:
    """Return the glossary's parts by heading."""
    parts = {
        "Symbols": glossary.symbols(config),
        "Tensors and their axes": glossary.tensors(config),
        "Words": glossary.words(),
    }
    return {
        heading: review_tables.glossary(
            (e.term, e.here, e.meaning, page_title(e.page)) for e in entries
        )
        for heading, entries in parts.items()
    }
