"""From a symptom to the faults that show it: measured, by switching on every fault in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinydec.verification.diagnosis import SYMPTOMS, Diagnosis, Symptom, diagnose
from tinydec.verification.lab.fault import BATCH, REQUEST, Fault
from tinydec.verification.lab.kill_matrix import Laboratory


@dataclass(frozen=True)
class Candidate:
    """A fault that shows a symptom on the laboratory's checkpoint.

    Attributes:
        fault: the fault.
        caught_by: id of the first failing check.
        observed: what it saw.
        expected: what it should have seen.
        first_tensor: the first tensor that differs from the uncached one, or "".
        max_abs_error: largest logit error against the uncached run.
    """

    fault: Fault
    caught_by: str
    observed: str
    expected: str
    first_tensor: str
    max_abs_error: float


def symptom_index(lab: Laboratory, faults: Sequence[Fault]) -> dict[Symptom, tuple[Candidate, ...]]:
    """Return the candidates of every symptom; a fault may stand under several, or under none."""
    found: dict[Symptom, list[Candidate]] = {symptom: [] for symptom in SYMPTOMS}
    for fault in faults:
        recording = lab.run(fault.intervention, BATCH if fault.part == BATCH else REQUEST)
        report = lab.judge(recording)
        diagnosis = diagnose(recording, report)
        if diagnosis is None:
            continue
        candidate = _candidate(fault, diagnosis, report.logit_error)
        for symptom in diagnosis.symptoms:
            found[symptom].append(candidate)
    return {symptom: tuple(candidates) for symptom, candidates in found.items()}


def _candidate(fault: Fault, diagnosis: Diagnosis, error: float) -> Candidate:
    first, check = diagnosis.first_difference, diagnosis.check
    tensor = "" if first is None else first[1]
    return Candidate(fault, check.id, check.observed, check.expected, tensor, error)
