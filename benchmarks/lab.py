"""The fault lab and batches: a time limit, and a throughput beside solo runs."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.batch import ROWS, TARGET, batch_jobs
from benchmarks.rows import Row, compared
from benchmarks.timing import CLOCKS, CPU, Job, interleave
from tinydec.model.batch_cache import LAYOUTS
from tinydec.model.storage import load_checkpoint
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.faults import FAULTS
from tinydec.verification.lab.kill_matrix import kill_matrix, laboratory
from tinydec.verification.lab.scenario import frozen_scenario

#: Seconds that the whole kill matrix may take on the frozen checkpoint.
KILL_MATRIX_LIMIT = 2.0


def lab(threads: int, quick: bool, with_peer: bool) -> list[Row]:  # noqa: ARG001 - one shape
    """Return the kill matrix and batched decoding; the batch's peers are its own solo runs."""
    repetitions = 3 if quick else 9
    timing = interleave({"matrix": Job(_matrix)}, repetitions, CLOCKS[CPU])["matrix"]
    matrix = compared(
        f"kill matrix, {len(FAULTS)} faults, correct session included",
        timing,
        {},
        None,
        threads,
        CPU,
        ("ours: laboratory(frozen checkpoint), then kill_matrix: record, audit, compare each",),
    )
    jobs = batch_jobs()
    found = interleave(jobs, repetitions, CLOCKS[CPU])
    batches = [
        compared(
            f"batch of {ROWS} rows, {layout}, against solo runs",
            found[layout],
            {"solo": found["solo"]},
            TARGET,
            threads,
            CPU,
            (f"ours: run_batch(layout={layout!r}); peer: the same {ROWS} requests one by one",),
        )
        for layout in LAYOUTS
    ]
    return [replace(matrix, limit=KILL_MATRIX_LIMIT), *batches]


def _matrix() -> None:
    checkpoint = load_checkpoint()
    kill_matrix(laboratory(checkpoint, frozen_scenario(), TOLERANCES["float32"]), FAULTS)
