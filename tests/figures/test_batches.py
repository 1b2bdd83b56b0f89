"""Rows against solo runs: numbers, verdicts and the tolerance line."""

from __future__ import annotations

import math

import pytest

from tinydec.figures.batches import AXIS, isolation_figure
from tinydec.figures.palette import CACHED, ERROR
from tinydec.verification.isolation import IsolationRecord


def record(row: str, layout: str, error: float, *, draws: bool = True) -> IsolationRecord:
    return IsolationRecord(row, layout, (), 2, error, 1e-5, True, draws, True, False, None)


RECORDS = {
    "left": [record("you", "left", 3e-7), record("a", "left", 0.5)],
    "right": [record("you", "right", 0.0), record("a", "right", math.inf)],
    "ragged": [record("you", "ragged", 2e-6, draws=False), record("a", "ragged", 1e-9)],
}


def test_points_are_the_records_errors_and_extremes_stand_at_the_ends() -> None:
    left, right, ragged = isolation_figure(RECORDS, 1e-5).data
    assert list(left.x) == [3e-7, 0.5]
    assert list(right.x) == [10.0**AXIS.low, 10.0**AXIS.high]
    assert list(ragged.x) == [2e-6, 1e-9]
    assert right.customdata[1][0] == "inf"


def test_failing_rows_are_crosses_even_where_only_the_draws_differ() -> None:
    left, right, ragged = isolation_figure(RECORDS, 1e-5).data
    assert list(left.marker.symbol) == ["triangle-left", "x"]
    assert list(right.marker.symbol) == ["triangle-right", "x"]
    assert list(ragged.marker.symbol) == ["x", "circle"]
    assert list(ragged.marker.color) == [ERROR.mark, CACHED.mark]
    assert ragged.customdata[0][1] == "differs: draws"
    assert left.customdata[0][1] == "equals its solo run"
    assert left.customdata[1][1] == "differs: logits"


def test_layouts_of_a_row_stand_apart_and_close_to_it() -> None:
    figure = isolation_figure(RECORDS, 1e-5)
    for row in range(2):
        heights = [trace.y[row] for trace in figure.data]
        assert len(set(heights)) == 3
        assert max(abs(height - row) for height in heights) < 0.5
    assert list(figure.layout.yaxis.ticktext) == ["you", "a"]


@pytest.mark.parametrize("tolerance", [1e-12, 1e-5, 1.0])
def test_line_stands_at_the_tolerance(tolerance: float) -> None:
    (line,) = isolation_figure(RECORDS, tolerance).layout.shapes
    assert line.x0 == line.x1 == tolerance
    assert line.line.dash == "dash"
