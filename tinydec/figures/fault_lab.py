"""A faulty session beside the correct one: the final logits, and where the tensors part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tinydec.figures.log_axis import LogAxis
from tinydec.figures.logits import label, shown_ids
from tinydec.figures.palette import ERROR, FULL
from tinydec.figures.style import finish

Row = NDArray[np.floating]

#: From an exact 0 to beyond every fault; another shape or NaN stands at the top.
AXIS = LogAxis(-17, 2)
_MOST_TENSORS = 60


def sessions_figure(
    tokens: Sequence[str],
    correct: Row,
    faulty: Row | None,
    tensors: Sequence[tuple[str, float]],
    first: str | None,
    tolerance: float,
    *,
    height: int = 290,
) -> go.Figure:
    """Draw logits of both sessions, and the largest difference of each tensor.

    Args:
        tokens: V token strings; the highest logits are drawn of a large vocabulary.
        correct: (V,) final logits without the fault.
        faulty: (V,) with it; None as long as it is not revealed.
        tensors: name and largest difference, in the order of computation; empty before that.
        first: the first tensor beyond the tolerance, or None.
        tolerance: where the dashed line stands.
        height: pixels.
    """
    figure = make_subplots(
        cols=2,
        column_widths=[0.46, 0.54],
        horizontal_spacing=0.09,
        subplot_titles=("final logits", "largest difference, tensor by tensor"),
    )
    rows = [correct] if faulty is None else [correct, np.nan_to_num(faulty, nan=-np.inf)]
    ids = shown_ids(rows)
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
                marker={"color": colour.mark, "pattern": {"shape": shape, "size": 5}},
                customdata=[repr(float(row[i])) for i in ids],
                hovertemplate="%{x}: %{customdata}<extra>" + name + "</extra>",
            ),
            row=1,
            col=1,
        )
    _add_tensors(figure, list(tensors), first, tolerance)
    figure.update_xaxes(showgrid=False, col=1)
    return finish(
        figure, height=height, margin={"l": 8, "r": 8, "t": 44, "b": 8}, bargap=0.3, legend_y=1.12
    )


def _add_tensors(
    figure: go.Figure, tensors: list[tuple[str, float]], first: str | None, tolerance: float
) -> None:
    names = [name for name, _ in tensors]
    place = names.index(first) if first in names else None
    start = min(max((place or 0) - _MOST_TENSORS // 2, 0), max(len(names) - _MOST_TENSORS, 0))
    shown = tensors[start : start + _MOST_TENSORS]
    bad = [not error <= tolerance for _, error in shown]
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
        ),
        row=1,
        col=2,
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
            ),
            row=1,
            col=2,
        )
    figure.add_hline(
        y=float(AXIS.place(tolerance)),
        line={"color": ERROR.mark, "dash": "dash", "width": 2},
        row=1,
        col=2,
    )
    values, labels = AXIS.ticks(6)
    low, high = AXIS.range
    figure.update_yaxes(
        type="log", range=(low, high + 2), tickvals=values, ticktext=labels, row=1, col=2
    )
    figure.update_xaxes(
        showticklabels=False,
        showgrid=False,
        range=[start - 1, start + max(len(shown), 10)],
        title_text="order of computation →; dashed: tolerance",
        row=1,
        col=2,
    )


def _said(error: float) -> str:
    return "another shape, or NaN" if np.isinf(error) else repr(error)
