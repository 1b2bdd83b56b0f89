"""Errors on a logarithmic axis, where an exact 0 has no place of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class LogAxis:
    """The powers of ten that an axis covers.

    Attributes:
        low: exponent of the left end; an exact 0 stands there.
        high: exponent of the right end; infinity stands there.
    """

    low: int
    high: int

    @classmethod
    def around(cls, values: Iterable[float]) -> LogAxis:
        """Return an axis with room for every positive finite value.

        One power of ten is left free below the smallest value, for an exact 0.
        """
        exponents = [math.log10(v) for v in values if 0 < v < math.inf] or [0.0]
        floor = math.floor(min(exponents)) - 1
        return cls(floor, max(math.ceil(max(exponents)), floor + 1))

    def place(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return where values stand: 0 at the low end, infinity at the high one, NaN nowhere."""
        array = np.asarray(values, dtype=np.float64)
        return np.clip(array, 10.0**self.low, 10.0**self.high)

    @property
    def range(self) -> tuple[float, float]:
        """Range for plotly, in exponents, with room for markers at both ends."""
        room = 0.03 * (self.high - self.low)
        return (self.low - room, self.high + room)

    def ticks(self, most: int = 6) -> tuple[Sequence[float], Sequence[str]]:
        """Return at most ``most`` powers of ten and their labels."""
        step = max(1, math.ceil((self.high - self.low) / (most - 1)))
        exponents = range(self.high, self.low - 1, -step)
        return [10.0**e for e in exponents], [power(e) for e in exponents]


def power(exponent: int) -> str:
    """Return a power of ten as a label: ``1`` for 0, else ``1e−5``."""
    return "1" if exponent == 0 else short(10.0**exponent)


def short(value: float, significant: int = 3) -> str:
    """Return a number as briefly as possible: ``1e−5``, ``0.003``, ``0``."""
    mantissa, mark, exponent = f"{value:.{significant}g}".partition("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−") if mark else mantissa.replace("-", "−")
