"""One fault with all that the lab shows of it, and all faults in turn: cached compute."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import FROZEN, RunSpec
from tinydec.ui.checkpoints import frozen_checkpoint
from tinydec.ui.compute import computed
from tinydec.ui.current import CurrentRun
from tinydec.ui.lab.session import Bench, Session, bench, is_small, judged_session
from tinydec.verification.audit.report import AuditReport
from tinydec.verification.diagnosis import Symptom
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.fault import BATCH, REQUEST, Fault
from tinydec.verification.lab.intervention import Intervention
from tinydec.verification.lab.kill_matrix import KillRow, Laboratory, kill, refusal
from tinydec.verification.lab.pairing import StepPair, step_pairs
from tinydec.verification.lab.symptom_index import Candidate, symptom_index
from tinydec.verification.observation import Recording


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One fault with all that the lab shows of it.

    Attributes:
        fault: the fault.
        variant: its form, or "".
        row: its row of the kill matrix.
        session: the faulty recording.
        refusal: what its guard says when it is on, or None.
        logits: where, and the final logits (V,) without and with the fault.
        shown: the first step in which a tensor differs, or the first step of all.
    """

    fault: Fault
    variant: str
    row: KillRow
    session: Session
    refusal: str | None
    logits: tuple[str, NDArray[np.floating], NDArray[np.floating]] | None
    shown: StepPair | None


class _Recorded(Laboratory):
    """A laboratory that hands out one recording and its audit instead of making them again."""

    def __init__(self, lab: Laboratory, recording: Recording, report: AuditReport) -> None:
        super().__init__(lab.checkpoint, lab.scenario, lab.trusted, lab.tolerance, lab.correct)
        object.__setattr__(self, "_held", (recording, report))

    def run(self, _intervention: Intervention, _part: str | None = None) -> Recording:
        held: tuple[Recording, AuditReport] = self.__dict__["_held"]
        return held[0]

    def judge(self, _recording: Recording) -> AuditReport:
        held: tuple[Recording, AuditReport] = self.__dict__["_held"]
        return held[1]


def exhibit(run: CurrentRun, fault: Fault, variant: str = "") -> Exhibit:
    """Return one fault, recorded in the part of the session in which it acts."""
    return _exhibit(run, bench(run), fault.id, variant)


@computed("dtype", "tolerance", max_entries=96)
def _exhibit(
    _checkpoint: Checkpoint, _spec: RunSpec, base: Bench, fault_id: str, variant: str
) -> Exhibit:
    lab, fault = base.lab, fault_by_id(fault_id)
    part = BATCH if fault.part == BATCH else REQUEST
    intervention = fault.variants[variant] if variant else fault.intervention
    correct = lab.part_of_correct(part)
    recording = lab.run(intervention, part)
    found = judged_session(lab, correct, recording, (fault.id,))
    return Exhibit(
        fault,
        variant,
        kill(_Recorded(lab, recording, found.report), fault, variant),
        found,
        refusal(lab, fault),
        logits_rows(correct, recording, found),
        found.pair or next(step_pairs(correct, recording, lab.tolerance), None),
    )


def logits_rows(
    correct: Recording, faulty: Recording, found: Session
) -> tuple[str, NDArray[np.floating], NDArray[np.floating]] | None:
    """Return the final logits to be shown side by side, and where they stand.

    Those of the first step in which any logit differs; else the uncached ones, if they differ;
    else those of the first step.
    """
    tolerance = found.report.tolerance
    pair: StepPair | None
    for pair in step_pairs(correct, faulty, tolerance):
        one, other = (step.activations.last_logits[0] for step in (pair.correct, pair.faulty))
        if not float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max()) <= tolerance:
            return f"{pair.run}, step {pair.correct.index}", one, other
    for a, b in zip(correct.runs, faulty.runs, strict=False):
        one, other = a.prompt_logits[0], b.prompt_logits[0]
        if not float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max()) <= tolerance:
            return f"{a.name}, uncached prompt", one, other
    pair = found.pair or next(step_pairs(correct, faulty, tolerance), None)
    if pair is None:
        return None
    one, other = (step.activations.last_logits[0] for step in (pair.correct, pair.faulty))
    return f"{pair.run}, step {pair.correct.index}", one, other


# All faults --------------------------------------------------------------------------------------


def matrix(run: CurrentRun) -> tuple[Exhibit, ...]:
    """Return an exhibit of every fault and variant; about a second on the frozen checkpoint."""
    return tuple(
        exhibit(run, fault, variant) for fault in FAULTS for variant in ("", *fault.variants)
    )


def symptoms(run: CurrentRun) -> dict[Symptom, tuple[Candidate, ...]]:
    """Return which faults show each symptom, in float32 with the declared tolerance.

    A checkpoint that is too large is left aside for the frozen one.
    """
    checkpoint, identity = run.checkpoint, run.spec.checkpoint
    if not is_small(checkpoint):
        checkpoint, identity = frozen_checkpoint(), FROZEN
    plain = replace(run, checkpoint=checkpoint, spec=RunSpec(checkpoint=identity))
    return _symptoms(plain, bench(plain))


@computed("dtype", max_entries=8)
def _symptoms(
    _checkpoint: Checkpoint, _spec: RunSpec, base: Bench
) -> dict[Symptom, tuple[Candidate, ...]]:
    return symptom_index(base.lab, FAULTS)
