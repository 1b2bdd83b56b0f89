"""Query-key pairs of two passes: the causal triangle beside the single growing row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tinydec.figures.logits import label
from tinydec.figures.palette import CACHED, FULL, KEY
from tinydec.figures.style import finish

#: What a mark stands for: name, symbol in the chart, sign in the legend, colour.
MADE = "key made in this pass"
READ = "key read from the cache"
HIDDEN = "multiplied, then hidden by the mask"
ABSENT = "row not computed in this pass"
MARKS: dict[str, tuple[str, str, str]] = {
    MADE: ("square", "■", "key"),
    READ: ("circle", "●", "cached"),
    HIDDEN: ("x-thin", "×", "full"),
    ABSENT: ("square-open", "□", "full"),
}
_COLOURS = {"key": KEY.mark, "cached": CACHED.mark, "full": FULL.mark}

#: Positions that get a label of their own; more have plain numbers.
_MOST_LABELS = 12


class Pairs(NamedTuple):
    """The pairs of one pass.

    ``visible`` is (P, t): True where a query sees a key. The first query stands at position
    ``start``, which is also the number of keys that came from the cache.
    """

    title: str
    visible: NDArray[np.bool_]
    start: int


def pair_figure(
    first: Pairs, later: Pairs | None, tokens: Sequence[str], *, height: int = 320
) -> go.Figure:
    """Return both passes over the same axes: queries down, keys across.

    Args:
        first: the pass over the prompt.
        later: the pass beside it, if there is one.
        tokens: text of every position.
        height: pixels.
    """
    panels = [first] if later is None else [first, later]
    figure = make_subplots(
        rows=1,
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.06,
        subplot_titles=[panel.title for panel in panels],
    )
    size = min(max(130 / len(tokens), 2), 20)
    for column, panel in enumerate(panels, start=1):
        for mark, points in pair_points(panel).items():
            figure.add_trace(_trace(mark, points, size), row=1, col=column)
    numbers = list(range(len(tokens)))
    edge = len(tokens) - 0.4
    figure.update_xaxes(range=[-0.6, edge], title_text="key position", showgrid=False)
    figure.update_yaxes(range=[edge, -0.6], showgrid=False)
    if len(tokens) <= _MOST_LABELS:
        texts = [f"{n} {label(token)}" for n, token in enumerate(tokens)]
        figure.update_xaxes(tickvals=numbers)
        figure.update_yaxes(tickvals=numbers, ticktext=texts)
    figure.update_yaxes(title_text="query position", col=1)
    figure.update_annotations(font_size=12)
    finish(figure, height=height, showlegend=False)
    figure.update_xaxes(zeroline=False)
    figure.update_yaxes(zeroline=False)
    return figure


def pair_points(panel: Pairs) -> dict[str, list[tuple[int, int]]]:
    """Return (query, key) positions by what their mark stands for."""
    points: dict[str, list[tuple[int, int]]] = {mark: [] for mark in MARKS}
    points[ABSENT] = [(query, key) for query in range(panel.start) for key in range(query + 1)]
    for row, line in enumerate(panel.visible.tolist()):
        for key, seen in enumerate(line):
            mark = HIDDEN if not seen else READ if key < panel.start else MADE
            points[mark].append((panel.start + row, key))
    return points


def _trace(mark: str, points: Sequence[tuple[int, int]], size: float) -> go.Scatter:
    symbol, _, role = MARKS[mark]
    faint = mark in (HIDDEN, ABSENT)
    colour = _COLOURS[role]
    style: dict[str, Any] = {
        "symbol": symbol,
        "size": size * (0.7 if faint else 1),
        "color": colour,
        "opacity": 0.55 if mark == ABSENT else 1,
        "line": {"width": 1.5 if faint else 0, "color": colour},
    }
    return go.Scatter(
        x=[key for _, key in points],
        y=[query for query, _ in points],
        mode="markers",
        marker=style,
        name=mark,
        hovertemplate=f"query %{{y}}, key %{{x}}<br>{mark}<extra></extra>",
    )
