"""A faulty session beside the correct one: the final logits, and where the tensors part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from tinydec.figures.log_axis import LogAxis
from tinydec.figures.logits import label, shown_ids
from tinydec.figures.palette import ERROR, FULL
from tinydec.figures.style import finish

Row = NDArray[np.floating]

#: From an exact 0 to beyond every fault; another shape or NaN stands at the top.
AXIS = LogAxis(-17, 2)
_MOST_TENSORS = 60


def logits_figure(
    tokens: Sequence[str], correct: Row, faulty: Row | None, *, height: int = 280
) -> go.Figure:
    """Draw the final logits of both sessions side by side.

    Args:
        tokens: V token strings; the highest logits are drawn of a large vocabulary.
        correct: (V,) without the fault.
        faulty: (V,) with it; None as long as it is not revealed.
        height: pixels.
    """
    rows = [correct] if faulty is None else [correct, np.nan_to_num(faulty, nan=-np.inf)]
    ids = shown_ids(rows)
    figure = go.Figure()
    for name, row, colour, shape in (
        ("correct", correct, FULL, ""),
        ("faulty", faulty, ERROR, "/"),
    ):
        if row is None:
            continue
        figure.add_trace(
            go.Bar(
                x=[label(tokens[i]) for i in ids],
                y=[float(row[i]) for i in ids],
                name=name,
                showlegend=True,
                marker={"color": colour.mark, "pattern": {"shape": shape, "size": 5}},
                customdata=[repr(float(row[i])) for i in ids],
                hovertemplate="%{x}: %{customdata}<extra>" + name + "</extra>",
            )
        )
    figure.update_xaxes(showgrid=False, type="category")
    figure.update_yaxes(title_text="final logit", nticks=6)
    return finish(figure, height=height, bargap=0.3)


def tensors_figure(
    tensors: Sequence[tuple[str, float]],
    first: str | None,
    tolerance: float,
    *,
    height: int = 280,
) -> go.Figure:
    """Draw how far each tensor is from its twin, in the order of computation.

    Args:
        tensors: name and largest difference of each; none as long as it is not revealed.
        first: the first one beyond the tolerance, or None; it is circled and named.
        tolerance: where the dashed line stands.
        height: pixels.
    """
    names = [name for name, _ in tensors]
    place = names.index(first) if first in names else None
    start = min(max((place or 0) - _MOST_TENSORS // 2, 0), max(len(names) - _MOST_TENSORS, 0))
    shown = list(tensors[start : start + _MOST_TENSORS])
    bad = [not error <= tolerance for _, error in shown]
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=list(range(start, start + len(shown))),
            y=AXIS.place([error for _, error in shown]),
            mode="markers",
            marker={
                "color": [(ERROR if b else FULL).mark for b in bad],
                "symbol": ["x" if b else "circle" for b in bad],
                "size": 7,
            },
            customdata=[[name, _said(error)] for name, error in shown],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    )
    if place is not None:
        figure.add_trace(
            go.Scatter(
                x=[place],
                y=AXIS.place([tensors[place][1]]),
                mode="markers+text",
                text=[f"first: {first}"],
                textposition="top right" if place - start < len(shown) / 2 else "top left",
                marker={
                    "symbol": "circle-open",
                    "size": 16,
                    "color": ERROR.mark,
                    "line": {"width": 3},
                },
                cliponaxis=False,
                hoverinfo="skip",
                showlegend=False,
            )
        )
    figure.add_hline(
        y=float(AXIS.place(tolerance)), line={"color": ERROR.mark, "dash": "dash", "width": 2}
    )
    values, labels = AXIS.ticks(6)
    low, high = AXIS.range
    figure.update_yaxes(
        type="log",
        range=(low, high + 2),
        tickvals=values,
        ticktext=labels,
        title_text="largest difference",
    )
    figure.update_xaxes(
        showticklabels=False,
        showgrid=False,
        range=[start - 1, start + max(len(shown), 10)],
        title_text="tensors in order of computation",
    )
    return finish(figure, height=height)


def _said(error: float) -> str:
    return "another shape, or NaN" if np.isinf(error) else repr(error)
