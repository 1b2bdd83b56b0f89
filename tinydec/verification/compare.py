"""Distances between arrays that should be equal, and the tolerances declared for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]

#: Largest accepted difference between the cached and the full path, by number format, for the
#: frozen sizes. Each is a regression boundary above noise measured on the shipped checkpoint,
#: not a constant of nature: see ``tests/verification/test_tolerances.py``.
TOLERANCES: Mapping[str, float] = MappingProxyType(
    {"float64": 1e-12, "float32": 1e-5, "float16": 2.5e-2}
)

#: The same for other checkpoints than the shipped one. Noise measured on random models of widths
#: 4 to 20 with weights of scale 0.5: float64 6e-14, float32 2.3e-5, float16 0.16; with 8 layers of
#: width 64, float32 2.1e-4 (the tolerance there is 3e-4).
WIDE_TOLERANCES: Mapping[str, float] = MappingProxyType(
    {"float64": 1e-11, "float32": 1.5e-4, "float16": 0.5}
)

_UNSIGNED: dict[int, Any] = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def absolute_difference(a: Array, b: Array) -> Floats:
    """Return ``|a - b|`` in float64; 0 where both are the same infinity, inf where one is NaN."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.abs(left - right)
    if not np.isfinite(difference).all():
        difference[left == right] = 0.0
        difference[np.isnan(difference)] = np.inf
    return difference


def recorded_difference(a: Array, b: Array) -> Floats:
    """Return :func:`absolute_difference`, but 0 where both are NaN: the same record twice."""
    difference = absolute_difference(a, b)
    difference[np.isnan(a) & np.isnan(b)] = 0.0
    return difference


def largest_difference(a: Array, b: Array) -> float:
    """Return the largest :func:`recorded_difference`; infinite where the shapes differ."""
    if a.shape != b.shape:
        return math.inf
    return float(recorded_difference(a, b).max(initial=0.0))


def ulp_distance(a: Array, b: Array) -> NDArray[np.uint64]:
    """Return how many representable numbers lie between a and b, element by element.

    Args:
        a: floats of any width.
        b: floats of the same dtype and shape.

    Returns:
        Unsigned counts: 0 for equal numbers (and for +0 and -0), 1 for neighbours. NaN is
        farther away from any number than any two numbers are from each other.
    """
    left, right = _ordered(a), _ordered(b)
    distance = np.where(left > right, left - right, right - left)
    distance[np.isnan(a) | np.isnan(b)] = np.iinfo(np.uint64).max
    return distance


def _ordered(values: Array) -> NDArray[np.uint64]:
    """Map floats to unsigned integers in the same order, neighbours to neighbours."""
    unsigned = _UNSIGNED[values.dtype.itemsize]
    bits = np.ascontiguousarray(values).view(unsigned).astype(np.uint64)
    sign = np.uint64(1 << (8 * values.dtype.itemsize - 1))
    magnitude = bits & (sign - np.uint64(1))
    ordered: NDArray[np.uint64] = np.where(bits & sign, sign - magnitude, sign + magnitude)
    return ordered


def audit_tolerance(dtype: str, width: int) -> float:
    """Return the declared tolerance of an audit on a checkpoint that is not the shipped one.

    Args:
        dtype: number format of the arithmetic.
        width: d; rounding of sums grows with its square root beyond 16.
    """
    return WIDE_TOLERANCES[dtype] * max(1.0, math.sqrt(width / 16))
