"""Log axes: room for every value, places for 0 and infinity, short labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.figures.log_axis import LogAxis, power, short

POSITIVE = st.floats(1e-300, 1e300)


@given(st.lists(POSITIVE, min_size=1))
def test_every_positive_value_lies_on_the_axis_and_zero_below_all(values: list[float]) -> None:
    axis = LogAxis.around(values)
    places = axis.place(values)
    assert np.allclose(places, values, rtol=1e-12, atol=0)
    assert axis.place(0.0) < min(values)
    assert axis.place(math.inf) >= max(values) * (1 - 1e-12)


def test_nothing_positive_gives_an_axis_too() -> None:
    axis = LogAxis.around([0.0, math.nan, math.inf])
    assert axis.low < axis.high


def test_no_number_has_no_place() -> None:
    assert np.isnan(LogAxis(-3, 2).place(math.nan))


def test_values_beyond_the_axis_stand_at_its_ends() -> None:
    assert LogAxis(-3, 2).place([1e-9, 1e-3, 5.0, 1e5]).tolist() == [1e-3, 1e-3, 5.0, 100.0]


@pytest.mark.parametrize("axis", [LogAxis(-17, 2), LogAxis(-8, 1), LogAxis(-1, 0)])
@pytest.mark.parametrize("most", [3, 6])
def test_ticks_are_powers_of_ten_on_the_axis(axis: LogAxis, most: int) -> None:
    values, labels = axis.ticks(most)
    assert 2 <= len(values) <= most
    assert len(labels) == len(values)
    exponents = [round(math.log10(value)) for value in values]
    assert all(axis.low <= exponent <= axis.high for exponent in exponents)
    assert [10.0**exponent for exponent in exponents] == pytest.approx(values)


def test_range_has_room_at_both_ends() -> None:
    low, high = LogAxis(-10, 0).range
    assert low < -10
    assert high > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1e−5"),
        (0.003, "0.003"),
        (0.0, "0"),
        (1.0, "1"),
        (2.5e-16, "2.5e−16"),
        (-1.5, "−1.5"),
    ],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


def test_powers() -> None:
    assert [power(e) for e in (-12, -1, 0, 1, 2)] == ["1e−12", "0.1", "1", "10", "100"]
