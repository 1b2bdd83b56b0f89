"""Whether a checkpoint is sharp enough for a verdict on it to mean anything.

A model whose attention is nearly uniform hides cache faults: whatever is read, the same
average comes out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import Activations

#: Least departure from uniform attention that every head must show on some prefix.
LEAST_DEPARTURE = 0.1


def attention_departure(references: Iterable[Activations]) -> NDArray[np.float64]:
    """Return how far each head's attention gets from uniform.

    Args:
        references: full forwards of some prefixes.

    Returns:
        (L, h): the largest ``|weight - 1/n|`` over all rows with n >= 2 visible keys; 0 when
        no prefix has two tokens.
    """
    departures: NDArray[np.float64] | None = None
    for full in references:
        found = np.stack([_departure(block.attention) for block in full.blocks])
        departures = found if departures is None else np.maximum(departures, found)
    if departures is None:
        raise ValueError("attention_departure needs at least one forward pass")
    return departures


def _departure(attention: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (h,) for one layer's attention (B, h, T, T)."""
    length = attention.shape[2]
    largest = np.zeros(attention.shape[1])
    for row in range(1, length):
        weights = attention[:, :, row, : row + 1].astype(np.float64)
        largest = np.maximum(largest, np.abs(weights - 1 / (row + 1)).max(axis=(0, 2)))
    return largest
