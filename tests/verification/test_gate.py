"""The acceptance gate: passes on the shipped checkpoint, fails when any one condition is broken."""

from dataclasses import replace
from typing import Any

import pytest

from tinydec.generation.generate import generate
from tinydec.generation.stopping import CONTEXT, EOS, MAX_NEW_TOKENS
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import GREEDY, SAMPLE, Policy, RunSpec
from tinydec.verification.deliberate import FailureResult, run_deliberate_failures
from tinydec.verification.equivalence import EquivalenceReport, verify_prefixes
from tinydec.verification.gate import (
    Condition,
    RecordedRun,
    acceptance_gate,
    recorded_reason,
    reproducible_steps,
)

SEEDED = RunSpec(policy=Policy(SAMPLE, 1.0, 3))
FULL_CONTEXT = RunSpec(prompt=("<bos>", "A", "A", "A"))


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint()


@pytest.fixture(scope="module")
def equivalence(checkpoint: Checkpoint) -> EquivalenceReport:
    return verify_prefixes(checkpoint)


@pytest.fixture(scope="module")
def failures(checkpoint: Checkpoint) -> tuple[FailureResult, ...]:
    return run_deliberate_failures(checkpoint)


def recorded(checkpoint: Checkpoint, name: str, spec: RunSpec) -> RecordedRun:
    full = generate(checkpoint, replace(spec, cache=False))
    return RecordedRun(name, spec, generate(checkpoint, spec), full)


@pytest.fixture(scope="module")
def runs(checkpoint: Checkpoint) -> tuple[RecordedRun, ...]:
    return (
        recorded(checkpoint, "greedy", RunSpec()),
        recorded(checkpoint, "sample", SEEDED),
        recorded(checkpoint, "context", FULL_CONTEXT),
    )


def with_last_step(trace: GenerationTrace, **changes: Any) -> GenerationTrace:
    return replace(trace, steps=(*trace.steps[:-1], replace(trace.steps[-1], **changes)))


def with_selection(trace: GenerationTrace, index: int, **changes: Any) -> GenerationTrace:
    steps = list(trace.steps)
    steps[index] = replace(steps[index], selection=replace(steps[index].selection, **changes))
    return replace(trace, steps=tuple(steps))


def verdicts(gate: tuple[Condition, ...]) -> list[bool]:
    assert [condition.number for condition in gate] == [1, 2, 3, 4, 5]
    return [condition.passed for condition in gate]


def test_all_five_conditions_hold_with_their_figures(
    checkpoint: Checkpoint,
    equivalence: EquivalenceReport,
    failures: tuple[FailureResult, ...],
    runs: tuple[RecordedRun, ...],
) -> None:
    gate = acceptance_gate(checkpoint, equivalence, failures, runs)
    assert verdicts(gate) == [True] * 5
    # 16 prefixes; 4 patterns x (1x1 + 2+1 + 3+2+1 + 4+3+2+1 steps) x 2 layers = 160 records;
    # 4 + 4 + 1 selections on two paths; 3 runs on two paths.
    assert [gate[i].figure for i in (0, 1, 3, 4)] == [16, 160, 18, 6]
    assert gate[2].figure > 1e-2 > gate[2].expected == 1e-5


def test_prefix_beyond_the_tolerance_fails_the_first_condition(
    checkpoint: Checkpoint, failures: tuple[FailureResult, ...], runs: tuple[RecordedRun, ...]
) -> None:
    strict = verify_prefixes(checkpoint, tolerance=1e-9)
    gate = acceptance_gate(checkpoint, strict, failures, runs)
    assert not gate[0].passed
    assert gate[0].figure < gate[0].expected == 16
    nothing = replace(strict, prefixes=())
    assert verdicts(acceptance_gate(checkpoint, nothing, failures, runs))[:2] == [False, False]


def test_cache_that_grew_by_two_fails_the_second_condition(
    checkpoint: Checkpoint,
    equivalence: EquivalenceReport,
    failures: tuple[FailureResult, ...],
    runs: tuple[RecordedRun, ...],
) -> None:
    prefix = equivalence.prefixes[5]
    split = prefix.splits[0]
    record = split.records[-1]._replace(length_after=split.records[-1].length_after + 1)
    split = replace(split, records=(*split.records[:-1], record))
    prefixes = list(equivalence.prefixes)
    prefixes[5] = replace(prefix, splits=(split, *prefix.splits[1:]))
    broken = replace(equivalence, prefixes=tuple(prefixes))
    condition = acceptance_gate(checkpoint, broken, failures, runs)[1]
    assert not condition.passed
    assert condition.figure == condition.expected - 1


@pytest.mark.parametrize("name", ["positions-reset", "wrong-layer"])
def test_failure_that_is_not_rejected_or_not_tried_fails_the_third_condition(
    name: str,
    checkpoint: Checkpoint,
    equivalence: EquivalenceReport,
    failures: tuple[FailureResult, ...],
    runs: tuple[RecordedRun, ...],
) -> None:
    index = next(i for i, f in enumerate(failures) if f.fault.name == name and f.cannot_act is None)
    quiet = replace(failures[index], result=replace(failures[index].result, max_abs_error=1e-6))
    missed = (*failures[:index], quiet, *failures[index + 1 :])
    condition = acceptance_gate(checkpoint, equivalence, missed, runs)[2]
    assert (condition.passed, condition.figure) == (False, 1e-6)
    untried = [f for f in failures if f.fault.name != name]
    assert not acceptance_gate(checkpoint, equivalence, untried, runs)[2].passed
    idle = [f for f in failures if f.cannot_act is not None]
    assert not acceptance_gate(checkpoint, equivalence, idle, runs)[2].passed


def test_selection_that_its_record_does_not_give_fails_the_fourth_condition(
    checkpoint: Checkpoint,
    equivalence: EquivalenceReport,
    failures: tuple[FailureResult, ...],
    runs: tuple[RecordedRun, ...],
) -> None:
    greedy, sample, context = runs
    other = with_selection(sample.cached, 1, token_id=2)
    broken = (greedy, replace(sample, cached=other), context)
    condition = acceptance_gate(checkpoint, equivalence, failures, broken)[3]
    assert not condition.passed
    assert condition.figure == condition.expected - 1
    without_sampling = (greedy, context)
    assert not acceptance_gate(checkpoint, equivalence, failures, without_sampling)[3].passed
    paths_differ = (greedy, replace(sample, full=greedy.full), context)
    assert not acceptance_gate(checkpoint, equivalence, failures, paths_differ)[3].passed


def test_selection_from_a_state_that_does_not_follow_is_not_reproducible(
    runs: tuple[RecordedRun, ...], checkpoint: Checkpoint
) -> None:
    trace = runs[1].cached
    assert reproducible_steps(trace) == len(trace.steps) == 4
    # Each selection still replays alone, but the generator does not start at the seed.
    assert reproducible_steps(replace(trace, seed=trace.seed + 1)) == 3
    shifted = replace(trace, steps=trace.steps[1:])
    assert reproducible_steps(shifted) == 2


def test_reason_that_the_tokens_do_not_show_fails_the_fifth_condition(
    checkpoint: Checkpoint,
    equivalence: EquivalenceReport,
    failures: tuple[FailureResult, ...],
    runs: tuple[RecordedRun, ...],
) -> None:
    greedy, sample, context = runs
    assert (greedy.cached.stop_reason, context.cached.stop_reason) == (EOS, CONTEXT)
    lying = replace(context, full=with_last_step(context.full, stop_reason=EOS))
    condition = acceptance_gate(checkpoint, equivalence, failures, (greedy, sample, lying))[4]
    assert (condition.passed, condition.figure, condition.expected) == (False, 5, 6)


@pytest.mark.parametrize("reason", [CONTEXT, MAX_NEW_TOKENS, None])
def test_only_the_right_reason_is_accepted(
    reason: str | None, runs: tuple[RecordedRun, ...], checkpoint: Checkpoint
) -> None:
    trace = runs[0].cached
    assert recorded_reason(checkpoint, trace)
    assert not recorded_reason(checkpoint, with_last_step(trace, stop_reason=reason))
    assert not recorded_reason(checkpoint, replace(trace, steps=trace.steps * 2))
    assert not recorded_reason(checkpoint, replace(trace, steps=()))


def test_run_cut_short_by_a_limit_does_not_pass(checkpoint: Checkpoint) -> None:
    short = generate(checkpoint, RunSpec(policy=Policy(GREEDY), max_new_tokens=1))
    assert short.stop_reason == MAX_NEW_TOKENS
    assert not recorded_reason(checkpoint, short)
