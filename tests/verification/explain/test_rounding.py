"""Balls: they hold every result that a number format can give, and little more."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.verification.explain import Term, largest_first
from tinydec.verification.explain.operations import (
    Dot,
    GeluExact,
    GeluTanh,
    Hidden,
    Lookup,
    Norm,
    Softmax,
)
from tinydec.verification.explain.rounding import Ball, Rounding, exact_sum, quotient

HALF, SINGLE, DOUBLE = (Rounding.of(d) for d in ("float16", "float32", "float64"))
numbers = st.floats(-8, 8, width=16)


def test_unit_roundoffs_are_those_of_the_formats() -> None:
    assert (HALF.unit, SINGLE.unit, DOUBLE.unit) == (2**-11, 2**-24, 2**-53)
    assert (HALF.largest, HALF.smallest) == (65504.0, 2**-24)


@given(st.lists(numbers, min_size=1, max_size=23), st.randoms())
def test_sum_in_any_order_lies_in_the_ball(terms: list[float], shuffle) -> None:
    ball = HALF.total([Ball(t) for t in terms])
    shuffle.shuffle(terms)
    total = np.float16(0)
    for term in terms:
        total = np.float16(total + np.float16(term))
    assert abs(float(total) - ball.value) <= ball.error
    exact = float(sum(map(Fraction, terms)))
    assert abs(exact - ball.value) <= 1e-12
    # Not vacuous: at most about n roundings of the sum of magnitudes.
    assert ball.error <= 2 * len(terms) * (2**-11 * sum(map(abs, terms)) + 2**-24)


def test_ball_holds_the_rounded_number_and_no_neighbour_but_one() -> None:
    value = 1 / 3
    ball = SINGLE.rounded(value)
    rounded = np.float32(value)
    assert abs(float(rounded) - value) <= ball.error
    beyond = np.nextafter(np.nextafter(rounded, np.float32(1)), np.float32(1))
    assert abs(float(beyond) - value) > ball.error


def test_what_may_overflow_has_no_bound() -> None:
    assert HALF.rounded(70000.0).error == math.inf
    assert HALF.rounded(60000.0).error < 100
    assert HALF.total([Ball(40000.0), Ball(40000.0)]).error == math.inf
    assert HALF.rounded(math.nan).error == math.inf


def test_sums_and_quotients_of_what_is_not_finite() -> None:
    assert exact_sum([0.1] * 10) == 1.0 != sum([0.1] * 10)
    assert exact_sum([math.inf, 1.0]) == math.inf
    assert math.isnan(exact_sum([math.inf, -math.inf]))
    assert exact_sum([1e308, 1e308, -1e308]) == math.inf or exact_sum([1e308, 1e308]) == math.inf
    assert math.isnan(quotient(1.0, 0.0))


@given(st.lists(numbers, min_size=2, max_size=11), st.integers(0, 10))
def test_softmax_in_half_precision_lies_in_the_ball(scores: list[float], index: int) -> None:
    index %= len(scores)
    ball = Softmax(index).arithmetic(scores, HALF).result
    row = np.array(scores, np.float16)
    exponentials = np.exp(row - row.max())
    found = (exponentials / exponentials.sum())[index]
    assert abs(float(found) - ball.value) <= ball.error < 0.1


@pytest.mark.parametrize("operation", [GeluTanh(), GeluExact()])
@given(x=st.floats(-50, 50, width=16))
def test_gelu_lies_near_its_float64_value(operation, x: float) -> None:
    ball = operation.arithmetic([x], SINGLE).result
    assert ball.error <= 1e-5 * max(1.0, abs(x))
    assert -0.2 < ball.value <= max(x, 0.0) + 1e-12


def test_norm_of_nearly_equal_values_has_a_wide_bound() -> None:
    wide = Norm(3, 0).arithmetic([1000.0, 1000.001, 1000.002, 1.0, 0.0, 1e-5], SINGLE).result
    narrow = Norm(3, 0).arithmetic([-1.0, 0.5, 2.0, 1.0, 0.0, 1e-5], SINGLE).result
    assert narrow.error < 1e-5 < wide.error


def test_lookup_and_mask_refuse_other_places() -> None:
    assert Lookup(3).arithmetic([3.0, 0.25], HALF).result == Ball(0.25)
    assert math.isnan(Lookup(3).arithmetic([2.0, 0.25], HALF).result.value)
    assert Hidden().arithmetic([1.0, 2.0], HALF).result == Ball(-math.inf)
    assert math.isnan(Hidden().arithmetic([2.0, 2.0], HALF).result.value)


def test_largest_terms_stay_in_order_and_the_rest_is_summed() -> None:
    found = Dot(5).arithmetic([1, 1, -7, 1, 2, 1, 5, 1, 0.5, 1], DOUBLE)
    kept, rest = largest_first(found.terms, 2)
    assert kept == (Term((2, 3), -7), Term((6, 7), 5))
    assert rest == 1 + 2 + 0.5
    assert largest_first(found.terms, 9) == (found.terms, 0)
