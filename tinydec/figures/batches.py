"""Every row of a batch against its solo run, on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from tinydec.figures.log_axis import LogAxis
from tinydec.figures.palette import CACHED, ERROR
from tinydec.figures.style import finish
from tinydec.verification.isolation import IsolationRecord

#: From an exact 0 to beyond every fault.
AXIS = LogAxis(-17, 2)
_SYMBOLS = {"left": "triangle-left", "right": "triangle-right", "ragged": "circle"}
_OFFSETS = {"left": -0.28, "right": 0.0, "ragged": 0.28}


def isolation_figure(
    records: Mapping[str, Sequence[IsolationRecord]], tolerance: float, *, height: int = 300
) -> go.Figure:
    """Draw each row's largest logit error in every layout, with the tolerance line.

    A row that fails in anything, tokens, draws and stop reason included, is an orange cross.

    Args:
        records: by layout, in the same order of rows.
        tolerance: where the line stands.
        height: pixels.
    """
    rows = [record.row for record in next(iter(records.values()))]
    figure = go.Figure()
    for layout, found in records.items():
        figure.add_trace(
            go.Scatter(
                x=AXIS.place([record.max_abs_error for record in found]),
                y=[rows.index(record.row) + _OFFSETS[layout] for record in found],
                mode="markers",
                name=layout,
                customdata=[[repr(record.max_abs_error), _verdict(record)] for record in found],
                hovertemplate=("%{customdata[0]}<br>%{customdata[1]}<extra>" + layout + "</extra>"),
                marker={
                    "symbol": ["x" if not r.passed else _SYMBOLS[layout] for r in found],
                    "color": [(CACHED if r.passed else ERROR).mark for r in found],
                    "size": 9,
                },
            )
        )
    figure.add_vline(
        x=float(AXIS.place(tolerance)), line={"color": ERROR.mark, "dash": "dash", "width": 2}
    )
    values, labels = AXIS.ticks(8)
    figure.update_xaxes(
        type="log",
        range=AXIS.range,
        tickvals=values,
        ticktext=labels,
        title_text="largest logit difference",
    )
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=rows,
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    return finish(figure, height=height)


def _verdict(record: IsolationRecord) -> str:
    broken = [
        name
        for name, good in (
            ("logits", record.max_abs_error <= record.tolerance),
            ("tokens", record.tokens_equal or record.excused),
            ("draws", record.draws_equal),
            ("stop reason", record.stop_equal),
        )
        if not good
    ]
    return "equals its solo run" if not broken else f"differs: {', '.join(broken)}"
