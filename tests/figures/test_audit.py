"""Errors by tensor and position: colours, the mark, and what is cut of a large model."""

from __future__ import annotations

import numpy as np
import pytest

from tinydec.figures.audit import HIGH, LOW, MOST_POSITIONS, MOST_TENSORS, divergence_figure

NAMES = ("embedding", "h.0.q", "h.0.keys", "logits", "ln_f")
ERRORS = np.array(
    [[0.0, 0.0, 1e-8], [1e-7, 1e-6, 1e-5], [1e-4, 0.5, 3.0], [np.inf, 1e3, 1e-20], [1, 10, 100.0]]
)


def test_cells_are_powers_of_ten_of_the_errors_within_the_scale() -> None:
    cells = divergence_figure(NAMES, ERRORS, None, 1e-5).data[0]
    assert np.shape(cells.z) == (3, 5)
    assert cells.z[1][1] == pytest.approx(-6)
    assert cells.z[0][2] == pytest.approx(-4)
    assert cells.z[0][0] == LOW  # an exact 0
    assert cells.z[0][3] == HIGH  # infinity
    assert cells.customdata[1][2] == "0.5"
    assert (cells.zmin, cells.zmax) == (LOW, HIGH)


def test_first_failing_tensor_alone_is_marked() -> None:
    figure = divergence_figure(NAMES, ERRORS, ("h.0.keys", 1), 1e-5)
    assert list(figure.data[1].x) == ["h.0.keys"]
    assert list(figure.data[1].y) == ["position 1"]
    assert len(divergence_figure(NAMES, ERRORS, None, 1e-5).data) == 1


def test_large_model_is_cut_to_a_window_around_the_first_failing_tensor() -> None:
    names = tuple(f"t{i}" for i in range(133))
    errors = np.zeros((133, 61))
    figure = divergence_figure(names, errors, ("t120", 59), 1e-5)
    cells = figure.data[0]
    assert len(cells.x) == MOST_TENSORS
    assert len(cells.y) == MOST_POSITIONS
    assert "t120" in cells.x
    assert "position 59" in cells.y
    assert divergence_figure(names, errors, None, 1e-5).data[0].x[0] == "t0"
