"""Results are shared between visitors: no array in them can be written to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.frozen import arrays, writable
from tinydec.evidence.audit import default_spec, run_audit
from tinydec.evidence.fault_report import faults_spec, run_faults
from tinydec.evidence.session import with_faults
from tinydec.generation.batch import run_batch
from tinydec.generation.generate import generate
from tinydec.generation.schedule import BatchRequest
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy, RunSpec
from tinydec.verification.deliberate import run_deliberate_failures
from tinydec.verification.equivalence import verify_prefixes
from tinydec.verification.fixture import judge_fixture
from tinydec.verification.overflow import overflow

SAMPLED = RunSpec(policy=Policy("sample", top_k=3))


def batch(checkpoint: Checkpoint) -> Any:
    requests = (BatchRequest("one", (0, 2)), BatchRequest("two", (0,)), BatchRequest("three", (0,)))
    return run_batch(checkpoint, requests, keep_activations=True)


def audited(checkpoint: Checkpoint) -> Any:
    report = run_audit(checkpoint, with_faults(default_spec(checkpoint), ("F19",)))
    assert not report.session.passed
    return report


RESULTS: dict[str, Callable[[Checkpoint], Any]] = {
    "equivalence": verify_prefixes,
    "equivalence, side by side": lambda c: verify_prefixes(c, side_by_side=True),
    "equivalence, float16": lambda c: verify_prefixes(c, dtype="float16"),
    "deliberate failures": run_deliberate_failures,
    "trace": lambda c: generate(c, SAMPLED),
    "trace with activations": lambda c: generate(c, SAMPLED, keep_activations=True),
    "trace without a cache": lambda c: generate(c, RunSpec(cache=False), keep_activations=True),
    "batch": batch,
    "fixture": judge_fixture,
    "audit": audited,
    "fault lab": lambda c: run_faults(c, faults_spec(c, "float32")),
    "checkpoint": lambda c: (c, c.weights),
    "overflow": lambda c: overflow(c, (0, 2, 3, 4, 5)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_no_array_of_a_result_can_be_written_to(name: str) -> None:
    found = RESULTS[name](load_checkpoint())
    assert arrays(found) > 0
    assert writable(found) == []


def test_walk_finds_what_can_be_written_to() -> None:
    @dataclass(frozen=True)
    class Result:
        parts: tuple[dict[str, np.ndarray], ...]

    result = Result(({"kept": np.zeros(2), "left": np.zeros(3)},))
    result.parts[0]["kept"].setflags(write=False)
    assert arrays(result) == 2
    assert writable(result) == [".parts[0]['left']"]


def test_error_of_a_prefix_cannot_be_overwritten() -> None:
    split = verify_prefixes(load_checkpoint()).rows[0]
    with pytest.raises(ValueError, match="read-only"):
        split.errors[0, 0] = 1.0
