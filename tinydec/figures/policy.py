"""From logits to a token: the stages of a policy as bars, and the CDF strip with the draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tinydec.figures.logits import bars, label, shown_ids, token_axis
from tinydec.figures.palette import ERROR, FULL, KEY, QUERY, rgba
from tinydec.figures.style import LINE, finish

Floats = NDArray[np.float64]

#: Intervals drawn on the strip; the widest where there are more.
MOST_INTERVALS = 48
_WIDE_ENOUGH = 0.035  # for a label above an interval


@dataclass(frozen=True, eq=False)
class PolicyPicture:
    """Everything that the figure shows, for V tokens.

    Attributes:
        tokens: V token strings.
        logits: (V,) the original row.
        softmax: (V,) after the temperature.
        top_k: (V,) after top-k, renormalised.
        probabilities: (V,) after top-p, renormalised.
        kept: (V,) booleans: tokens that can be selected.
        cdf: (V,) running sum of the probabilities.
        selected: the id that was selected.
        uniform: the number drawn, or None under greedy.
        shares: (V,) how often each token was selected by many seeds, as a share of them.
        titles: of the five panels, short enough for a phone: lines of up to 8 characters.
    """

    tokens: Sequence[str]
    logits: NDArray[np.floating]
    softmax: Floats
    top_k: Floats
    probabilities: Floats
    kept: NDArray[np.bool_]
    cdf: Floats
    selected: int
    uniform: float | None
    shares: Floats
    titles: tuple[str, str, str, str, str]


def policy_figure(picture: PolicyPicture, *, height: int = 370) -> go.Figure:
    """Return the stages as five panels of bars over the CDF strip."""
    ids = shown_ids([picture.logits], [picture.selected])
    names = [picture.tokens[i] for i in ids]
    figure = make_subplots(
        rows=2,
        cols=5,
        shared_yaxes="rows",
        row_heights=[0.78, 0.22],
        vertical_spacing=0.17,
        horizontal_spacing=0.025,
        specs=[[{}] * 5, [{"colspan": 5}, None, None, None, None]],
        subplot_titles=(*picture.titles, ""),
    )
    figure.update_annotations(font_size=12)
    colours = [QUERY.mark if i == picture.selected else KEY.mark for i in ids]
    stages = (
        (picture.logits, "logit"),
        (picture.softmax, "softmax"),
        (picture.top_k, "after top-k"),
        (picture.probabilities, "after top-p"),
        (picture.shares, "share of the seeds"),
    )
    for column, (values, what) in enumerate(stages, start=1):
        shown = colours if column < 5 else [FULL.mark] * len(ids)
        figure.add_trace(bars(values[ids], shown, names, what), row=1, col=column)
    for column, gone in ((3, picture.top_k == 0), (4, ~picture.kept)):
        figure.add_trace(_crosses(gone[ids]), row=1, col=column)
    figure.add_trace(_expected(picture.probabilities[ids]), row=1, col=5)
    figure.update_yaxes(**token_axis(names, ids.index(picture.selected)), row=1)
    figure.update_xaxes(nticks=3, row=1)
    for column in (2, 3, 4, 5):
        figure.update_xaxes(range=[0, 1.04], tickvals=[0, 1], row=1, col=column)
    _strip(figure, picture)
    margin = {"l": 8, "r": 12, "t": 42, "b": 8}
    return finish(figure, height=height, margin=margin, barmode="overlay")


def _crosses(gone: NDArray[np.bool_]) -> go.Scatter:
    """Mark tokens that a rule dropped."""
    places = np.flatnonzero(gone).tolist()
    return go.Scatter(
        x=[0.04] * len(places),
        y=places,
        mode="markers",
        marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": ERROR.mark}},
        hoverinfo="skip",
        showlegend=False,
    )


def _expected(probabilities: Floats) -> go.Scatter:
    """Mark the probability beside the share that many seeds selected."""
    return go.Scatter(
        x=probabilities.tolist(),
        y=list(range(len(probabilities))),
        mode="markers",
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 2.5, "color": QUERY.mark}},
        hovertemplate="probability %{x}<extra></extra>",
        showlegend=False,
    )


def strip_intervals(picture: PolicyPicture) -> list[tuple[int, float, float]]:
    """Return (id, low, high) for the intervals on the strip, in id order.

    Tokens that can be selected tile [0, 1); of many, the widest and the selected one are drawn.
    """
    low = np.concatenate([[0.0], picture.cdf[:-1]])
    width = np.where(picture.kept, picture.cdf - low, 0.0)
    chosen = set(np.argsort(-width, kind="stable")[:MOST_INTERVALS].tolist()) | {picture.selected}
    return [
        (token_id, float(low[token_id]), float(picture.cdf[token_id]))
        for token_id in sorted(chosen)
        if width[token_id] > 0
    ]


def _strip(figure: go.Figure, picture: PolicyPicture) -> None:
    spans = strip_intervals(picture)
    shades = [rgba(KEY.mark, 0.55), rgba(KEY.mark, 0.28)]
    fills = [
        QUERY.mark if token_id == picture.selected else shades[n % 2]
        for n, (token_id, _, _) in enumerate(spans)
    ]
    figure.add_trace(
        go.Bar(
            base=[low for _, low, _ in spans],
            x=[high - low for _, low, high in spans],
            y=[0] * len(spans),
            width=0.9,
            orientation="h",
            marker={"color": fills, "line": {"width": 1, "color": LINE}},
            customdata=[[label(picture.tokens[i]), low, high] for i, low, high in spans],
            hovertemplate="%{customdata[0]}: [%{customdata[1]}, %{customdata[2]})<extra></extra>",
            showlegend=False,
        ),
        row=2,
        col=1,
    )
    named = [
        (label(picture.tokens[i], i == picture.selected), (low + high) / 2)
        for i, low, high in spans
        if high - low >= _WIDE_ENOUGH or i == picture.selected
    ]
    figure.add_trace(
        go.Scatter(
            x=[middle for _, middle in named],
            y=[0.82] * len(named),
            mode="text",
            text=[name for name, _ in named],
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        ),
        row=2,
        col=1,
    )
    drawn = [] if picture.uniform is None else [picture.uniform]
    figure.add_trace(
        go.Scatter(
            x=drawn * 2,
            y=[-0.62, 0.5][: 2 * len(drawn)],
            mode="lines+markers",
            line={"color": ERROR.mark, "width": 2},
            marker={"symbol": ["triangle-up", "line-ns"], "size": [11, 1], "color": ERROR.mark},
            hovertemplate="u = %{x}<extra></extra>",
            showlegend=False,
            cliponaxis=False,
        ),
        row=2,
        col=1,
    )
    figure.update_yaxes(range=[-0.75, 1.1], visible=False, row=2, col=1)
    ticks: dict[str, Any] = {"range": [-0.005, 1.005], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    figure.update_xaxes(**ticks, showgrid=False, row=2, col=1)
    note = "no number drawn" if not drawn else f"u = {drawn[0]:.6f}"
    figure.update_xaxes(title_text=f"CDF by token id; {note}", row=2, col=1)
