"""Pictures of the comparison: their numbers are those they were given."""

from __future__ import annotations

import numpy as np
import pytest

from tinydec.figures.equivalence import (
    choices_figure,
    prefixes_figure,
    shortened,
    tensors_figure,
)
from tinydec.figures.palette import CACHED, ERROR, FULL

TOKENS = ("a", "b", "c")
PREFIXES = ("a", "a b", "a b c", "b", "b b")
DIFFERENCES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14]]) * 1e-7
ERRORS = DIFFERENCES.max(axis=1)
FAILURES = {
    "positions-reset": np.array([np.nan, 0.5, 0.25, np.nan, 2.0]),
    "wrong-layer": np.array([0.1, 0.2, np.inf, 0.4, 0.0]),
}


def picture(**changes):
    values = {
        "prefixes": PREFIXES, "tokens": TOKENS, "differences": DIFFERENCES, "errors": ERRORS,
        "failures": FAILURES, "tolerance": 1e-5,
    }  # fmt: skip
    return prefixes_figure(**(values | changes))


def trace(figure, name: str):
    return next(t for t in figure.data if t.name == name)


def test_heatmap_holds_the_differences_and_starts_at_zero() -> None:
    heatmap = picture().data[0]
    assert np.array_equal(heatmap.z, DIFFERENCES)
    assert (heatmap.zmin, heatmap.zmax) == (0, 14e-7)


def test_a_difference_that_is_no_number_gets_the_full_colour() -> None:
    broken = DIFFERENCES.copy()
    broken[1, 1] = np.inf
    heatmap = picture(differences=broken).data[0]
    assert np.isfinite(heatmap.z.astype(float)).all()
    assert heatmap.z[1, 1] >= heatmap.zmax == 14e-7


def test_markers_stand_at_the_errors() -> None:
    figure = picture()
    cached, reset, layer = (trace(figure, n) for n in ("cached", "positions reset", "wrong layer"))
    assert np.array_equal(cached.x, ERRORS)
    assert np.array_equal(reset.x, FAILURES["positions-reset"], equal_nan=True)
    assert layer.x[[0, 1, 3]].tolist() == [0.1, 0.2, 0.4]
    low, high = figure.layout.xaxis2.range
    assert 10**low < layer.x[4] < 2e-7  # an exact 0
    assert 2.0 <= layer.x[2] < 10**high  # infinity
    assert layer.customdata[2][1] == np.inf


def test_tolerance_line_stands_at_the_tolerance_over_all_rows() -> None:
    for tolerance in (1e-5, 1e-9, 0.3):
        line = trace(picture(tolerance=tolerance), f"tolerance {tolerance:g}".replace("e-0", "e−"))
        assert line.x.tolist() == [tolerance] * 2
        assert line.y[0] < 0
        assert line.y[1] > len(PREFIXES) - 1
        assert line.line.dash == "dash"


def test_colours_say_what_they_say_everywhere_and_markers_differ() -> None:
    figure = picture()
    markers = [trace(figure, n).marker for n in ("cached", "positions reset", "wrong layer")]
    assert [m.color for m in markers] == [CACHED.mark, ERROR.mark, ERROR.mark]
    assert len({m.symbol for m in markers}) == 3


def test_first_prefix_is_on_top() -> None:
    figure = picture()
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert list(figure.layout.yaxis.ticktext) == list(PREFIXES)


def test_a_large_vocabulary_shows_some_labels_and_every_column() -> None:
    tokens = [f"token-{i}" for i in range(250)]
    figure = picture(tokens=tokens, differences=np.ones((5, 250)) * 1e-7)
    assert figure.data[0].z.shape == (5, 250)
    assert len(figure.layout.xaxis.ticktext) <= 20
    assert figure.layout.height <= 380


def test_sixteen_prefixes_fit_above_the_fold() -> None:
    count = 16
    figure = picture(
        prefixes=["x"] * count, differences=np.zeros((count, 3)), errors=np.zeros(count),
        failures={},
    )  # fmt: skip
    assert figure.layout.height <= 380


NAMES = ("embedding", "h.0.k", "h.0.scores", "logits")
TENSORS = np.array([[0.0, 0.0], [1e-8, 0.0], [1e-7, 3e-4], [2e-6, np.inf]])


def test_tensor_cells_hold_exponents_and_exact_equality_is_empty() -> None:
    figure = tensors_figure(NAMES, ["0 a", "1 b"], TENSORS, 1e-5, ("h.0.scores", 1))
    cells = np.array(figure.data[0].z, dtype=float)  # (T, N)
    assert np.isnan(cells).T.tolist() == (TENSORS == 0).tolist()
    assert cells[0, 1:].tolist() == pytest.approx([-8, -7, np.log10(2e-6)])
    assert figure.data[0].zmin < -8
    assert cells[1, 3] == figure.data[0].zmax
    assert "exactly equal" in figure.data[0].text[0][0]


def test_cells_beyond_the_tolerance_are_marked_and_the_first_is_named() -> None:
    figure = tensors_figure(NAMES, ["0 a", "1 b"], TENSORS, 1e-5, ("h.0.scores", 1))
    marks = figure.data[1]
    assert list(zip(marks.x.tolist(), marks.y.tolist(), strict=True)) == [(2, 1), (3, 1)]
    assert figure.layout.annotations[0].text == "first: h.0.scores"
    assert (figure.layout.annotations[0].x, figure.layout.annotations[0].y) == (2, 1)


def test_nothing_is_marked_within_the_tolerance() -> None:
    figure = tensors_figure(NAMES, ["0 a"], TENSORS[:, :1], 1e-5, None)
    assert len(figure.data[1].x) == 0
    assert not figure.layout.annotations


def test_many_tensors_show_some_labels() -> None:
    names = [f"t{i}" for i in range(133)]
    figure = tensors_figure(names, ["0", "1"], np.full((133, 2), 1e-9), 1e-5, None)
    assert len(figure.layout.xaxis.ticktext) <= 46
    assert np.array(figure.data[0].z).shape == (2, 133)


def test_bars_are_both_rows_and_each_highest_is_marked() -> None:
    full, broken = np.array([1.0, 3.0, -2.0]), np.array([2.5, 1.0, -4.0])
    figure = choices_figure(TOKENS, full, broken, ("full", "wrong layer"))
    assert [bar.y.tolist() for bar in figure.data] == [full.tolist(), broken.tolist()]
    assert figure.data[0].marker.color == FULL.mark
    assert figure.data[1].marker.pattern.shape == "/"
    assert [round(a.x) for a in figure.layout.annotations] == [1, 0]
    assert [a.y for a in figure.layout.annotations] == [3.0, 2.5]


def test_labels_are_cut_with_an_ellipsis() -> None:
    assert shortened("short") == "short"
    assert shortened("x" * 40, 8) == "x" * 7 + "…"
