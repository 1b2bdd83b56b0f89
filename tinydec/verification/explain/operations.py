"""The ten kinds of arithmetic that a decoder consists of, each as a function of its operands.

Every operation computes in float64 from operands alone and says how far the recorded number may
lie from that: the error of a :class:`Ball` in the dtype that ran.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tinydec.verification.explain.rounding import (
    FUNCTION_ROUNDINGS,
    Ball,
    Rounding,
    exact_sum,
    quotient,
)

Values = Sequence[float]


class Term(NamedTuple):
    """One contribution to a sum: the places of its operands, and its value."""

    operands: tuple[int, ...]
    value: float


class Part(NamedTuple):
    """A quantity on the way, such as a mean."""

    name: str
    value: float


class Arithmetic(NamedTuple):
    """What an operation gives: the result with its error, the terms of its sum, the way to it."""

    result: Ball
    terms: tuple[Term, ...]
    parts: tuple[Part, ...] = ()


class Operation(Protocol):
    """An arithmetic on operands in a fixed order."""

    @property
    def term(self) -> str:
        """What the terms are, for the head of their column; empty where there is no sum."""
        ...

    def arithmetic(self, values: Values, rounding: Rounding, /) -> Arithmetic:
        """Compute in float64; ``rounding`` is that of the dtype that ran."""
        ...


@dataclass(frozen=True)
class Lookup:
    """A row of a table: (row number, the table's element). Exact; another row gives NaN."""

    row: int
    term: str = ""

    def arithmetic(self, values: Values, _rounding: Rounding) -> Arithmetic:
        """Return the element."""
        row, value = values
        return Arithmetic(Ball(value if row == self.row else math.nan), ())


@dataclass(frozen=True)
class Copy:
    """The same number at another place. Exact."""

    term: str = ""

    def arithmetic(self, values: Values, _rounding: Rounding) -> Arithmetic:
        """Return the number."""
        return Arithmetic(Ball(values[0]), ())


@dataclass(frozen=True)
class Hidden:
    """A score behind the causal mask: (query's position, key's position) gives -inf."""

    term: str = ""

    def arithmetic(self, values: Values, _rounding: Rounding) -> Arithmetic:
        """Return -inf when the key lies ahead of the query, else NaN."""
        query, key = values
        return Arithmetic(Ball(-math.inf if key > query else math.nan), ())


@dataclass(frozen=True)
class Add:
    """The sum of two numbers. One rounding."""

    term: str = "summand"

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Add."""
        a, b = values
        result = rounding.rounded(a + b)
        return Arithmetic(result, (Term((0,), a), Term((1,), b)))


@dataclass(frozen=True)
class Dot:
    """Products added up, ``a_0, b_0, a_1, b_1 ...``, then a bias where there is one."""

    pairs: int
    bias: bool = False
    term: str = "product"

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Multiply and add; a rounding for each product and each addition, in any order."""
        terms = _products(values, self.pairs)
        if self.bias:
            terms += (Term((2 * self.pairs,), values[2 * self.pairs]),)
        return Arithmetic(rounding.total([Ball(t.value) for t in terms], 1), terms)


@dataclass(frozen=True)
class ScaledDot:
    """Products added up and divided by the root of the last operand, d_h."""

    pairs: int
    term: str = "product"

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Multiply, add, scale; prefill multiplies by 1/sqrt(d_h), which rounds twice more."""
        terms = _products(values, self.pairs)
        dot = rounding.total([Ball(t.value) for t in terms], 1)
        root = math.sqrt(values[-1])
        result = rounding.rounded(dot.value / root, dot.error / root, 4)
        return Arithmetic(result, terms, (Part("q · k", dot.value), Part("√d_h", root)))


@dataclass(frozen=True)
class Norm:
    """Layer norm: ``x_0 ... x_(d-1), weight, bias, epsilon``; the result belongs to x_i."""

    width: int
    index: int
    term: str = "(x − mean)²/d"

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Return ``(x_i - mean) / sqrt(variance + epsilon) * weight + bias``.

        The mean's error goes into every centred value, theirs into the variance: a row whose
        values lie close together has a wide bound, because the norm amplifies its rounding.
        """
        d, xs = self.width, values[: self.width]
        weight, bias, epsilon = values[self.width :]
        mean = rounding.total([Ball(x / d) for x in xs], 2)
        centred = [rounding.rounded(x - mean.value, mean.error) for x in xs]
        squares = [_square(c, rounding) for c in centred]
        shares = [Ball(s.value / d, s.error / d) for s in squares]
        variance = rounding.total(shares, 2)
        deviation = _root(variance, epsilon, rounding)
        normed = _divide(centred[self.index], deviation, epsilon, rounding)
        scaled = rounding.rounded(normed.value * weight, normed.error * abs(weight))
        result = rounding.rounded(scaled.value + bias, scaled.error)
        parts = (
            Part("mean", mean.value),
            Part("variance", variance.value),
            Part("sqrt(variance + ε)", deviation.value),
        )
        return Arithmetic(result, tuple(Term((k,), s.value) for k, s in enumerate(shares)), parts)


@dataclass(frozen=True)
class Softmax:
    """One probability of a softmax over all operands; the result belongs to the one at index."""

    index: int
    term: str = "exp(score − max)"

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Return ``exp(x_i - max) / sum exp(x - max)``."""
        peak = max(values)
        exponentials = [_exp(x - peak, rounding) for x in values]
        total = rounding.total(exponentials)
        own = exponentials[self.index]
        value = quotient(own.value, total.value)
        # The largest exponential is 1: the sum is never small.
        error = own.error + value * total.error
        terms = tuple(Term((k,), e.value) for k, e in enumerate(exponentials))
        parts = (Part("max", peak), Part("sum of exponentials", total.value))
        return Arithmetic(rounding.rounded(value, error), terms, parts)


@dataclass(frozen=True)
class GeluTanh:
    """``x/2 (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))``."""

    term: str = ""

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Compute as one formula; eight roundings before the tanh, eight in it."""
        x = values[0]
        scale = math.sqrt(2 / math.pi)
        inner = scale * (x + 0.044715 * x * x * x)
        off = rounding.rounded(inner, 0.0, 8).error
        slope = math.tanh(inner)
        spread = max(slope - math.tanh(inner - off), math.tanh(inner + off) - slope)
        after = rounding.rounded(slope, spread, FUNCTION_ROUNDINGS)
        plus = rounding.rounded(slope + 1, after.error)
        result = rounding.rounded(plus.value * x / 2, plus.error * abs(x) / 2, 2)
        parts = (Part("√(2/π)(x + 0.044715 x³)", inner), Part("tanh of it", slope))
        return Arithmetic(result, (), parts)


@dataclass(frozen=True)
class GeluExact:
    """``x/2 (1 + erf(x / sqrt(2)))``, whose erf runs in float64 whatever the dtype."""

    term: str = ""

    def arithmetic(self, values: Values, rounding: Rounding) -> Arithmetic:
        """Compute as one formula."""
        x = values[0]
        inner = x / math.sqrt(2)
        erf = math.erf(inner)
        # In float64: the argument's rounding times erf's slope, erf's own, and the addition.
        exact = Rounding.of("float64")
        slack = exact.rounded(1 + erf, exact.rounded(inner, 0.0, 2).error * 1.2, 4)
        result = rounding.rounded(slack.value * x / 2, slack.error * abs(x) / 2, 3)
        return Arithmetic(result, (), (Part("x / √2", inner), Part("erf of it", erf)))


def _products(values: Values, pairs: int) -> tuple[Term, ...]:
    places = range(0, 2 * pairs, 2)
    return tuple(Term((k, k + 1), values[k] * values[k + 1]) for k in places)


def _square(x: Ball, rounding: Rounding) -> Ball:
    return rounding.rounded(x.value * x.value, (2 * abs(x.value) + x.error) * x.error)


def _root(variance: Ball, epsilon: float, rounding: Rounding) -> Ball:
    """Return the ball of ``sqrt(variance + epsilon)``; a variance is never below 0."""
    inside = rounding.rounded(variance.value + epsilon, variance.error)
    value = math.sqrt(inside.value) if inside.value >= 0 else math.nan
    low = math.sqrt(max(inside.value - inside.error, 0.0))
    high = math.sqrt(max(inside.value + inside.error, 0.0))
    return rounding.rounded(value, max(value - low, high - value))


def _divide(x: Ball, by: Ball, epsilon: float, rounding: Rounding) -> Ball:
    """Return the ball of x / by, where ``by`` is at least about the root of epsilon."""
    least = max(by.value - by.error, math.sqrt(epsilon) * (1 - 4 * rounding.unit))
    value = quotient(x.value, by.value)
    error = quotient(x.error + abs(value) * by.error, least)
    return rounding.rounded(value, error)


def _exp(x: float, rounding: Rounding) -> Ball:
    """Return the ball of exp(x), x <= 0 being the rounded difference of two exact numbers."""
    value = math.exp(x)
    if x == -math.inf:
        return Ball(0.0)
    off = rounding.rounded(x).error
    spread = value * math.expm1(off) if off < 1 else 1.0  # no exponential here exceeds 1
    return rounding.rounded(value, spread, FUNCTION_ROUNDINGS)


def largest_first(terms: Sequence[Term], limit: int) -> tuple[tuple[Term, ...], float]:
    """Return the ``limit`` terms of largest magnitude, in their order, and the sum of the rest."""
    ranked = sorted(range(len(terms)), key=lambda k: -abs(terms[k].value))
    kept = sorted(ranked[:limit])
    rest = exact_sum([terms[k].value for k in ranked[limit:]])
    return tuple(terms[k] for k in kept), rest
