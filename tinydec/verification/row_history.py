"""Whether rows already written to a cache ever change: bits against bits, step after step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tinydec.verification.cached_run import CachedStep

Array = NDArray[Any]

#: The two tensors of a layer's cache, as the tables call them.
TENSORS = ("K", "V")


@dataclass(frozen=True)
class RowHistory:
    """One position's row of one layer's K or V, from the step that wrote it to the last.

    Attributes:
        layer: from 0.
        tensor: ``K`` or ``V``.
        position: the slot, which is the position.
        written_step: the step after which the row was first there.
        compared_steps: later steps in which it was held against its first copy.
        scalars: numbers in the row: heads times head width.
        changed_steps: those later steps in which any bit differed.
    """

    layer: int
    tensor: str
    position: int
    written_step: int
    compared_steps: int
    scalars: int
    changed_steps: tuple[int, ...]

    @property
    def unchanged(self) -> bool:
        """Whether every comparison found the same bits (true without any comparison)."""
        return not self.changed_steps


def row_histories(steps: Sequence[CachedStep], row: int = 0) -> tuple[RowHistory, ...]:
    """Follow each row of each layer's K and V through the steps of one cached run.

    Args:
        steps: of :func:`tinydec.verification.cached_run.run_cached`; each holds its own copy
            of what the cache held then.
        row: which of the B sequences.
    """
    return tuple(
        history
        for layer in range(len(steps[0].stored) if steps else 0)
        for tensor in TENSORS
        for history in _tensor_histories(steps, row, layer, tensor)
    )


def _tensor_histories(
    steps: Sequence[CachedStep], row: int, layer: int, tensor: str
) -> Iterator[RowHistory]:
    held = [_array(step, row, layer, tensor) for step in steps]
    for written, step in enumerate(steps):
        for position in range(step.length_before, step.length_after):
            first = held[written][:, position]  # (h, d_h)
            later = range(written + 1, len(steps))
            changed = tuple(
                index for index in later if not same_bytes(held[index][:, position], first)
            )
            yield RowHistory(layer, tensor, position, written, len(later), first.size, changed)


def _array(step: CachedStep, row: int, layer: int, tensor: str) -> Array:
    stored = step.stored[layer]
    both: dict[str, Array] = {"K": stored.keys, "V": stored.values}
    held: Array = both[tensor][row]  # (B, h, t, d_h) -> (h, t, d_h)
    return held


def same_bytes(one: Array, other: Array) -> bool:
    """Whether two arrays have the same dtype, shape and bits (so +0 and -0 differ)."""
    same_form = one.dtype == other.dtype and one.shape == other.shape
    return same_form and one.tobytes() == other.tobytes()
