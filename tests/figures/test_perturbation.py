"""Bars of the perturbation are its numbers."""

import pytest

from tinydec.figures.perturbation import MOST_POSITIONS, move_figure
from tinydec.model.storage import load_checkpoint
from tinydec.verification.perturbation import PastMove, Perturbation, perturb_past

FOUND = perturb_past(load_checkpoint(), (0, 2, 3, 5), 1.0)
TOKENS = ["<bos>", "A", "B", "D"]


def test_bars_are_the_moves_of_the_logits():
    figure = move_figure(FOUND, TOKENS)
    bars = {bar.name: list(bar.y) for bar in figure.data}
    assert bars == {
        "past query": [0.0, 0.0, 0.0],
        "past key": [m.key_logits for m in FOUND.moves],
        "past value": [m.value_logits for m in FOUND.moves],
    }
    assert list(figure.data[0].x) == ["0 &lt;bos&gt;", "1 A", "2 B"]


def test_zero_is_written_where_there_is_no_bar_and_nowhere_else():
    figure = move_figure(FOUND, TOKENS)
    assert [list(bar.text) for bar in figure.data] == [["0"] * 3, [""] * 3, [""] * 3]


@pytest.mark.parametrize("past", [1, MOST_POSITIONS, 30])
def test_last_positions_are_drawn_of_a_long_past(past):
    moves = tuple(PastMove(p, 1.0, 0.0, p + 1.0, p + 2.0) for p in range(past))
    figure = move_figure(Perturbation(past, 1.0, moves, 0.0), ["t"] * (past + 1))
    assert list(figure.data[1].y) == [p + 1.0 for p in range(past)][-MOST_POSITIONS:]


def test_series_differ_by_more_than_colour():
    figure = move_figure(FOUND, TOKENS)
    assert len({bar.marker.pattern.shape for bar in figure.data}) == 3
