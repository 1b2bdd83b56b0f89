"""The acceptance gate: the milestone's five conditions, each judged from recorded evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tinydec.generation.policy import replay
from tinydec.generation.stopping import CONTEXT, EOS
from tinydec.generation.stream import UniformStream
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.deliberate import FailureResult
from tinydec.verification.equivalence import EquivalenceReport
from tinydec.verification.faults import DELIBERATE

EQUALS = "equals"
ABOVE = "above"


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """One spec, run twice: with a cache and as full forwards."""

    name: str
    spec: RunSpec
    cached: GenerationTrace
    full: GenerationTrace

    @property
    def traces(self) -> tuple[tuple[str, GenerationTrace], ...]:
        """Both traces by the path that computed them."""
        return (("cached", self.cached), ("full", self.full))


@dataclass(frozen=True)
class Condition:
    """One acceptance condition with its figure.

    Attributes:
        number: 1 to 5, in the milestone's order.
        condition: what must hold.
        measure: what the figure counts or measures.
        figure: what was found.
        relation: ``equals`` or ``above``: how the figure must stand to ``expected``.
        expected: the number it is held against.
        passed: whether the condition holds.
    """

    number: int
    condition: str
    measure: str
    figure: float
    relation: str
    expected: float
    passed: bool


def acceptance_gate(
    checkpoint: Checkpoint,
    equivalence: EquivalenceReport,
    failures: Sequence[FailureResult],
    runs: Sequence[RecordedRun],
) -> tuple[Condition, ...]:
    """Judge the five conditions.

    Args:
        checkpoint: whose context and ``<eos>`` the runs' stop reasons are held against.
        equivalence: every prefix in every split.
        failures: the deliberate failures on every prefix.
        runs: the greedy and the sampled run and one that fills the context.
    """
    return (
        _prefixes(equivalence),
        _caches(equivalence),
        _failures(equivalence, failures),
        _policies(runs),
        _stops(checkpoint, runs),
    )


def recorded_reason(checkpoint: Checkpoint, trace: GenerationTrace) -> bool:
    """Whether a run records ``eos`` or ``context``, and its tokens show that this is right."""
    if not trace.steps or any(step.stop_reason is not None for step in trace.steps[:-1]):
        return False
    eos_id = checkpoint.vocabulary.eos_id
    ended = eos_id is not None and trace.returned_ids[-1] == eos_id
    full = len(trace.consumed_ids) == checkpoint.config.n_positions
    shown = EOS if ended else CONTEXT if full else None
    return shown is not None and trace.steps[-1].stop_reason == shown


def reproducible_steps(trace: GenerationTrace) -> int:
    """Count the selections that come out the same, bit for bit, from their own record.

    A step counts when replaying its logits, policy and generator state gives the same record
    again, and when its generator goes on from where the step before left it (the first one from
    the seed).
    """
    states = [UniformStream(trace.seed).state]
    states += [step.selection.state_after for step in trace.steps]
    return sum(
        replay(step.selection).same_as(step.selection) and step.selection.state_before == before
        for step, (before, _) in zip(trace.steps, pairwise(states), strict=True)
    )


def _prefixes(equivalence: EquivalenceReport) -> Condition:
    total = len(equivalence.prefixes)
    return Condition(
        number=1,
        condition="All controlled prefixes pass the comparison of full and cached logits.",
        measure="prefixes that pass in every prefill/decode split",
        figure=float(equivalence.passed_count),
        relation=EQUALS,
        expected=float(total),
        passed=total > 0 and equivalence.passed,
    )


def _caches(equivalence: EquivalenceReport) -> Condition:
    records = [record for row in equivalence.rows for record in row.records]
    good = sum(record.shapes_valid for record in records)
    return Condition(
        number=2,
        condition="Every layer's K/V axes and length are checked after every consumed token.",
        measure="layer caches with the right axes and length after a step, over all splits",
        figure=float(good),
        relation=EQUALS,
        expected=float(len(records)),
        passed=len(records) > 0 and good == len(records),
    )


def _failures(equivalence: EquivalenceReport, failures: Sequence[FailureResult]) -> Condition:
    acting = [failure for failure in failures if failure.cannot_act is None]
    smallest = min((failure.result.max_abs_error for failure in acting), default=0.0)
    tried = {failure.fault.id for failure in failures}
    complete = tried >= {fault.id for fault in DELIBERATE}
    return Condition(
        number=3,
        condition="The wrong-position and wrong-layer failures exceed the tolerance.",
        measure="smallest logit error of a deliberate failure where it can act",
        figure=smallest,
        relation=ABOVE,
        expected=equivalence.tolerance,
        passed=complete and len(acting) > 0 and all(f.as_expected for f in failures),
    )


def _policies(runs: Sequence[RecordedRun]) -> Condition:
    traces = [trace for run in runs for _, trace in run.traces]
    steps = sum(len(trace.steps) for trace in traces)
    good = sum(reproducible_steps(trace) for trace in traces)
    same = all(run.cached.token_ids == run.full.token_ids for run in runs)
    kinds = {run.spec.policy.samples for run in runs}
    return Condition(
        number=4,
        condition="Greedy and seeded selections are reproducible from the recorded state, and "
        "both paths return the same tokens.",
        measure="selections that come out the same from their record",
        figure=float(good),
        relation=EQUALS,
        expected=float(steps),
        passed=kinds == {False, True} and good == steps and same,
    )


def _stops(checkpoint: Checkpoint, runs: Sequence[RecordedRun]) -> Condition:
    traces = [trace for run in runs for _, trace in run.traces]
    good = sum(recorded_reason(checkpoint, trace) for trace in traces)
    return Condition(
        number=5,
        condition="Every run records whether it stopped for <eos> or for context capacity.",
        measure="runs, on both paths, whose tokens show the recorded reason",
        figure=float(good),
        relation=EQUALS,
        expected=float(len(traces)),
        passed=len(traces) > 0 and good == len(traces),
    )
