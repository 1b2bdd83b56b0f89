"""Rows of logits as bars: one turn of the loop, and all turns of a run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tinydec.figures.palette import FULL, KEY, QUERY
from tinydec.figures.style import finish

Row = NDArray[np.floating]

#: Tokens drawn of a larger vocabulary, and steps drawn of a longer run.
MOST_TOKENS = 12
MOST_STEPS = 4

_LONGEST_LABEL = 10


def shown_ids(
    rows: Sequence[Row], always: Sequence[int] = (), most: int = MOST_TOKENS
) -> list[int]:
    """Return the ids to draw, ascending: all, or those of the highest values in any row.

    Args:
        rows: (V,) each.
        always: ids that are drawn in any case.
        most: how many are drawn at most, unless ``always`` holds more.
    """
    highest = np.max(np.stack([np.asarray(row, np.float64) for row in rows]), axis=0)  # (V,)
    chosen = dict.fromkeys(always)
    for token_id in np.argsort(-highest, kind="stable").tolist():
        if len(chosen) >= most:
            break
        chosen[token_id] = None
    return sorted(chosen)


def shown_steps(count: int, current: int, most: int = MOST_STEPS) -> range:
    """Return the steps to draw: all, or a window of ``most`` that holds the current one."""
    first = min(max(current - most // 2, 0), max(count - most, 0))
    return range(first, min(first + most, count))


def label(token: str, selected: bool = False) -> str:
    """Return a token as text of a chart: short, and with its angle brackets kept."""
    text = token if len(token) <= _LONGEST_LABEL else token[: _LONGEST_LABEL - 1] + "…"
    return ("▶ " if selected else "") + escape(text, quote=False)


def token_axis(tokens: Sequence[str], selected: int | None = None) -> dict[str, Any]:
    """Return properties of a vertical axis with one place per token, the first on top."""
    return {
        "tickvals": list(range(len(tokens))),
        "ticktext": [label(token, index == selected) for index, token in enumerate(tokens)],
        "range": [len(tokens) - 0.4, -0.6],
        "showgrid": False,
        "zeroline": False,
    }


def bars(
    values: Row, colours: Sequence[str], tokens: Sequence[str], what: str, opacity: float = 1.0
) -> go.Bar:
    """Return horizontal bars, one per token, with every digit on hover."""
    return go.Bar(
        x=[float(value) for value in values],
        y=list(range(len(values))),
        orientation="h",
        marker={"color": list(colours), "line": {"width": 0}},
        opacity=opacity,
        customdata=[
            [label(token), repr(float(v))] for token, v in zip(tokens, values, strict=True)
        ],
        hovertemplate=f"%{{customdata[0]}}<br>{what} %{{customdata[1]}}<extra></extra>",
        showlegend=False,
    )


def turn_figure(
    tokens: Sequence[str],
    logits: Row,
    probabilities: Row,
    selected: int,
    *,
    height: int = 250,
) -> go.Figure:
    """Return one turn of the loop: the final logits row, and the policy's probabilities.

    Args:
        tokens: V token strings; the highest are drawn of a large vocabulary.
        logits: (V,).
        probabilities: (V,) after the policy.
        selected: the id that the policy returned; its bars are the purple ones, marked ▶.
    """
    ids = shown_ids([logits], [selected])
    names = [tokens[i] for i in ids]
    colours = [QUERY.mark if i == selected else KEY.mark for i in ids]
    figure = make_subplots(
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        subplot_titles=(f"{len(logits)} final logits", "after the policy"),
    )
    figure.add_trace(bars(logits[ids], colours, names, "logit"), row=1, col=1)
    figure.add_trace(bars(probabilities[ids], colours, names, "probability"), row=1, col=2)
    figure.update_annotations(font_size=13)
    axis = token_axis(names, ids.index(selected))
    figure.update_yaxes(**axis)
    figure.update_xaxes(nticks=6)
    figure.update_xaxes(range=[0, 1.02], nticks=4, col=2)
    return finish(figure, height=height, margin={"l": 8, "r": 8, "t": 30, "b": 8})


def steps_figure(
    tokens: Sequence[str],
    rows: Sequence[Row],
    selected: Sequence[int],
    current: int,
    *,
    height: int = 270,
) -> go.Figure:
    """Return the final logits row of every step side by side, the current one in colour.

    Args:
        tokens: V token strings.
        rows: (V,) logits for each step of the run.
        selected: the returned id of each step.
        current: the step to point at.
    """
    steps = shown_steps(len(rows), current)
    ids = shown_ids([rows[s] for s in steps], [selected[s] for s in steps])
    names = [tokens[i] for i in ids]
    figure = make_subplots(
        cols=len(steps),
        shared_yaxes=True,
        horizontal_spacing=0.16 / len(steps),
        subplot_titles=[f"<b>▼ step {s}</b>" if s == current else f"step {s}" for s in steps],
    )
    for column, step in enumerate(steps, start=1):
        rest = KEY.mark if step == current else FULL.mark
        colours = [QUERY.mark if i == selected[step] else rest for i in ids]
        strength = 1.0 if step == current else 0.55
        trace = bars(rows[step][ids], colours, names, f"step {step}, logit", strength)
        figure.add_trace(trace, row=1, col=column)
        # The selected token has a marker of its own, so that colour is not the only sign.
        place = ids.index(selected[step])
        figure.add_trace(_pointer(float(rows[step][ids[place]]), place), row=1, col=column)
    figure.update_yaxes(**token_axis(names))
    figure.update_annotations(font_size=13)
    figure.update_xaxes(nticks=4, range=_common_range([rows[s][ids] for s in steps]))
    return finish(figure, height=height, margin={"l": 8, "r": 8, "t": 30, "b": 8})


def _common_range(rows: Sequence[Row]) -> list[float]:
    """Return one range for all panels, so that bars of different steps can be compared."""
    values = np.stack([np.asarray(row, np.float64) for row in rows])
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    space = 0.06 * (high - low) or 1.0
    return [low - space, high + space]


def _pointer(value: float, place: int) -> go.Scatter:
    return go.Scatter(
        x=[value],
        y=[place],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": QUERY.mark},
        hoverinfo="skip",
        showlegend=False,
    )
