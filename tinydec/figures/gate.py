"""The acceptance gate as a picture: counts against what was expected, errors against a limit."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tinydec.figures.log_axis import LogAxis, short
from tinydec.figures.palette import CACHED, ERROR
from tinydec.figures.style import LINE, finish

#: Powers of ten left free for the label of the smallest error, which stands to its left.
_LABEL_ROOM = 3


def gate_figure(
    names: Sequence[str],
    counts: Sequence[tuple[float, float]],
    noise: float,
    tolerance: float,
    smallest_failure: float,
) -> go.Figure:
    """Draw counts as bars of what was expected, and three errors on a log axis.

    Args:
        names: what each count counts.
        counts: found and expected of each; expecting nothing is drawn as empty.
        noise: largest error of the correct cache.
        tolerance: the limit.
        smallest_failure: smallest error of a deliberate failure where it can act.
    """
    figure = make_subplots(rows=2, row_heights=[0.58, 0.42], vertical_spacing=0.17)
    shares = [found / expected if expected else 0.0 for found, expected in counts]
    figure.add_trace(
        go.Bar(
            x=shares,
            y=list(names),
            orientation="h",
            marker_color=[(CACHED if share == 1 else ERROR).mark for share in shares],
            text=[f"{found:g} of {expected:g}" for found, expected in counts],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
            showlegend=False,
        ),
        row=1,
        col=1,
    )
    figure.add_vline(x=1, line={"color": LINE, "width": 1}, col=1, row=1)
    around = LogAxis.around([noise, tolerance, smallest_failure])
    axis = LogAxis(around.low - _LABEL_ROOM, around.high)
    points = (
        # Away from the tolerance's line, which may be close.
        (
            "rounding, largest",
            noise,
            CACHED,
            "circle",
            "middle left" if noise > 0 else "middle right",
        ),
        ("tolerance", tolerance, ERROR, "line-ns", "middle right"),
        ("(3) smallest failure", smallest_failure, ERROR, "x-thin", "middle left"),
    )
    for name, value, colour, symbol, side in points:
        figure.add_trace(
            go.Scatter(
                x=axis.place([value]),
                y=[name],
                mode="markers+text",
                text=[f" {short(value, 4)} "],
                textposition=side,
                cliponaxis=False,
                marker={
                    "symbol": symbol,
                    "size": 11,
                    "color": colour.mark,
                    "line": {"width": 2.5, "color": colour.mark},
                },
                hoverinfo="skip",
                showlegend=False,
            ),
            row=2,
            col=1,
        )
    figure.add_vline(
        x=float(axis.place(tolerance)),
        line={"color": ERROR.mark, "dash": "dash", "width": 2},
        row=2,
        col=1,
    )
    figure.update_xaxes(range=[0, 2], tickvals=[0, 0.5, 1], tickformat=".0%", row=1)
    values, labels = axis.ticks(4)
    figure.update_xaxes(type="log", range=axis.range, tickvals=values, ticktext=labels, row=2)
    figure.update_xaxes(title_text="largest logit error", row=2)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return finish(figure, height=320)
