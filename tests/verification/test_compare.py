"""Distances: known values by hand, and properties that any distance must have."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.verification.compare import (
    TOLERANCES,
    WIDE_TOLERANCES,
    absolute_difference,
    largest_difference,
    recorded_difference,
    ulp_distance,
)

WIDTHS: dict[int, Any] = {16: np.float16, 32: np.float32, 64: np.float64}


def test_difference_of_numbers_is_absolute_and_in_float64():
    a = np.array([1.5, -2.0], np.float32)
    b = np.array([1.0, 2.0], np.float32)
    found = absolute_difference(a, b)
    assert found.tolist() == [0.5, 4.0]
    assert found.dtype == np.float64


def test_difference_of_large_float16_does_not_overflow():
    # 60000 + 60000 = 120000 is beyond the largest float16, 65504
    a, b = np.array([60000], np.float16), np.array([-60000], np.float16)
    assert absolute_difference(a, b).tolist() == [120000 - 2 * (60000 - float(a[0]))]


def test_equal_infinities_do_not_differ_and_nan_differs_from_everything():
    inf, nan = math.inf, math.nan
    a = np.array([inf, -inf, inf, nan, nan, 1.0])
    b = np.array([inf, -inf, -inf, nan, 1.0, nan])
    assert absolute_difference(a, b).tolist() == [0, 0, inf, inf, inf, inf]


def test_a_nan_recorded_twice_does_not_differ_and_one_alone_does():
    a, b = np.array([math.nan, math.nan, 1.0]), np.array([math.nan, 2.0, 1.5])
    assert recorded_difference(a, b).tolist() == [0.0, math.inf, 0.5]
    assert absolute_difference(a, b).tolist() == [math.inf, math.inf, 0.5]


def test_largest_difference_is_infinite_between_shapes_and_zero_of_nothing():
    assert largest_difference(np.array([1.0, -3.0]), np.array([1.5, -1.0])) == 2.0
    assert largest_difference(np.zeros((2, 3)), np.zeros((3, 2))) == math.inf
    assert largest_difference(np.zeros((0, 3)), np.zeros((0, 3))) == 0.0


@pytest.mark.parametrize("declared", [TOLERANCES, WIDE_TOLERANCES])
def test_declared_tolerances_cannot_be_changed(declared: Any):
    with pytest.raises(TypeError):
        declared["float32"] = 1.0


@pytest.mark.parametrize("dtype", WIDTHS.values())
def test_neighbours_are_one_ulp_apart_across_zero_too(dtype):
    smallest = np.nextafter(dtype(0), dtype(1))
    values = np.array([1, -1, 0, -smallest, smallest], dtype)
    above = np.nextafter(values, dtype(np.inf))
    assert ulp_distance(values, above).tolist() == [1, 1, 1, 1, 1]
    # from the negative to the positive neighbour of zero: two steps
    assert ulp_distance(np.array([-smallest]), np.array([smallest])).tolist() == [2]


@pytest.mark.parametrize("dtype", WIDTHS.values())
def test_zeros_of_both_signs_are_the_same_number(dtype):
    assert ulp_distance(np.array([0.0], dtype), np.array([-0.0], dtype)).tolist() == [0]


def test_ulp_distance_of_one_and_two_is_the_number_of_fractions():
    # float32 has 23 fraction bits: 2**23 numbers from 1 to 2; float16 has 10
    assert ulp_distance(np.array([1], np.float32), np.array([2], np.float32)).tolist() == [2**23]
    assert ulp_distance(np.array([1], np.float16), np.array([2], np.float16)).tolist() == [2**10]


def test_nan_is_farther_than_any_two_numbers():
    largest = np.finfo(np.float64).max
    apart = ulp_distance(np.array([largest]), np.array([-largest]))
    assert ulp_distance(np.array([np.nan]), np.array([0.0])) > apart


@given(st.data(), st.sampled_from(sorted(WIDTHS)))
def test_ulp_distance_is_symmetric_and_counts_steps(data, width):
    number = st.floats(allow_nan=False, allow_infinity=False, width=width)
    dtype = WIDTHS[width]
    a = np.array([data.draw(number)], dtype)
    steps = data.draw(st.integers(0, 5))
    b = a
    with np.errstate(over="ignore"):  # behind the largest number comes infinity
        for _ in range(steps):
            b = np.nextafter(b, dtype(np.inf))
    if np.isfinite(b).all():
        assert ulp_distance(a, b).tolist() == ulp_distance(b, a).tolist() == [steps]
