"""The picture of both passes holds the pairs that the passes scored."""

from typing import Any

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.figures.phases import (
    ABSENT,
    HIDDEN,
    MADE,
    MARKS,
    READ,
    Pairs,
    pair_figure,
    pair_points,
)
from tinydec.model.config import ModelConfig
from tinydec.verification.phases import run_phases, split_phases

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
IDS = (4, 0, 12, 7, 7, 3, 9)
PASSES = run_phases(CHECKPOINT, split_phases(IDS[:4], IDS[4:], 11))
TOKENS = [f"t{i}" for i in IDS]


def panel(index: int) -> Pairs:
    found = PASSES[index]
    return Pairs(found.phase, found.visible(), found.start)


def marks(figure: Any, axis: str) -> dict[str, set[tuple[int, int]]]:
    return {t.name: set(zip(t.y, t.x, strict=True)) for t in figure.data if t.xaxis == axis}


def test_prefill_is_a_triangle_with_its_mirror_hidden():
    points = pair_points(panel(0))
    triangle = {(q, k) for q in range(4) for k in range(q + 1)}
    assert set(points[MADE]) == triangle
    assert set(points[HIDDEN]) == {(k, q) for q, k in triangle if q != k}
    assert points[READ] == points[ABSENT] == []


@pytest.mark.parametrize("step", [1, 2, 3])
def test_decode_step_is_one_row_with_one_new_key(step):
    points = pair_points(panel(step))
    query = 3 + step
    assert points[READ] == [(query, key) for key in range(query)]
    assert points[MADE] == [(query, query)]
    assert points[HIDDEN] == []
    assert {q for q, _ in points[ABSENT]} == set(range(query))


def test_figure_draws_exactly_those_points():
    figure = pair_figure(panel(0), panel(2), TOKENS)
    assert marks(figure, "x") == {m: set(p) for m, p in pair_points(panel(0)).items()}
    assert marks(figure, "x2") == {m: set(p) for m, p in pair_points(panel(2)).items()}
    assert [a.text for a in figure.layout.annotations] == ["prefill", "decode"]


def test_pair_that_is_hidden_by_mistake_shows():
    visible = PASSES[0].visible().copy()
    visible[3, 1] = False
    assert (3, 1) in pair_points(Pairs("", visible, 0))[HIDDEN]


def test_no_later_pass_leaves_the_second_panel_empty():
    figure = pair_figure(panel(0), None, TOKENS)
    assert {trace.xaxis for trace in figure.data} == {"x"}


def test_each_mark_has_a_symbol_and_a_sign_of_its_own():
    assert len({symbol for symbol, _, _ in MARKS.values()}) == len(MARKS)
    assert len({sign for _, sign, _ in MARKS.values()}) == len(MARKS)


def test_tokens_are_labels_as_long_as_there_are_few():
    few = pair_figure(Pairs("", np.tri(2, dtype=bool), 0), None, ["<b>", "a" * 30])
    assert list(few.layout.yaxis.ticktext) == ["0 &lt;b&gt;", "1 aaaaaaaaa…"]
    many = pair_figure(Pairs("", np.tri(40, dtype=bool), 0), None, ["x"] * 40)
    assert many.layout.yaxis.ticktext is None
    assert max(t.marker.size for t in many.data) < min(t.marker.size for t in few.data)
