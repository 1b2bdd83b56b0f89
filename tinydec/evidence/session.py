"""The session that an audit records and judges: correct, or with faults switched on.

It holds what the acceptance gate does not look at: six stages of contracts over recorded runs,
every row of a batch against its solo run, and whether the checkpoint is sharp enough for a
verdict on it to mean anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tinydec.errors import InputError
from tinydec.generation.batch import run_batch
from tinydec.generation.schedule import JOIN, BatchRequest, Event
from tinydec.model.batch_cache import LAYOUTS
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.guards import GUARDS, GuardError
from tinydec.runspec import RunSpec
from tinydec.verification.audit.report import AuditReport as StageReport
from tinydec.verification.compare import TOLERANCES, audit_tolerance
from tinydec.verification.diagnosis import Diagnosis, diagnose
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.fixture import FixtureReport, judge_fixture
from tinydec.verification.isolation import IsolationRecord, isolation, solo_trace
from tinydec.verification.lab.difference import recordings_differ
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.intervention import Intervention
from tinydec.verification.lab.kill_matrix import KillRow, Laboratory, kill, laboratory, refusal
from tinydec.verification.lab.mystery import intervention_of
from tinydec.verification.lab.scenario import scenario_for
from tinydec.verification.observation import Recording

#: Most multiply-adds of the scalar-loop decoder that gives golden logits; it takes a few seconds.
MOST_SCALAR_WORK = 50_000_000
#: Most attention scores that a session keeps.
MOST_SCORES = 20_000_000
#: Prompts with golden logits, and runs and rows of a session over all layouts.
_GOLDEN_PROMPTS, _RUNS = 3, 18


@dataclass(frozen=True, eq=False)
class AuditedSession:
    """One recorded session with everything that was judged of it.

    Attributes:
        lab: the checkpoint, the requests, and the same session without a fault.
        faults: what was switched on, guards off; none for the correct session.
        recording: what was observed.
        report: the six stages.
        isolation: every row of the batch in every layout against its solo run.
        fixture: whether the checkpoint is sharp enough.
    """

    lab: Laboratory
    faults: tuple[Fault, ...]
    recording: Recording
    report: StageReport
    isolation: tuple[IsolationRecord, ...]
    fixture: FixtureReport

    @property
    def tolerance(self) -> float:
        """Largest accepted difference."""
        return self.lab.tolerance

    @property
    def isolated(self) -> bool:
        """Whether every row of every layout equals its solo run; no batch broke off."""
        expected = len(LAYOUTS) * len(self.lab.scenario.rows)
        return len(self.isolation) == expected and all(r.passed for r in self.isolation)

    @property
    def passed(self) -> bool:
        """Whether all six stages pass, rows are isolated, the fixture is strong."""
        judged = self.report.passed and self.isolated and self.fixture.strong
        return judged and not self.missed

    @property
    def missed(self) -> bool:
        """Whether faults are on that change something, and no stage failed."""
        return bool(self.faults) and self.acts and self.report.passed

    @cached_property
    def acts(self) -> bool:
        """Whether anything recorded differs from the session without faults."""
        differ = recordings_differ(self.recording, self.lab.correct, self.tolerance)
        return differ or bool(self.faults and not self.report.passed)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What the recording says about its first failure; None without one."""
        return diagnose(self.recording, self.report)

    @cached_property
    def kills(self) -> tuple[KillRow, ...]:
        """Each fault on alone, and each of its variants; every fault unless some were chosen."""
        return tuple(
            kill(self.lab, fault, variant)
            for fault in self.faults or FAULTS
            for variant in ("", *fault.variants)
        )

    @cached_property
    def refusals(self) -> Mapping[str, str | None]:
        """What the guard of each of those faults says when it is on, by fault id."""
        return {fault.id: refusal(self.lab, fault) for fault in self.faults or FAULTS}


def with_faults(spec: RunSpec, names: Iterable[str]) -> RunSpec:
    """Return the spec with faults switched on and the guards that would refuse them off.

    Args:
        spec: an audit's.
        names: ids or names, in any order; one that comes twice counts once.

    Raises:
        InputError: no such fault; the valid ids are listed.
    """
    faults = _ordered(names)
    off = sorted(intervention_of(faults).guards_off)
    return replace(spec, faults=tuple(fault.id for fault in faults), guards_off=tuple(off))


def session_tolerance(checkpoint: Checkpoint, spec: RunSpec, *, is_frozen: bool) -> float:
    """Return the largest difference that a session accepts.

    The spec's, else the one declared for the dtype: for the shipped checkpoint, or for the width
    of any other one.
    """
    if spec.tolerance is not None:
        return spec.tolerance
    if is_frozen:
        return TOLERANCES[spec.dtype]
    return audit_tolerance(spec.dtype, checkpoint.config.n_embd)


def run_session(checkpoint: Checkpoint, spec: RunSpec, *, is_frozen: bool) -> AuditedSession:
    """Record the session of a checkpoint with the spec's faults, and judge it.

    Args:
        checkpoint: as it is stored.
        spec: an audit's; its dtype, tolerance and faults count.
        is_frozen: whether it is the shipped one.

    Raises:
        InputError: a checkpoint too large to record, an unknown fault, or logits that are not
            finite.
    """
    check_session_size(checkpoint.config)
    faults = _ordered(spec.faults)
    cast = checkpoint.cast(spec.dtype)
    tolerance = session_tolerance(checkpoint, spec, is_frozen=is_frozen)
    lab = laboratory(cast, scenario_for(cast), tolerance)
    intervention = intervention_of(faults)
    recording = lab.run(intervention) if faults else lab.correct
    return AuditedSession(
        lab=lab,
        faults=faults,
        recording=recording,
        report=lab.judge(recording),
        isolation=_isolation(lab, recording.checkpoint, intervention),
        fixture=judge_fixture(checkpoint, spec.dtype, tolerance),
    )


def check_session_size(config: ModelConfig) -> None:
    """Refuse a decoder whose session would take minutes or gigabytes.

    Raises:
        InputError: too many multiply-adds for golden logits, or too many scores to keep.
    """
    length, width = config.n_positions, config.n_embd
    per_token = config.n_layer * (4 * width + 2 * config.n_inner) + config.vocab_size
    work = _GOLDEN_PROMPTS * length * width * (per_token + config.n_layer * length)
    scores = _RUNS * config.n_layer * config.n_head * length**2
    for count, most, what in (
        (work, MOST_SCALAR_WORK, "multiply-adds for golden logits"),
        (scores, MOST_SCORES, "attention scores to record"),
    ):
        if count > most:
            raise InputError(
                f"checkpoint: expected at most {most} {what}, found about {count} "
                f"({config.parameter_count()} parameters, context {length})"
            )


def _ordered(names: Iterable[str]) -> tuple[Fault, ...]:
    chosen = {fault_by_id(name).id for name in names}
    return tuple(fault for fault in FAULTS if fault.id in chosen)


def _isolation(
    lab: Laboratory, loaded: Checkpoint, intervention: Intervention
) -> tuple[IsolationRecord, ...]:
    """Hold the session's rows in every layout against their solo runs on the correct code."""
    encode = loaded.vocabulary.encode
    rows = lab.scenario.rows
    requests = [
        BatchRequest(row.name, encode(row.prompt), row.policy, row.seed, row.max_new_tokens)
        for row in rows
    ]
    joins = [Event(row.joins, JOIN, row.name) for row in rows if row.joins]
    guards = GUARDS - intervention.guards_off
    solo = {request: solo_trace(loaded, request) for request in requests}
    records: list[IsolationRecord] = []
    for layout in LAYOUTS:
        try:
            batch = run_batch(
                loaded, requests, joins, layout, seams=intervention.batch, guards=guards
            )
        except GuardError:  # what it said stands in the recording
            continue
        records += isolation(loaded, batch, tolerance=lab.tolerance, solo=solo)
    return tuple(records)
