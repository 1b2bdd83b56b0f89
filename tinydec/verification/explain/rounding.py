"""How far a result may lie from exact arithmetic when every operation rounds to a number format.

A ball is a centre, computed in float64, and an error: whatever order of additions and whatever
roundings a machine chooses, its result lies within the error of the centre. The rules are the
textbook's running error analysis (Higham 2002, chapters 2 to 4): ``fl(x op y) = (x op y)(1 + δ)``
with ``|δ| <= u``, and at most one smallest subnormal more where the result underflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

#: Unit roundoff of float64, in which the centres themselves are computed.
_CENTRE = 2.0**-53

#: NumPy's vectorised exp and tanh err by up to 4 units in the last place, erf by less.
FUNCTION_ROUNDINGS = 8


class Ball(NamedTuple):
    """All numbers within ``error`` of ``value``; an infinite error encloses every result."""

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Rounding:
    """A number format: unit roundoff u, smallest subnormal and largest number."""

    unit: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, dtype: Any) -> Rounding:
        """Return that of a NumPy dtype: u is 2^-11, 2^-24 or 2^-53."""
        info = np.finfo(dtype)
        return cls(float(info.eps) / 2, float(info.smallest_subnormal), float(info.max))

    def rounded(self, value: float, error: float = 0.0, count: int = 1) -> Ball:
        """Return the ball of a result within ``error`` of ``value`` after ``count`` roundings.

        A result that may pass the largest number has no bound: it may be infinite.
        """
        size = abs(value) + error
        total = error + self._growth(count) * size + count * self.smallest
        return Ball(value, total if size + total < self.largest else math.inf)

    def total(self, terms: Sequence[Ball], count: int = 0) -> Ball:
        """Return the ball of a sum in any order, each term rounded ``count`` times before.

        Error: the terms' own, plus ``(1 + u)^(n - 1 + count) - 1`` of the sum of magnitudes.
        """
        roundings = len(terms) - 1 + count
        value = exact_sum([term.value for term in terms])
        size = exact_sum([abs(term.value) + term.error for term in terms])
        error = exact_sum([term.error for term in terms])
        error += self._growth(roundings) * size + len(terms) * (1 + count) * self.smallest
        return Ball(value, error if size + error < self.largest else math.inf)

    def _growth(self, count: int) -> float:
        """Return ``(1 + u)^count - 1``, with room for the centre's own rounding."""
        return math.expm1(count * math.log1p(self.unit)) + (count + 2) * _CENTRE


def exact_sum(terms: Sequence[float]) -> float:
    """Return the correctly rounded sum; with an infinity or NaN among the terms, what they give."""
    try:
        return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)
    except OverflowError:
        return sum(terms)


def quotient(a: float, b: float) -> float:
    """Return a / b, NaN where b is 0 (a variance may vanish in float16)."""
    return a / b if b else math.nan
