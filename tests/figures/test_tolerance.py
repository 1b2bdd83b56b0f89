"""Noise and faults on one axis: points, shares and the movable line."""

from __future__ import annotations

import numpy as np
import pytest

from tinydec.figures.palette import CACHED, ERROR
from tinydec.figures.tolerance import AXIS, spread, tolerance_figure

NOISE = {"float32": np.array([1e-7, 0.0, 3e-6]), "float64": np.array([1e-15, 2e-15])}
EFFECTS = {"faults": np.array([0.5, np.inf, 1e-3, 2.0])}
CURVE = np.array([1e-9, 1e-4, 1.0])
MISSED = np.array([0.0, 0.0, 0.75])
REFUSED = {"float32": np.array([2 / 3, 0, 0]), "float64": np.zeros(3)}


def picture(tolerance: float = 1e-5):
    names = {"faults": ["a", "b", "c", "d"]}
    return tolerance_figure(NOISE, EFFECTS, names, tolerance, CURVE, MISSED, REFUSED)


def test_points_stand_at_their_values_and_extremes_at_the_ends() -> None:
    strips = picture().data[:3]
    assert strips[0].x.tolist() == [1e-7, 10.0**AXIS.low, 3e-6]
    assert strips[1].x.tolist() == [1e-15, 2e-15]
    assert strips[2].x.tolist() == [0.5, 10.0**AXIS.high, 1e-3, 2.0]
    assert strips[2].customdata.tolist() == EFFECTS["faults"].tolist()
    assert list(strips[2].text) == ["a", "b", "c", "d"]


def test_each_group_keeps_to_its_own_strip() -> None:
    for place, strip in enumerate(picture().data[:3]):
        assert np.abs(np.array(strip.y) - place).max() < 0.4


def test_correct_and_faulty_differ_in_colour_and_marker() -> None:
    correct, _, faulty = picture().data[:3]
    assert (correct.marker.color, faulty.marker.color) == (CACHED.mark, ERROR.mark)
    assert correct.marker.symbol != faulty.marker.symbol


def test_lines_are_the_shares() -> None:
    lines = {line.name: line for line in picture().data[3:]}
    assert lines["faults missed"].y.tolist() == MISSED.tolist()
    assert lines["refused: float32"].y.tolist() == REFUSED["float32"].tolist()
    assert all(line.x.tolist() == CURVE.tolist() for line in lines.values())
    assert len({line.line.dash for line in lines.values() if line.line.color == CACHED.mark}) == 2


@pytest.mark.parametrize("tolerance", [1e-16, 1e-5, 1.0])
def test_one_line_crosses_both_parts_at_the_tolerance(tolerance: float) -> None:
    shapes = picture(tolerance).layout.shapes
    assert [(s.x0, s.x1) for s in shapes] == [(tolerance, tolerance)] * 2
    assert {s.xref for s in shapes} == {"x", "x2"}


def test_offsets_stay_within_the_strip_and_apart() -> None:
    offsets = spread(200)
    assert np.abs(offsets).max() <= 0.32
    assert len(set(offsets.tolist())) == 200
    assert np.array_equal(offsets[:50], spread(50))


def test_picture_fits_above_the_fold() -> None:
    assert picture().layout.height <= 380
