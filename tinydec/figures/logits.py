"""Rows of logits as bars: one turn of the loop, and all turns of a run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from tinydec.figures.palette import FULL, KEY, QUERY
from tinydec.figures.panels import assemble, axis_id, panel_title, spans

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
    values: Row,
    colours: Sequence[str],
    tokens: Sequence[str],
    what: str,
    *,
    panel: int = 1,
    opacity: float = 1.0,
) -> dict[str, Any]:
    """Return horizontal bars, one per token, with every digit on hover; a trace of a panel."""
    return {
        "type": "bar",
        "x": [float(value) for value in values],
        "y": list(range(len(values))),
        "xaxis": axis_id("x", panel),
        "orientation": "h",
        "marker": {"color": list(colours), "line": {"width": 0}},
        "opacity": opacity,
        "customdata": [[label(t), repr(float(v))] for t, v in zip(tokens, values, strict=True)],
        "hovertemplate": f"%{{customdata[0]}}<br>{what} %{{customdata[1]}}<extra></extra>",
        "showlegend": False,
    }


def marks(
    x: Sequence[float], y: Sequence[float], marker: dict[str, Any], *, panel: int
) -> dict[str, Any]:
    """Return markers without a hover text; a trace of a panel."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "xaxis": axis_id("x", panel),
        "marker": marker,
        "hoverinfo": "skip",
        "showlegend": False,
    }


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
        height: pixels.
    """
    ids = shown_ids([logits], [selected])
    names = [tokens[i] for i in ids]
    colours = [QUERY.mark if i == selected else KEY.mark for i in ids]
    left, right = spans(2, 0.06)
    return assemble(
        [
            bars(logits[ids], colours, names, "logit"),
            bars(probabilities[ids], colours, names, "probability", panel=2),
        ],
        [
            {"domain": left, "nticks": 6},
            {"domain": right, "range": [0, 1.02], "tickvals": [0, 0.5, 1]},
        ],
        [token_axis(names, ids.index(selected))],
        [
            panel_title(f"{len(logits)} final logits", left),
            panel_title("after the policy", right),
        ],
        height=height,
    )


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
        height: pixels.
    """
    steps = shown_steps(len(rows), current)
    ids = shown_ids([rows[s] for s in steps], [selected[s] for s in steps])
    names = [tokens[i] for i in ids]
    places = spans(len(steps), 0.03)
    reach = _common_range([rows[s][ids] for s in steps])
    traces, titles = [], []
    for panel, step in enumerate(steps, start=1):
        here, logits = step == current, rows[step][ids]
        rest = KEY.mark if here else FULL.mark
        colours = [QUERY.mark if i == selected[step] else rest for i in ids]
        what, opacity = f"step {step}, logit", 1.0 if here else 0.55
        traces.append(bars(logits, colours, names, what, panel=panel, opacity=opacity))
        # The selected token has a marker of its own, so that colour is not the only sign.
        row = ids.index(selected[step])
        diamond = {"symbol": "diamond", "size": 9, "color": QUERY.mark}
        traces.append(marks([float(logits[row])], [row], diamond, panel=panel))
        name = f"<b>▼ step {step}</b>" if here else f"step {step}"
        titles.append(panel_title(name, places[panel - 1]))
    return assemble(
        traces,
        [{"domain": place, "nticks": 4, "range": reach} for place in places],
        [token_axis(names)],
        titles,
        height=height,
    )


def _common_range(rows: Sequence[Row]) -> list[float]:
    """Return one range for all panels, so that bars of different steps can be compared."""
    values = np.stack([np.asarray(row, np.float64) for row in rows])
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    space = 0.06 * (high - low) or 1.0
    return [low - space, high + space]
