"""How far the logits of the input that does not fit are off, token by token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tinydec.figures.logits import label, shown_ids
from tinydec.figures.palette import CACHED, ERROR, Colour
from tinydec.figures.style import finish
from tinydec.verification.overflow import REPREFILL, SLIDE, OverflowReport

_LOOKS: dict[str, tuple[Colour, str]] = {SLIDE: (ERROR, "x"), REPREFILL: (CACHED, "")}


def difference_figure(
    report: OverflowReport, tokens: Sequence[str], *, height: int = 260
) -> go.Figure:
    """Return a bar for each token and each way: its logit minus that of the full forward.

    Args:
        report: the three ways; the refusal has no logits and no bars.
        tokens: the vocabulary; of a large one the tokens with the highest logits are drawn.
        height: pixels.
    """
    ids = shown_ids([report.reference])
    reference = report.reference.astype(np.float64)
    names = [label(tokens[i]) for i in ids]
    figure = go.Figure()
    for outcome in report.outcomes:
        if outcome.judged is None:
            continue
        colour, shape = _LOOKS[outcome.method]
        logits = outcome.judged.logits.astype(np.float64)
        figure.add_trace(
            go.Bar(
                x=list(range(len(ids))),
                y=[float(logits[i] - reference[i]) for i in ids],
                name=outcome.method,
                marker={"color": colour.mark, "pattern": {"shape": shape, "solidity": 0.25}},
                customdata=[(name, float(logits[i])) for name, i in zip(names, ids, strict=True)],
                hovertemplate="%{customdata[0]}: off by %{y:.6g}"
                "<br>logit %{customdata[1]:.7g}<extra></extra>",
            )
        )
    figure.update_xaxes(tickvals=list(range(len(ids))), ticktext=names, showgrid=False)
    figure.update_xaxes(range=[-0.6, len(ids) - 0.4], zeroline=False)
    figure.update_yaxes(title_text="logit − full forward")
    return finish(figure, height=height, barmode="group")
