"""Panels side by side over one vertical axis, put together in one go.

Plotly's own subplots and updates check every property again and again; a layout written down at
once takes a tenth of the time, which every moved control would otherwise cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from tinydec.figures.style import AXIS, layout

Span = tuple[float, float]


def spans(count: int, gap: float) -> list[Span]:
    """Return ``count`` equal parts of [0, 1] with ``gap`` between them."""
    width = (1 - gap * (count - 1)) / count
    return [(n * (width + gap), n * (width + gap) + width) for n in range(count)]


def axis_id(letter: str, number: int) -> str:
    """Return how a trace names an axis: ``x``, ``x2``, ``x3`` …"""
    return letter if number == 1 else f"{letter}{number}"


def panel_title(text: str, span: Span, *, top: float = 1.0, size: int = 13) -> dict[str, Any]:
    """Return an annotation centred above a panel."""
    return {
        "text": text,
        "x": (span[0] + span[1]) / 2,
        "y": top,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": size},
    }


def assemble(
    traces: Sequence[Mapping[str, Any]],
    x_axes: Sequence[Mapping[str, Any]],
    y_axes: Sequence[Mapping[str, Any]],
    titles: Sequence[Mapping[str, Any]],
    *,
    height: int,
    **overrides: Any,
) -> go.Figure:
    """Return a figure in the common look.

    Args:
        traces: plotly traces as plain values; each names its axes with :func:`axis_id`.
        x_axes: properties of the horizontal axes, numbered from 1.
        y_axes: properties of the vertical axes, numbered from 1.
        titles: annotations.
        height: pixels.
        overrides: further layout properties.
    """
    axes = {
        axis_id(f"{letter}axis", number): {**AXIS, **given}
        for letter, group in (("x", x_axes), ("y", y_axes))
        for number, given in enumerate(group, start=1)
    }
    look = layout(height=height, annotations=list(titles), **axes, **overrides)
    return go.Figure({"data": list(traces), "layout": look})
