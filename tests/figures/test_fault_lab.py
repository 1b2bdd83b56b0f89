"""Two sessions side by side: logits, tensors, and nothing before it is revealed."""

from __future__ import annotations

import numpy as np

from tinydec.figures.fault_lab import AXIS, logits_figure, tensors_figure
from tinydec.figures.palette import ERROR, FULL

TOKENS = ("<a>", "b", "c")
CORRECT = np.array([0.5, -1.25, 3.0], np.float32)
FAULTY = np.array([0.5, np.nan, -2.0], np.float32)
TENSORS = [("embedding", 0.0), ("h.0.q", 1e-7), ("h.0.keys", 0.25), ("logits", np.inf)]


def test_bars_are_both_rows_and_differ_in_colour_and_pattern() -> None:
    correct, faulty = logits_figure(TOKENS, CORRECT, FAULTY).data
    assert list(correct.y) == CORRECT.tolist()
    assert faulty.y[2] == -2.0
    assert np.isnan(faulty.y[1])
    assert correct.x[0] == "&lt;a&gt;"
    assert (correct.marker.color, faulty.marker.color) == (FULL.mark, ERROR.mark)
    assert correct.marker.pattern.shape != faulty.marker.pattern.shape


def test_faulty_row_is_not_drawn_before_it_is_revealed() -> None:
    assert [trace.name for trace in logits_figure(TOKENS, CORRECT, None).data] == ["correct"]


def test_tensors_stand_at_their_errors_and_only_those_beyond_are_crosses() -> None:
    points, first = tensors_figure(TENSORS, "h.0.keys", 1e-5).data
    assert list(points.y) == [10.0**AXIS.low, 1e-7, 0.25, 10.0**AXIS.high]
    assert list(points.marker.symbol) == ["circle", "circle", "x", "x"]
    assert points.customdata[3][1] == "another shape, or NaN"
    assert (list(first.x), list(first.y)) == ([2], [0.25])
    assert list(first.text) == ["first: h.0.keys"]


def test_no_tensor_is_named_where_none_is_beyond() -> None:
    figure = tensors_figure(TENSORS[:2], None, 1e-5)
    assert len(figure.data) == 1
    assert figure.layout.shapes[0].y0 == 1e-5
    assert len(tensors_figure([], None, 1e-5).data[0].x) == 0


def test_large_model_is_cut_to_tensors_around_the_first() -> None:
    many = [(f"t{i}", 0.0 if i < 120 else 1.0) for i in range(133)]
    points, first = tensors_figure(many, "t120", 1e-5).data
    assert 120 in points.x
    assert len(points.x) == 60
    assert list(first.x) == [120]
