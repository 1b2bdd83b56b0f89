"""Whether a checkpoint is sharp enough for a verdict on it to mean anything.

A model whose attention is nearly uniform hides cache faults: whatever is read, the same
average comes out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import Activations, freeze
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.verification.deliberate import run_deliberate_failures
from tinydec.verification.prefixes import controlled_prefixes

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


@dataclass(frozen=True, eq=False)
class FixtureReport:
    """Whether a verdict on a checkpoint means anything.

    Attributes:
        departures: (L, h) how far each head's attention gets from uniform.
        smallest_failure: smallest logit error of a deliberate failure where it can act.
        tolerance: what that error must exceed.
        weakness: why the checkpoint is too flat, or an empty text.
    """

    departures: NDArray[np.float64]
    smallest_failure: float
    tolerance: float
    weakness: str

    def __post_init__(self) -> None:
        freeze(self.departures)

    @property
    def strong(self) -> bool:
        """Whether a broken cache would show."""
        return not self.weakness


def judge_fixture(
    checkpoint: Checkpoint, dtype: str = "float32", tolerance: float | None = None
) -> FixtureReport:
    """Measure whether attention is far from uniform and whether deliberate failures bite.

    Raises:
        InputError: an unknown dtype.
    """
    cast = checkpoint.cast(dtype)
    cases = controlled_prefixes(checkpoint)
    departures = attention_departure(full_forward(cast, case.token_ids) for case in cases)
    failures = run_deliberate_failures(checkpoint, dtype=dtype, tolerance=tolerance)
    acting = [f.result for f in failures if f.cannot_act is None]
    bound = failures[0].result.tolerance
    smallest = min((result.max_abs_error for result in acting), default=0.0)
    weakness = ""
    if departures.min() < LEAST_DEPARTURE:
        layer, head = (int(i) for i in np.unravel_index(departures.argmin(), departures.shape))
        weakness = (
            f"attention of layer {layer}, head {head} stays within {departures.min():.3g} of "
            f"uniform, expected at least {LEAST_DEPARTURE} on some prefix"
        )
    elif not smallest > bound:
        weakness = f"a deliberate failure moves logits by {smallest:.3g} only, within {bound:.3g}"
    return FixtureReport(departures, smallest, bound, weakness)
