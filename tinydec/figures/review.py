"""The score of a visit: one bar per topic, in three parts."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from tinydec.figures.palette import CACHED, ERROR, FULL
from tinydec.figures.style import finish


def score_figure(
    topics: Sequence[str], right: Sequence[int], tried: Sequence[int], untouched: Sequence[int]
) -> go.Figure:
    """Return stacked bars of exercises by topic.

    Args:
        topics: names, the first on top.
        right: exercises solved, by topic.
        tried: checked, never right.
        untouched: not checked yet.
    """
    labels = [
        f"{topic} {done}/{done + missed + left}"
        for topic, done, missed, left in zip(topics, right, tried, untouched, strict=True)
    ]
    parts = (
        ("right", right, {"color": CACHED.mark}),
        ("not yet", tried, {"color": ERROR.mark, "pattern": {"shape": "/"}}),
        (
            "open",
            untouched,
            {"color": "rgba(0, 0, 0, 0)", "line": {"color": FULL.mark, "width": 1}},
        ),
    )
    figure = go.Figure(
        [
            go.Bar(
                name=name,
                y=labels,
                x=list(counts),
                orientation="h",
                marker=marker,
                hovertemplate=f"%{{y}}: %{{x}} {name}<extra></extra>",
            )
            for name, counts, marker in parts
        ]
    )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    finish(figure, height=280)
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(dtick=1, title="exercises")
    return figure
