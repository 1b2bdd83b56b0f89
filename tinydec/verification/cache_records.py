"""Every layer's cache after every step, against the shape, length and values it should have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import Activations
from tinydec.verification.alignment import join_heads, slot_errors
from tinydec.verification.cached_run import CachedStep

Array = NDArray[Any]
Floats = NDArray[np.float64]


class CacheRecord(NamedTuple):
    """One layer's cache after one step, held against what it should be."""

    step: int
    phase: str
    token_ids: tuple[int, ...]  # the inputs that the step consumed
    positions: tuple[int, ...]
    layer: int
    owner: str
    k_shape: tuple[int, ...]
    v_shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    length_before: int
    length_after: int
    payload_scalars: int
    payload_bytes: int
    k_max_error: float  # every stored key against the full-prefix projections
    v_max_error: float
    tolerance: float

    @property
    def shapes_valid(self) -> bool:
        """Whether K and V have the expected shape and grew by one slot per consumed token."""
        grown = self.length_after - self.length_before == len(self.token_ids)
        return grown and self.k_shape == self.v_shape == self.expected_shape

    @property
    def passed(self) -> bool:
        """Whether shape, length and every stored value are right."""
        return self.shapes_valid and max(self.k_max_error, self.v_max_error) <= self.tolerance


def cache_records(
    full: Activations, steps: Sequence[CachedStep], tolerance: float
) -> tuple[tuple[CacheRecord, ...], ...]:
    """Return, for each of B rows, one record per step and layer.

    Args:
        full: the full forward of the same B prefixes.
        steps: the cached path's steps.
        tolerance: largest accepted difference of a stored value.
    """
    shape = full.blocks[0].k.shape  # (B, h, T, d_h)
    errors = _stored_errors(full, steps)
    return tuple(
        tuple(
            _record(shape, index, step, layer, errors[row][index][layer], row, tolerance)
            for index, step in enumerate(steps)
            for layer in range(len(step.stored))
        )
        for row in range(full.batch)
    )


def _stored_errors(
    full: Activations, steps: Sequence[CachedStep]
) -> list[list[list[tuple[float, float]]]]:
    """Return the largest error of K and of V for each row, step and layer."""
    blocks = full.blocks
    whole = join_heads((part for b in blocks for part in (b.k, b.v)), blocks[0].k.shape)
    held = [
        [part for layer in step.stored for part in (layer.keys, layer.values)] for step in steps
    ]
    lengths = [step.length_after for step in steps]
    slots = slot_errors(whole, held, lengths)  # (B, 2*L, S)
    starts = list(accumulate(lengths[:-1], initial=0))
    largest = np.maximum.reduceat(slots, starts, axis=2)  # (B, 2*L, steps)
    # (B, 2*L, steps) -> (B, steps, 2*L) -> (B, steps, L, 2)
    by_layer = largest.swapaxes(1, 2).reshape(len(largest), len(steps), len(blocks), 2)
    rows: list[list[list[tuple[float, float]]]] = by_layer.tolist()
    return rows


def _record(
    shape: tuple[int, ...],
    index: int,
    step: CachedStep,
    layer: int,
    errors: tuple[float, float],
    row: int,
    tolerance: float,
) -> CacheRecord:
    stored = step.stored[layer]
    batch, heads, _, d_h = shape
    k_shape, v_shape = stored.keys.shape, stored.values.shape
    return CacheRecord(
        step=index,
        phase=step.phase,
        token_ids=tuple(column[row] for column in step.consumed),
        positions=step.activations.positions,
        layer=stored.layer,
        owner=step.owner.request_id,
        k_shape=k_shape,
        v_shape=v_shape,
        expected_shape=(batch, heads, step.length_after, d_h),
        length_before=step.length_before,
        length_after=step.length_after,
        payload_scalars=(stored.keys.size + stored.values.size) // batch,
        payload_bytes=stored.nbytes // batch,
        k_max_error=errors[0],
        v_max_error=errors[1],
        tolerance=tolerance,
    )
