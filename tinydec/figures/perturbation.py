"""How far past queries, keys and values move the next logits row."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from tinydec.figures.logits import label
from tinydec.figures.palette import KEY, QUERY, VALUE, Colour
from tinydec.figures.style import finish
from tinydec.verification.perturbation import Perturbation

#: Past positions drawn; the table has all.
MOST_POSITIONS = 12

_SERIES: tuple[tuple[str, str, Colour, str], ...] = (
    ("query", "query_logits", QUERY, ""),
    ("key", "key_logits", KEY, "/"),
    ("value", "value_logits", VALUE, "x"),
)


def move_figure(found: Perturbation, tokens: Sequence[str], *, height: int = 260) -> go.Figure:
    """Return a group of three bars for each of the last past positions.

    Args:
        found: one perturbed decode step.
        tokens: text of every position.
        height: pixels.
    """
    moves = found.moves[-MOST_POSITIONS:]
    names = [f"{m.position} {label(tokens[m.position])}" for m in moves]
    figure = go.Figure(
        [
            go.Bar(
                x=names,
                y=[getattr(m, field) for m in moves],
                name=f"past {name}",
                marker={"color": colour.mark, "pattern": {"shape": shape, "solidity": 0.25}},
                hovertemplate=f"{name} at %{{x}}<br>moves a logit by %{{y:.6g}}<extra></extra>",
                text=["0" if getattr(m, field) == 0 else "" for m in moves],
                textposition="outside",
            )
            for name, field, colour, shape in _SERIES
        ]
    )
    figure.update_xaxes(title_text="past position that is changed", type="category")
    figure.update_yaxes(title_text="logits move by", rangemode="tozero")
    return finish(figure, height=height, barmode="group")
