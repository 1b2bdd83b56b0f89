"""The kill matrix: every fault switched on in turn, and what the audit makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.verification.audit.report import AuditReport, audit
from tinydec.verification.audit.stage_checkpoint import Golden, Trusted, trusted_identity
from tinydec.verification.lab.difference import recordings_differ
from tinydec.verification.lab.fault import BATCH, REQUEST, Fault
from tinydec.verification.lab.intervention import Intervention
from tinydec.verification.lab.recorder import record
from tinydec.verification.lab.scenario import Scenario
from tinydec.verification.observation import Recording
from tinydec.verification.scalar_loop import scalar_logits


@dataclass(frozen=True, eq=False)
class Laboratory:
    """One checkpoint and session, with the correct recording that every fault is held against.

    Attributes:
        checkpoint: the published checkpoint in the dtype that is used.
        scenario: the session.
        trusted: what is known of the checkpoint from elsewhere.
        tolerance: largest accepted difference.
        correct: the recording without a fault.
    """

    checkpoint: Checkpoint
    scenario: Scenario
    trusted: Trusted
    tolerance: float
    correct: Recording

    def run(self, intervention: Intervention, part: str | None = None) -> Recording:
        """Record the session with an intervention; only the rows or the requests if so named."""
        return record(self.checkpoint, _part(self.scenario, part), intervention)

    def part_of_correct(self, part: str | None) -> Recording:
        """Return the correct recording of the same part."""
        if part is None:
            return self.correct
        if part == BATCH:
            return _without_runs(self.correct)
        return _without_rows(self.correct)

    def judge(self, recording: Recording) -> AuditReport:
        """Audit a recording."""
        return audit(recording, self.trusted, self.tolerance)


@dataclass(frozen=True)
class KillRow:
    """One fault, and what the audit found.

    Attributes:
        fault: the fault.
        variant: which form of it; empty for the main one.
        stage_found: the first failing stage, or None.
        caught_by: id of the first failing check.
        where: its place.
        observed: what it saw.
        expected: what it should have seen.
        first_tensor: the first tensor that differs from the uncached one.
        first_position: its position.
        max_abs_error: largest logit error against the uncached run.
        greedy_changed: whether the highest logit is another one at any position.
        silent: whether the logits stay equal although the fault acts.
        acts: whether anything recorded differs from the correct session.
        passed: caught at its own stage (and silent, if it is meant to be); or it cannot act.
    """

    fault: Fault
    variant: str
    stage_found: int | None
    caught_by: str
    where: str
    observed: str
    expected: str
    first_tensor: str
    first_position: int | None
    max_abs_error: float
    greedy_changed: bool
    silent: bool
    acts: bool
    passed: bool


def laboratory(
    checkpoint: Checkpoint,
    scenario: Scenario,
    tolerance: float,
    golden: Golden | None = None,
) -> Laboratory:
    """Record the correct session once.

    Args:
        checkpoint: the published checkpoint in the dtype that is to be used.
        scenario: the session.
        tolerance: largest accepted difference.
        golden: golden final logits of a prompt; from the scalar-loop decoder unless given.
    """
    source = remembered(golden_from_scalar_loop(checkpoint)) if golden is None else golden
    trusted = trusted_identity(checkpoint, source)
    return Laboratory(checkpoint, scenario, trusted, tolerance, record(checkpoint, scenario))


def golden_from_scalar_loop(checkpoint: Checkpoint) -> Golden:
    """Return golden final logits (V,) of prompts, from the slow scalar-loop decoder."""

    def golden(prompt_ids: tuple[int, ...]) -> NDArray[np.float64]:
        final: NDArray[np.float64] = np.asarray(scalar_logits(checkpoint, prompt_ids))[-1]
        return final

    return golden


def remembered(golden: Golden) -> Golden:
    """Return the same function with its answers kept for as long as the function lives."""
    answers: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def lookup(prompt_ids: tuple[int, ...]) -> NDArray[np.float64]:
        if prompt_ids not in answers:
            answers[prompt_ids] = golden(prompt_ids)
        return answers[prompt_ids]

    return lookup


def kill(lab: Laboratory, fault: Fault, variant: str = "") -> KillRow:
    """Switch one fault on and judge what is recorded.

    Raises:
        InputError: the fault has no such variant.
    """
    if variant and variant not in fault.variants:
        known = ", ".join(fault.variants) or "none"
        raise InputError(f"variant of {fault.name}: expected {known}, found {variant!r}")
    intervention = fault.variants[variant] if variant else fault.intervention
    part = BATCH if fault.part == BATCH else REQUEST
    recording = lab.run(intervention, part)
    report = lab.judge(recording)
    # A finding is a difference too, even one below a tolerance that is wide for narrow formats.
    acts = not report.passed or recordings_differ(
        recording, lab.part_of_correct(part), lab.tolerance
    )
    failure, first = report.first_failure, report.first_difference
    quiet = report.logit_error <= lab.tolerance
    stage = failure.stage if failure else None
    caught = stage == fault.stage and (quiet or not fault.silent)
    return KillRow(
        fault=fault,
        variant=variant,
        stage_found=stage,
        caught_by=failure.id if failure else "",
        where=str(failure.where) if failure else "",
        observed=failure.observed if failure else "",
        expected=failure.expected if failure else "",
        first_tensor=first[1] if first else "",
        first_position=first[2] if first else None,
        max_abs_error=report.logit_error,
        greedy_changed=_greedy_changed(recording),
        silent=acts and fault.silent and quiet,
        acts=acts,
        passed=caught if acts else stage is None,
    )


def kill_matrix(lab: Laboratory, faults: Sequence[Fault]) -> tuple[KillRow, ...]:
    """Switch every fault on in turn."""
    return tuple(kill(lab, fault) for fault in faults)


def refusal(lab: Laboratory, fault: Fault) -> str | None:
    """Return what the guard says when it is on; None where no guard sees the fault."""
    if fault.guard is None:
        return None
    guarded = replace(fault.intervention, guards_off=frozenset())
    recording = lab.run(guarded, BATCH if fault.part == BATCH else REQUEST)
    stopped = [run.interruption for run in recording.all_runs if run.interruption is not None]
    refused = [probe.refused for probe in recording.probes if probe.contract == "position"]
    messages = [entry.message for entry in (*recording.refusals, *stopped)] + [
        message for message in refused if message is not None
    ]
    return messages[0] if messages else None


def _part(scenario: Scenario, part: str | None) -> Scenario:
    if part is None:
        return scenario
    return replace(scenario, runs=()) if part == BATCH else replace(scenario, rows=())


def _without_rows(recording: Recording) -> Recording:
    return replace(recording, rows=(), nan_counts=(), refusals=())


def _without_runs(recording: Recording) -> Recording:
    return replace(recording, runs=())


def _greedy_changed(recording: Recording) -> bool:
    for run in recording.all_runs:
        for step in run.steps:
            full = run.references.get(step.checkpoint.digest)
            rows = step.activations.logit_rows
            if full is None or step.start + len(rows) > len(full.logit_rows):
                continue
            expected = full.logit_rows[step.start : step.start + len(rows)]
            if (rows.argmax(axis=1) != expected.argmax(axis=1)).any():
                return True
    return False
