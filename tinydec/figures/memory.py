"""Pictures of memory and work: payload against length, real models, work of each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tinydec.figures.palette import CACHED, ERROR, FULL, KEY
from tinydec.figures.style import LINE, finish

_DASHES = ("dot", "solid", "dash", "longdash")


def payload_figure(
    tokens: Sequence[int],
    lines: Mapping[str, Sequence[int]],
    measured: Mapping[str, Sequence[int]],
    chosen: str,
    allocated: int,
    current: int,
    slope: str,
) -> go.Figure:
    """Draw bytes against tokens: the formula as lines, what was measured as markers.

    Args:
        tokens: lengths T.
        lines: bytes by the formula for each number format.
        measured: bytes read off the arrays for each number format in which the weights fit.
        chosen: the number format in use.
        allocated: bytes that the chosen format sets aside.
        current: T of the run at hand.
        slope: what the chosen line is called, such as ``64 T bytes``.
    """
    figure = go.Figure()
    for index, (dtype, values) in enumerate(lines.items()):
        mine = dtype == chosen
        figure.add_trace(
            go.Scatter(
                x=list(tokens),
                y=list(values),
                mode="lines",
                name=f"{slope}, {dtype}" if mine else f"formula, {dtype}",
                line={
                    "color": (KEY if mine else FULL).mark,
                    "width": 3 if mine else 1.5,
                    "dash": _DASHES[index % len(_DASHES)],
                },
                hovertemplate="T = %{x}: %{y} bytes<extra>%{fullData.name}</extra>",
            )
        )
        if dtype not in measured:
            continue
        figure.add_trace(
            go.Scatter(
                x=list(tokens),
                y=list(measured[dtype]),
                mode="markers",
                name="measured nbytes",
                legendgroup="measured",
                showlegend=mine,
                marker={
                    "color": CACHED.mark,
                    "size": 9 if mine else 5,
                    "symbol": "circle" if mine else "circle-open",
                },
                hovertemplate="T = %{x}: %{y} bytes<extra>measured, " + dtype + "</extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[tokens[0], tokens[-1]],
            y=[allocated] * 2,
            mode="lines",
            name="set aside",
            line={"color": ERROR.mark, "dash": "dash", "width": 2},
            hovertemplate="%{y} bytes<extra>set aside</extra>",
        )
    )
    figure.add_vline(x=current, line={"color": LINE, "width": 1})
    figure.update_xaxes(title_text="T, consumed tokens", dtick=max(1, math.ceil(len(tokens) / 17)))
    figure.update_yaxes(ticksuffix=" B", rangemode="tozero")
    return finish(figure, height=330)


@dataclass(frozen=True)
class Growth:
    """One model's line: its lengths, bytes, and whether its sizes are verified."""

    name: str
    tokens: Sequence[int]
    bytes: Sequence[int]
    verified: bool


def growth_figure(models: Sequence[Growth], chosen: str, tokens: int, limit: int) -> go.Figure:
    """Draw the bytes of one request against its length, every model, one of them on top.

    Args:
        models: lines; those not verified are dashed.
        chosen: name of the model on top.
        tokens: length at which the vertical line stands.
        limit: bytes of memory, the horizontal line.
    """
    figure = go.Figure()
    for model in sorted(models, key=lambda m: m.name == chosen):
        mine = model.name == chosen
        figure.add_trace(
            go.Scatter(
                x=list(model.tokens),
                y=list(model.bytes),
                mode="lines",
                name=model.name if mine else "other models",
                legendgroup="mine" if mine else "others",
                showlegend=mine or model is models[0 if models[0].name != chosen else 1],
                line={
                    "color": (CACHED if mine else FULL).mark,
                    "width": 3.5 if mine else 1,
                    "dash": "solid" if model.verified else "dot",
                },
                customdata=[model.name + ("" if model.verified else " (not verified)")]
                * len(model.tokens),
                hovertemplate="%{customdata}<br>%{x:,} tokens: %{y:.4s}B<extra></extra>",
            )
        )
    edges = [min(m.tokens[0] for m in models), max(m.tokens[-1] for m in models)]
    figure.add_trace(
        go.Scatter(
            x=edges,
            y=[limit] * 2,
            mode="lines",
            name="memory",
            line={"color": ERROR.mark, "dash": "dash", "width": 2},
            hoverinfo="skip",
        )
    )
    figure.add_vline(x=tokens, line={"color": LINE, "width": 1.5})
    powers = range(10, 51, 5)
    units = ("KiB", "MiB", "GiB", "TiB", "PiB")
    lowest = min(m.bytes[0] for m in models)
    highest = max([limit, *(m.bytes[-1] for m in models)])
    figure.update_yaxes(
        type="log",
        tickvals=[2**p for p in powers],
        ticktext=[f"{2 ** (p % 10)} {units[p // 10 - 1]}" for p in powers],
        range=[math.log10(lowest) - 0.1, math.log10(highest) + 0.2],
    )
    figure.update_xaxes(
        type="log",
        tickvals=[1, 16, 256, 4096, 65536],
        ticktext=["1", "16", "256", "4096", "65 536"],
        title_text="tokens of one request",
    )
    return finish(figure, height=340)


def work_figure(
    lengths: Sequence[int],
    cached: Sequence[int],
    full: Sequence[int],
    cached_sum: Sequence[int],
    full_sum: Sequence[int],
) -> go.Figure:
    """Draw multiply-adds of each step on the left and their running sums on the right.

    Args:
        lengths: tokens seen by each step.
        cached: per step with a cache.
        full: per step without one.
        cached_sum: running sum with a cache.
        full_sum: running sum without one.
    """
    figure = make_subplots(
        cols=2, horizontal_spacing=0.12, subplot_titles=("each step", "in total")
    )
    for col, pair in ((1, (full, cached)), (2, (full_sum, cached_sum))):
        for values, colour, name, symbol in zip(
            pair,
            (FULL, CACHED),
            ("without a cache", "with a cache"),
            ("square", "circle"),
            strict=True,
        ):
            figure.add_trace(
                go.Scatter(
                    x=list(lengths),
                    y=list(values),
                    mode="lines+markers" if len(lengths) <= 40 else "lines",
                    name=name,
                    legendgroup=name,
                    showlegend=col == 1,
                    marker={"symbol": symbol, "size": 8},
                    line={"color": colour.mark, "width": 2.5},
                    hovertemplate="%{x} tokens: %{y:,}<extra>" + name + "</extra>",
                ),
                col=col,
                row=1,
            )
    figure.update_xaxes(title_text="tokens seen", dtick=max(1, math.ceil(len(lengths) / 6)))
    figure.update_yaxes(rangemode="tozero", tickformat="~s")
    finish(figure, height=330)
    figure.update_layout(margin={"t": 48}, legend={"y": 1.12})
    return figure


def footprint_figure(names: Sequence[str], sizes: Sequence[int]) -> go.Figure:
    """Draw bytes as bars on a log axis: the payload first, then what lies beside it.

    Args:
        names: what is held.
        sizes: bytes of each; a 0 has no bar.
    """
    figure = go.Figure(
        go.Bar(
            x=list(sizes),
            y=list(names),
            orientation="h",
            marker_color=[CACHED.mark if i == 0 else FULL.mark for i in range(len(names))],
            text=[f"{size:,}".replace(",", " ") if size > 9999 else str(size) for size in sizes],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:,} bytes<extra></extra>",
        )
    )
    largest = max(*sizes, 10)
    figure.update_xaxes(
        type="log", title_text="bytes", range=[0, math.log10(largest) + 0.7], dtick=1
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return finish(figure, height=300)
