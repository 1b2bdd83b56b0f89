"""The recorded session of the audit and the lab, faults and all: cached compute for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.activations import Activations
from tinydec.model.batch_cache import LEFT
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.runspec import FROZEN, RunSpec
from tinydec.ui.checkpoints import frozen_checkpoint
from tinydec.ui.compute import computed
from tinydec.ui.current import CurrentRun
from tinydec.ui.html import code
from tinydec.ui.lab.tolerance import lab_tolerance
from tinydec.verification.audit.report import AuditReport
from tinydec.verification.diagnosis import Diagnosis, diagnose
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.fixture import attention_departure
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.kill_matrix import Laboratory
from tinydec.verification.lab.kill_matrix import laboratory as make_laboratory
from tinydec.verification.lab.mystery import Case, draw_case, intervention_of
from tinydec.verification.lab.pairing import (
    Difference,
    StepPair,
    differences,
    first_pair,
)
from tinydec.verification.lab.recorder import record
from tinydec.verification.lab.scenario import Scenario, ScenarioRun, scenario_for
from tinydec.verification.observation import Recording

#: Parameters times context up to which the scalar-loop decoder is asked for golden logits, and
#: all faults are switched on in turn. The frozen checkpoint has 1 472.
_SMALL = 2_000_000

#: What findings call the run of the shared controls.
YOURS = "your run"

#: Facts that are listed of a difference; the rest follow from them.
MOST_DIFFERENCES = 14


@dataclass(frozen=True, eq=False)
class Bench:
    """The laboratory of a visit.

    Attributes:
        lab: the correct session and what is trusted.
        note: what had to be replaced for the visitor's checkpoint, or "".
        departure: (L, h) how far each head's attention gets from uniform.
    """

    lab: Laboratory
    note: str
    departure: NDArray[np.float64]

    def __repr__(self) -> str:
        return "bench"  # the spec's fields and the checkpoint name it in a cache key


@dataclass(frozen=True, eq=False)
class Session:
    """One recording of the session, judged.

    Attributes:
        faults: ids of what is switched on.
        report: the audit's.
        diagnosis: of the first failure, or None.
        differences: the first facts that differ from the correct session.
        pair: the first step in which a tensor differs, or None.
    """

    faults: tuple[str, ...]
    report: AuditReport
    diagnosis: Diagnosis | None
    differences: tuple[Difference, ...]
    pair: StepPair | None


# The laboratory ----------------------------------------------------------------------------------


@computed("dtype", "tolerance", max_entries=12)
def bench(checkpoint: Checkpoint, spec: RunSpec) -> Bench:
    """Record the correct session; on the frozen checkpoint where the visitor's has no decode step.

    Raises:
        InputError: the session cannot be recorded on it.
    """
    note = ""
    if checkpoint.config.n_positions < 2:
        note = (
            "Your checkpoint has a context of 1 position, so it has no decode step to record. "
            "This page shows the frozen checkpoint instead."
        )
        checkpoint, spec = frozen_checkpoint(), replace(spec, checkpoint=FROZEN)
    model, tolerance = checkpoint.cast(spec.dtype), lab_tolerance(checkpoint, spec)
    golden = None
    if not is_small(checkpoint):
        note = (
            "This checkpoint is too large for the slow scalar-loop decoder. Its golden logits are "
            "the uncached path's own in float64, so stage 1 cannot tell a wrong uncached path."
        )
        wide = checkpoint.cast("float64")

        def golden_from_full(prompt_ids: tuple[int, ...]) -> NDArray[np.float64]:
            return np.asarray(full_forward(wide, prompt_ids).last_logits[0], np.float64)

        golden = golden_from_full
    lab = make_laboratory(model, scenario_for(model), tolerance, golden)
    references = _references(lab.correct)
    if not references:  # every run of the session was broken off at once
        raise InputError(
            f"logits: expected finite values in {spec.dtype}, found NaN or infinity in every run "
            "of the session"
        )
    return Bench(lab, note, attention_departure(references))


def is_small(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is small enough for the slow decoder and for all faults in turn."""
    return checkpoint.config.parameter_count() * checkpoint.config.n_positions <= _SMALL


def _references(recording: Recording) -> list[Activations]:
    return [full for run in recording.all_runs for full in run.references.values()]


# Sessions ----------------------------------------------------------------------------------------


def session(run: CurrentRun, faults: Sequence[Fault] = ()) -> Session:
    """Return the whole session with faults on, its batch in the left-padded layout."""
    return _session(run, bench(run), tuple(dict.fromkeys(fault.id for fault in faults)))


@computed("dtype", "tolerance", max_entries=96)
def _session(_checkpoint: Checkpoint, _spec: RunSpec, base: Bench, ids: tuple[str, ...]) -> Session:
    lab = base.lab
    correct = _left_only(lab.correct)
    found = _recorded(lab, lab.scenario, ids) if ids else correct
    return judged_session(lab, correct, found, ids)


def _recorded(lab: Laboratory, scenario: Scenario, ids: Sequence[str]) -> Recording:
    intervention = intervention_of([fault_by_id(name) for name in ids])
    return record(lab.checkpoint, scenario, intervention, (LEFT,))


def judged_session(
    lab: Laboratory, correct: Recording, found: Recording, ids: tuple[str, ...]
) -> Session:
    """Audit a recording and hold it against the correct one."""
    report = lab.judge(found)
    return Session(
        ids,
        report,
        diagnose(found, report),
        differences(correct, found, lab.tolerance, MOST_DIFFERENCES),
        first_pair(correct, found, lab.tolerance),
    )


def _left_only(recording: Recording) -> Recording:
    rows = tuple(row for row in recording.rows if row.name.endswith(f", {LEFT}"))
    counts = tuple(count for count in recording.nan_counts if count.run.endswith(f", {LEFT}"))
    return replace(recording, rows=rows, nan_counts=counts)


@dataclass(frozen=True, eq=False)
class Audited:
    """The visitor's run and the session behind it, judged.

    Attributes:
        report: the audit's.
        diagnosis: of the first failure, or None.
    """

    report: AuditReport
    diagnosis: Diagnosis | None


def audited(run: CurrentRun, faults: Sequence[Fault] = ()) -> Audited:
    """Audit the run of the shared controls, then the session, with faults on in all of them."""
    return _audited(run, bench(run), tuple(dict.fromkeys(fault.id for fault in faults)))


@computed(
    "prompt", "policy", "seed", "max_new_tokens", "stop_tokens", "dtype", "tolerance",
    max_entries=96,
)  # fmt: skip
def _audited(checkpoint: Checkpoint, spec: RunSpec, base: Bench, ids: tuple[str, ...]) -> Audited:
    lab = base.lab
    scenario = lab.scenario
    if checkpoint.vocabulary == lab.checkpoint.vocabulary:  # the bench may stand in for another
        own = ScenarioRun(
            YOURS,
            spec.prompt,
            spec.policy,
            spec.seed,
            spec.max_new_tokens,
            stop_tokens=spec.stop_tokens,
        )
        scenario = replace(scenario, runs=(own, *scenario.runs))
    found = _recorded(lab, scenario, ids)
    report = lab.judge(found)
    return Audited(report, diagnose(found, report))


# Cases -------------------------------------------------------------------------------------------


def case(run: CurrentRun, number: int) -> Case:
    """Return the hidden faults of a case."""
    return _case(run, bench(run), number)


@computed("dtype", "tolerance", max_entries=256)
def _case(_checkpoint: Checkpoint, _spec: RunSpec, base: Bench, number: int) -> Case:
    return draw_case(base.lab, number, FAULTS)


def scenario_text(scenario: Scenario, *, yours: bool = False) -> str:
    """Return in two sentences what the session runs, and which shared controls apply.

    Args:
        scenario: the session behind every page of the lab.
        yours: whether the run of the shared controls comes first.
    """
    runs = ", ".join(f"{run.name}: {_short(run.prompt)}" for run in scenario.runs)
    rows = ", ".join(_short(row.prompt) for row in scenario.rows)
    fixed = (
        f"{len(scenario.runs)} requests one by one ({runs}), then {len(scenario.rows)} side by "
        f"side ({rows})"
    )
    if yours:
        return (
            f"Audited: your run, as the controls above say, always with a cache; behind it {fixed}."
        )
    return (
        f"The recorded session is always the same: {fixed}. Of the controls above, number format, "
        "tolerance and checkpoint apply; they are under Run."
    )


def _short(prompt: tuple[str, ...]) -> str:
    return code(" ".join(prompt[:4])) + (" …" if len(prompt) > 4 else "")
