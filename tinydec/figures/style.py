"""The one look of all figures: layout, fonts, margins, and the CSS that themes their text."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

#: The system's monospaced face: numbers look the same in tables, cells and charts.
MONOSPACE = 'ui-monospace, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace'

#: Plotly's text takes the page's colour in either theme (Streamlit's own grey reaches 3.7:1).
#: Text that lies on coloured marks (class ``bartext``) follows too: keep it outside the bars.
PLOTLY_CSS = """
.js-plotly-plot .main-svg text { fill: currentColor !important; }
.js-plotly-plot .hoverlayer text { fill: inherit !important; }
"""

#: What every chart is shown with: no toolbar, no logo, no zoom by scrolling past it.
CONFIG: dict[str, Any] = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False}

GRID = "rgba(128, 128, 128, 0.22)"
LINE = "rgba(128, 128, 128, 0.55)"


def layout(*, height: int = 320, **overrides: Any) -> dict[str, Any]:
    """Return layout properties for ``figure.update_layout``.

    Args:
        height: pixels; a page's main picture fits above the fold at up to 380.
        overrides: further properties, which win.
    """
    base: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"family": MONOSPACE, "size": 13},
        "hoverlabel": {"font": {"family": MONOSPACE, "size": 13}},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "xanchor": "left",
            "yanchor": "bottom",
            "title": {"text": ""},
        },
        "dragmode": False,
        "bargap": 0.25,
        "transition": {"duration": 0},
    }
    return base | overrides


AXIS: dict[str, Any] = {
    "automargin": True,
    "gridcolor": GRID,
    "zerolinecolor": LINE,
    "linecolor": LINE,
    "fixedrange": True,
    "title": {"standoff": 8},
}


def finish(figure: go.Figure, *, height: int = 320, **overrides: Any) -> go.Figure:
    """Apply the common layout and axes to a figure and return it.

    Call it last in a function that builds a figure, so that every figure looks alike:
    quiet grid, no zooming (a page is scrolled by touch over it), monospaced labels.
    """
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    figure.update_layout(**layout(height=height, **overrides))
    return figure
