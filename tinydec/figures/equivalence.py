"""Pictures of the comparison: prefixes, tensors, and two rows with one highest logit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tinydec.figures.log_axis import LogAxis, short
from tinydec.figures.palette import CACHED, ERROR, FULL, SEQUENTIAL
from tinydec.figures.style import finish

Floats = NDArray[np.float64]

#: Marker of each deliberate failure, in their order; a third one starts anew.
_MARKERS = ("x-thin", "diamond-open")
#: Tokens or tensors above which an axis shows only some of its labels.
_MOST_LABELS = 20


def shortened(text: str, longest: int = 16) -> str:
    """Return a label of at most ``longest`` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _shown(text: str, longest: int = 16) -> str:
    """Return a label for plotly, which reads angle brackets as tags and links."""
    return escape(shortened(text, longest), quote=False)


def _literal(texts: Sequence[str]) -> list[str]:
    return [escape(text, quote=False) for text in texts]


def prefixes_figure(
    prefixes: Sequence[str],
    tokens: Sequence[str],
    differences: Floats,
    errors: Floats,
    failures: Mapping[str, Floats],
    tolerance: float,
) -> go.Figure:
    """Draw n prefixes as rows: differences by token beside the largest one on a log axis.

    Args:
        prefixes: n labels, first one on top.
        tokens: V token strings.
        differences: (n, V) ``|full - cached|``.
        errors: (n,) the largest of each row.
        failures: (n,) errors by the fault's name; NaN where a fault cannot act.
        tolerance: where the line stands.
    """
    axis = LogAxis.around([*errors, tolerance, *(v for found in failures.values() for v in found)])
    rows = np.arange(len(prefixes))
    figure = make_subplots(
        cols=2, shared_yaxes=True, column_widths=[0.38, 0.62], horizontal_spacing=0.06
    )
    finite = differences[np.isfinite(differences)]
    figure.add_trace(
        go.Heatmap(
            z=np.where(np.isfinite(differences), differences, np.nanmax([*finite, 1.0])),
            x=np.arange(len(tokens)),
            y=rows,
            customdata=np.broadcast_to(np.array(_literal(prefixes))[:, None], differences.shape),
            text=np.broadcast_to(np.array(_literal(tokens)), differences.shape),
            hovertemplate="%{customdata}<br>%{text}: %{z:.4e}<extra>|full − cached|</extra>",
            zmin=0,
            zmax=float(max(finite.max(initial=0.0), np.finfo(np.float64).tiny)),
            colorscale=SEQUENTIAL,
            showscale=False,
            xgap=1,
            ygap=1,
        ),
        col=1,
        row=1,
    )
    series = {"cached": (errors, CACHED, "circle")} | {
        name: (found, ERROR, _MARKERS[i % len(_MARKERS)])
        for i, (name, found) in enumerate(failures.items())
    }
    for name, (found, colour, symbol) in series.items():
        figure.add_trace(
            go.Scatter(
                x=axis.place(found),
                y=rows,
                customdata=np.stack([np.array(_literal(prefixes), object), found], axis=1),
                mode="markers",
                name=name.replace("-", " "),
                marker={
                    "color": colour.mark,
                    "symbol": symbol,
                    "size": 8,
                    "line": {"width": 2, "color": colour.mark},
                },
                hovertemplate="%{customdata[0]}: %{customdata[1]:.4e}<extra></extra>",
            ),
            col=2,
            row=1,
        )
    figure.add_trace(
        go.Scatter(
            x=axis.place([tolerance] * 2),
            y=[-0.6, len(prefixes) - 0.4],
            mode="lines",
            name=f"tolerance {short(tolerance)}",
            line={"color": ERROR.mark, "dash": "dash", "width": 2},
            hoverinfo="skip",
        ),
        col=2,
        row=1,
    )
    _tokens_axis(figure, tokens)
    values, labels = axis.ticks(5)
    figure.update_xaxes(title_text="|full − cached|", col=1, row=1)
    figure.update_xaxes(
        type="log", range=axis.range, tickvals=values, ticktext=labels, col=2, row=1,
        title_text="largest error",
    )  # fmt: skip
    figure.update_yaxes(range=[len(prefixes) - 0.4, -0.6], showgrid=False, zeroline=False)
    figure.update_yaxes(
        tickvals=rows, ticktext=[_shown(p) for p in prefixes], tickfont={"size": 11}, col=1
    )
    return finish(figure, height=140 + 14 * len(prefixes))


def tensors_figure(
    names: Sequence[str],
    positions: Sequence[str],
    errors: Floats,
    tolerance: float,
    first: tuple[str, int] | None,
) -> go.Figure:
    """Draw the largest difference of N tensors at T positions as a strip of cells.

    Args:
        names: N tensors in the order of computation, from left to right.
        positions: T labels, first one on top.
        errors: (N, T); an exact 0 stays empty.
        tolerance: a cell beyond it is marked.
        first: first tensor that differs and its position, or None.
    """
    axis = LogAxis.around([*errors.ravel(), tolerance])
    with np.errstate(divide="ignore"):
        exponents = np.log10(axis.place(errors))
    beyond = np.argwhere(errors > tolerance)
    figure = go.Figure(
        go.Heatmap(
            z=np.where(errors > 0, exponents, np.nan).T,
            x=np.arange(len(names)),
            y=np.arange(len(positions)),
            text=[[f"{names[n]}<br>{label}: {_exact(errors[n, t])}" for n in range(len(names))]
                  for t, label in enumerate(_literal(positions))],
            hovertemplate="%{text}<extra></extra>",
            zmin=axis.low,
            zmax=axis.high,
            colorscale=SEQUENTIAL,
            showscale=False,
            xgap=1,
            ygap=2,
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=beyond[:, 0],
            y=beyond[:, 1],
            mode="markers",
            name="beyond the tolerance",
            marker={
                "symbol": "circle-open",
                "size": 9,
                "color": ERROR.mark,
                "line": {"width": 2, "color": ERROR.mark},
            },
            hoverinfo="skip",
            showlegend=bool(len(beyond)),
        )
    )
    if first is not None:
        figure.add_annotation(
            x=list(names).index(first[0]),
            y=first[1],
            text=f"first: {first[0]}",
            ay=-34,
            ax=0,
            arrowcolor=ERROR.mark,
            arrowwidth=2,
        )
    step = max(1, math.ceil(len(names) / 46))
    figure.update_xaxes(
        tickvals=list(range(0, len(names), step)),
        ticktext=list(names[::step]),
        tickangle=-90,
        tickfont={"size": 10},
        showgrid=False,
        zeroline=False,
        range=[-0.5, len(names) - 0.5],
    )
    figure.update_yaxes(
        tickvals=list(range(len(positions))),
        ticktext=[_shown(label) for label in positions],
        range=[len(positions) - 0.5, -0.5 - 0.9 * (first is not None)],
        showgrid=False,
        zeroline=False,
    )
    return finish(figure, height=210 + 36 * len(positions))


def choices_figure(
    tokens: Sequence[str], full: Floats, broken: Floats, names: tuple[str, str]
) -> go.Figure:
    """Draw two logits rows (V,) side by side and mark the highest of each.

    Args:
        tokens: V token strings.
        full: the reference's row.
        broken: the other row.
        names: what the two are called.
    """
    figure = go.Figure()
    places = np.arange(len(tokens))
    for row, colour, name, shift in (
        (full, FULL, names[0], -0.2),
        (broken, ERROR, names[1], 0.2),
    ):
        top = int(row.argmax())
        figure.add_trace(
            go.Bar(
                x=places + shift,
                y=row,
                width=0.36,
                name=name,
                marker_color=colour.mark,
                marker_pattern_shape="" if colour is FULL else "/",
                customdata=_literal(tokens),
                hovertemplate=f"%{{customdata}}: %{{y:.6f}}<extra>{name}</extra>",
            )
        )
        figure.add_annotation(
            x=top + shift,
            y=max(float(row[top]), 0.0),
            text="▼",
            showarrow=False,
            yanchor="bottom",
            font={"color": colour.mark},
        )
    _tokens_axis(figure, tokens)
    figure.update_yaxes(title_text="logit")
    return finish(figure, height=330, barmode="overlay")


def _tokens_axis(figure: go.Figure, tokens: Sequence[str]) -> None:
    step = max(1, math.ceil(len(tokens) / _MOST_LABELS))
    # A panel beside another is narrow on a phone: labels stand upright there.
    where = {} if figure._grid_ref is None else {"col": 1, "row": 1, "tickangle": -90}
    figure.update_xaxes(
        tickvals=list(range(0, len(tokens), step)),
        ticktext=[_shown(token, 8) for token in tokens[::step]],
        tickfont={"size": 10},
        showgrid=False,
        zeroline=False,
        **where,
    )


def _exact(value: float) -> str:
    return "exactly equal" if value == 0 else f"{value:.4e}"
