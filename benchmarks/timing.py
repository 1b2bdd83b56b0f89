"""Interleaved repetitions and their medians."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: Processor time is the same however busy the machine is, but counts every thread.
CPU = "cpu"
WALL = "wall"

Clock = Callable[[], float]
CLOCKS: Mapping[str, Clock] = {CPU: time.process_time, WALL: time.perf_counter}


@dataclass(frozen=True)
class Timing:
    """Seconds per unit of work, one sample per repetition."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The samples a quarter and three quarters of the way up."""
        if len(self.samples) < 2:
            return self.samples[0], self.samples[0]
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Job:
    """What one side of a comparison does in one repetition.

    Attributes:
        run: the timed call.
        units: how many units of work (decode steps, say) one call does.
        prepare: an untimed call before it, or None.
    """

    run: Callable[[], object]
    units: int = 1
    prepare: Callable[[], object] | None = None


def interleave(jobs: Mapping[str, Job], repetitions: int, clock: Clock) -> dict[str, Timing]:
    """Time every job once per repetition, in turns, so that all meet the same disturbances.

    Each job runs once untimed before. Garbage is collected before a sample and not during it.
    """
    for job in jobs.values():
        _sample(job, clock)
    samples: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repetitions):
        for name, job in jobs.items():
            samples[name].append(_sample(job, clock))
    return {name: Timing(tuple(times)) for name, times in samples.items()}


def _sample(job: Job, clock: Clock) -> float:
    if job.prepare is not None:
        job.prepare()
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        job.run()
        return (clock() - start) / job.units
    finally:
        if was_enabled:
            gc.enable()
