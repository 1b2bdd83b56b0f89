"""Why a tolerance lies where it lies: noise and faults on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tinydec.figures.log_axis import LogAxis
from tinydec.figures.palette import CACHED, ERROR
from tinydec.figures.style import finish

Floats = NDArray[np.float64]

#: The axis reaches from below the noise of float64 to above every fault.
AXIS = LogAxis(-17, 2)
_DASHES = ("dot", "dash", "solid")


def tolerance_figure(
    noise: Mapping[str, Floats],
    effects: Mapping[str, Floats],
    names: Mapping[str, Sequence[str]],
    tolerance: float,
    curve: Floats,
    missed: Floats,
    refused: Mapping[str, Floats],
) -> go.Figure:
    """Draw strips of points over the shares that each tolerance gives.

    Args:
        noise: errors of correct models by number format.
        effects: effects of faults by group.
        names: what hovering over each point of a group says.
        tolerance: where the line stands.
        curve: (n,) tolerances of the two shares.
        missed: (n,) share of faults that pass.
        refused: (n,) share of correct models that fail, by number format.
    """
    groups = [*noise, *effects]
    figure = make_subplots(
        rows=2, shared_xaxes=True, row_heights=[0.58, 0.42], vertical_spacing=0.05
    )
    for place, group in enumerate(groups):
        good = group in noise
        values = noise[group] if good else effects[group]
        figure.add_trace(
            go.Scatter(
                x=AXIS.place(values),
                y=place + spread(len(values)),
                mode="markers",
                name="correct" if good else "faulty",
                legendgroup=str(good),
                showlegend=group in (groups[0], groups[-1]),
                text=list(names.get(group, [""] * len(values))),
                customdata=values,
                hovertemplate="%{text} %{customdata:.3e}<extra>" + group + "</extra>",
                marker={
                    "color": (CACHED if good else ERROR).mark,
                    "symbol": "circle" if good else "x-thin",
                    "size": 4 if good else 7,
                    "line": {
                        "width": 0 if good else 1.5,
                        "color": (CACHED if good else ERROR).mark,
                    },
                },
            ),
            row=1,
            col=1,
        )
    lines = {"faults missed": (missed, ERROR, "solid")} | {
        f"refused: {dtype}": (share, CACHED, _DASHES[i % len(_DASHES)])
        for i, (dtype, share) in enumerate(refused.items())
    }
    for name, (share, colour, dash) in lines.items():
        figure.add_trace(
            go.Scatter(
                x=curve,
                y=share,
                mode="lines",
                name=name,
                line={"color": colour.mark, "dash": dash, "width": 2},
                hovertemplate="%{x:.1e}: %{y:.1%}<extra>" + name + "</extra>",
            ),
            row=2,
            col=1,
        )
    figure.add_vline(
        x=float(AXIS.place(tolerance)),
        line={"color": ERROR.mark, "dash": "dash", "width": 2},
        row="all",
        col=1,
    )
    ticks, labels = AXIS.ticks(8)
    figure.update_xaxes(type="log", range=AXIS.range, tickvals=ticks, ticktext=labels)
    figure.update_xaxes(title_text="largest logit difference", row=2)
    figure.update_yaxes(
        tickvals=list(range(len(groups))),
        ticktext=groups,
        range=[len(groups) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        row=1,
    )
    figure.update_yaxes(range=[-0.04, 1.04], tickformat=".0%", tickvals=[0, 0.5, 1], row=2)
    return finish(figure, height=370)


def spread(count: int) -> Floats:
    """Return offsets of at most 0.32 that keep points on one strip apart, always the same ones.

    The golden ratio's multiples modulo 1 leave no gaps and no heaps.
    """
    golden = (5**0.5 - 1) / 2
    return np.asarray((np.arange(count) * golden % 1.0 - 0.5) * 0.64, dtype=np.float64)
