"""Time one step with a cache and one without, on the machine at hand."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.prefill import prefill
from tinydec.runspec import check_integer

_REQUEST = "timing"

#: Returns seconds, such as ``time.perf_counter``.
Clock = Callable[[], float]


@dataclass(frozen=True)
class StepTiming:
    """Seconds of one step that sees ``length`` tokens: lower quartile, median, upper quartile."""

    length: int
    cached: tuple[float, float, float]
    full: tuple[float, float, float]

    @property
    def ratio(self) -> float:
        """How many times longer the step takes without a cache, by the medians."""
        return self.full[1] / self.cached[1] if self.cached[1] else float("inf")


def time_steps(checkpoint: Checkpoint, repeats: int, clock: Clock) -> tuple[StepTiming, ...]:
    """Time a decode step and a full forward at every length of the context, taking turns.

    Args:
        checkpoint: the decoder, in the dtype of the arithmetic.
        repeats: samples of each, at least 3.
        clock: returns seconds.

    Raises:
        InputError: fewer than 3 repeats.
    """
    check_integer("repeats", repeats, 3)
    found = []
    for length in range(1, checkpoint.config.n_positions + 1):
        ids = np.zeros((1, length), np.int64)
        cache = KVCache(checkpoint, _REQUEST)
        if length > 1:
            prefill(checkpoint, cache, ids[:, 1:], _REQUEST)
        cached, full = [], []
        for _ in range(repeats):
            start = clock()
            decode_step(checkpoint, cache, [0], _REQUEST)
            middle = clock()
            full_forward(checkpoint, ids)
            cached.append(middle - start)
            full.append(clock() - middle)
            cache.truncate(length - 1)
        found.append(StepTiming(length, _quartiles(cached), _quartiles(full)))
    return tuple(found)


def _quartiles(samples: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high
