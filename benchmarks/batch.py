"""Batched decoding beside solo runs of the same requests, in one run.

Both sides keep the same records (logits, probabilities, draws, states, stop reasons of every
row), without activations. A batch keeps them in columns and makes a row's record when somebody
asks for it; ``with_traces`` asks for all of them.
"""

from __future__ import annotations

from typing import Any

from benchmarks.timing import CLOCKS, CPU, Job, interleave
from tinydec.generation.batch import run_batch
from tinydec.generation.schedule import BatchRequest
from tinydec.model.batch_cache import LAYOUTS, LEFT
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy
from tinydec.verification.isolation import solo_trace

ROWS = 64
#: How many times as fast as solo runs a batch has to be.
TARGET = 10.0
#: Batches in one sample, so that a sample of either side takes about as long.
_PASSES = 10


def requests(rows: int = ROWS) -> tuple[BatchRequest, ...]:
    """Return ``<bos>`` sampled from the top 3 under the seeds 0, 1 ...: four steps a row."""
    policy = Policy("sample", 1.0, 3)
    return tuple(BatchRequest(f"row {seed}", (0,), policy, seed) for seed in range(rows))


def measure(rows: int = ROWS, repetitions: int = 9) -> dict[str, Any]:
    """Time solo runs and batches in turns and return the medians.

    Returns:
        ``rows``, ``tokens`` (selected in all), ``solo_seconds``, and for each layout, and for
        ``with_traces`` (left-padded, every row's record made), ``seconds`` and ``ratio``: how
        many times the throughput of the solo runs; ``target``, and ``passed`` when all three
        layouts reach it. Seconds of processor time, so that a busy machine changes little.
    """
    checkpoint = load_checkpoint()
    asked = requests(rows)
    tokens = sum(len(solo_trace(checkpoint, request).steps) for request in asked)
    jobs = batch_jobs(rows) | {"with_traces": _batches(checkpoint, asked, LEFT, True)}
    found = interleave(jobs, repetitions, CLOCKS[CPU])
    alone = found["solo"].median
    sides = {
        name: {"seconds": timing.median, "ratio": alone / timing.median}
        for name, timing in found.items()
        if name != "solo"
    }
    return {
        "rows": rows,
        "tokens": tokens,
        "solo_seconds": alone,
        **sides,
        "target": TARGET,
        "passed": all(sides[layout]["ratio"] >= TARGET for layout in LAYOUTS),
    }


def batch_jobs(rows: int = ROWS) -> dict[str, Job]:
    """Return one job for each layout, and ``solo`` for the same requests one by one."""
    checkpoint = load_checkpoint()
    asked = requests(rows)
    solo = Job(lambda: [solo_trace(checkpoint, request) for request in asked])
    return {"solo": solo} | {
        layout: _batches(checkpoint, asked, layout, False) for layout in LAYOUTS
    }


def _batches(
    checkpoint: Checkpoint, asked: tuple[BatchRequest, ...], layout: str, traces: bool
) -> Job:
    def run() -> None:
        for _ in range(_PASSES):
            found = run_batch(checkpoint, asked, layout=layout)
            if traces:
                for row in found.rows:
                    _ = row.trace

    return Job(run, _PASSES)


if __name__ == "__main__":
    import json

    print(json.dumps(measure(), indent=2))
