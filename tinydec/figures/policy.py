"""From logits to a token: the stages of a policy as bars, and the CDF strip with the draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from tinydec.figures.logits import bars, label, marks, shown_ids, token_axis
from tinydec.figures.palette import ERROR, FULL, KEY, QUERY, rgba
from tinydec.figures.panels import assemble, panel_title, spans
from tinydec.figures.style import LINE

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
    colours = [QUERY.mark if i == picture.selected else KEY.mark for i in ids]
    stages = (
        (picture.logits, "logit"),
        (picture.softmax, "softmax"),
        (picture.top_k, "after top-k"),
        (picture.probabilities, "after top-p"),
        (picture.shares, "share of the seeds"),
    )
    traces = [
        bars(values[ids], colours if n < 5 else [FULL.mark] * len(ids), names, what, panel=n)
        for n, (values, what) in enumerate(stages, start=1)
    ]
    cross = {"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": ERROR.mark}}
    for panel, gone in ((3, picture.top_k == 0), (4, ~picture.kept)):
        places = np.flatnonzero(gone[ids]).tolist()
        traces.append(marks([0.04] * len(places), places, cross, panel=panel))
    # The probability beside the share of the seeds.
    expected = {"symbol": "line-ns", "size": 14, "line": {"width": 2.5, "color": QUERY.mark}}
    shares = picture.probabilities[ids].tolist()
    traces.append(marks(shares, range(len(ids)), expected, panel=5))
    panels = spans(5, 0.025)
    probability = {"range": [-0.09, 1.18], "tickvals": [0, 1]}
    x_axes = [
        {"domain": panels[0], "nticks": 3},
        *({"domain": p} | probability for p in panels[1:]),
    ]
    note = "no number drawn" if picture.uniform is None else f"u = {picture.uniform:.6f}"
    x_axes.append(
        {
            "anchor": "y2",
            "range": [-0.005, 1.005],
            "tickvals": [0, 0.25, 0.5, 0.75, 1],
            "showgrid": False,
            "zeroline": False,
            "title": {"text": f"CDF by token id; {note}", "standoff": 8},
        }
    )
    stages_axis = token_axis(names, ids.index(picture.selected)) | {"domain": [0.36, 1]}
    strip_axis = {"domain": [0, 0.17], "range": [-0.75, 1.1], "visible": False, "anchor": "x6"}
    return assemble(
        [*traces, *_strip(picture)],
        x_axes,
        [stages_axis, strip_axis],
        [
            panel_title(text, span, size=12)
            for text, span in zip(picture.titles, panels, strict=True)
        ],
        height=height,
        margin={"l": 8, "r": 12, "t": 42, "b": 8},
        barmode="overlay",
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


def _strip(picture: PolicyPicture) -> list[dict[str, Any]]:
    """Return the traces of the strip: intervals, their labels, the number drawn."""
    intervals = strip_intervals(picture)
    shades = [rgba(KEY.mark, 0.55), rgba(KEY.mark, 0.28)]
    fills = [
        QUERY.mark if token_id == picture.selected else shades[n % 2]
        for n, (token_id, _, _) in enumerate(intervals)
    ]
    named = [
        (label(picture.tokens[i], i == picture.selected), (low + high) / 2)
        for i, low, high in intervals
        if high - low >= _WIDE_ENOUGH or i == picture.selected
    ]
    drawn = [] if picture.uniform is None else [picture.uniform]
    common = {"xaxis": "x6", "yaxis": "y2", "showlegend": False}
    bar = {
        "type": "bar",
        "base": [low for _, low, _ in intervals],
        "x": [high - low for _, low, high in intervals],
        "y": [0] * len(intervals),
        "width": 0.9,
        "orientation": "h",
        "marker": {"color": fills, "line": {"width": 1, "color": LINE}},
        "customdata": [[label(picture.tokens[i]), low, high] for i, low, high in intervals],
        "hovertemplate": "%{customdata[0]}: [%{customdata[1]}, %{customdata[2]})<extra></extra>",
    }
    names = {
        "type": "scatter",
        "mode": "text",
        "x": [middle for _, middle in named],
        "y": [0.82] * len(named),
        "text": [name for name, _ in named],
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    pointer = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": drawn * 2,
        "y": [-0.62, 0.5][: 2 * len(drawn)],
        "line": {"color": ERROR.mark, "width": 2},
        "marker": {
            "symbol": ["triangle-up", "line-ns"],
            "size": [11, 1],
            "color": ERROR.mark,
            "opacity": 1,
        },
        "hovertemplate": "u = %{x}<extra></extra>",
        "cliponaxis": False,
    }
    return [bar | common, names | common, pointer | common]
