"""How far a recorded run is from its uncached reference: every tensor at every position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from tinydec.figures.log_axis import power, short
from tinydec.figures.palette import ERROR, SEQUENTIAL
from tinydec.figures.style import finish

#: Tensors and positions drawn of a larger model.
MOST_TENSORS = 40
MOST_POSITIONS = 12

#: Exponents of the colour scale: below the noise of float64 to beyond every fault.
LOW, HIGH = -9, 1


def divergence_figure(
    names: Sequence[str],
    errors: NDArray[np.float64],
    first: tuple[str, int] | None,
    tolerance: float,
    *,
    height: int = 300,
) -> go.Figure:
    """Draw errors as cells, tensors in the order of computation, the first failing one marked.

    Args:
        names: of N tensors.
        errors: (N, T) largest difference of each tensor at each position.
        first: tensor and position of the first one beyond the tolerance, or None.
        tolerance: stands in the title of the scale.
        height: pixels.
    """
    place = 0 if first is None else names.index(first[0])
    rows = _window(len(names), place, MOST_TENSORS)
    columns = _window(errors.shape[1], 0 if first is None else first[1], MOST_POSITIONS)
    shown = errors[rows.start : rows.stop, columns.start : columns.stop]
    figure = go.Figure(
        go.Heatmap(
            x=[names[row] for row in rows],
            y=[f"position {column}" for column in columns],
            z=_exponents(shown).T,  # (N, T) -> (T, N)
            customdata=[[repr(float(v)) for v in column] for column in shown.T],
            hovertemplate="%{x}, %{y}: %{customdata}<extra></extra>",
            colorscale=SEQUENTIAL,
            zmin=LOW,
            zmax=HIGH,
            xgap=2,
            ygap=2,
            colorbar={
                "tickvals": list(range(LOW, HIGH + 1, 5)),
                "ticktext": ["0", *(power(e) for e in range(LOW + 5, HIGH + 1, 5))],
                "thickness": 10,
                "len": 1.0,
            },
        )
    )
    if first is not None:
        figure.add_trace(
            go.Scatter(
                x=[first[0]],
                y=[f"position {first[1]}"],
                mode="markers",
                marker={
                    "symbol": "square-open",
                    "size": 16,
                    "color": ERROR.mark,
                    "line": {"width": 3, "color": ERROR.mark},
                },
                hoverinfo="skip",
                showlegend=False,
            )
        )
    figure.update_xaxes(showgrid=False, tickangle=-60, tickfont={"size": 11})
    figure.update_yaxes(showgrid=False, autorange="reversed")
    title = f"largest difference from the uncached run; {short(tolerance)} is accepted"
    return finish(figure, height=height, title={"text": title, "font": {"size": 13}, "x": 0})


def _window(count: int, place: int, most: int) -> range:
    first = min(max(place - most // 2, 0), max(count - most, 0))
    return range(first, min(first + most, count))


def _exponents(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return powers of ten within the scale: 0 at the low end, infinity at the high one."""
    clipped = np.clip(errors, 10.0**LOW, 10.0**HIGH)
    found: NDArray[np.float64] = np.log10(clipped)
    return found
