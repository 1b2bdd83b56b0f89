"""Batches and stopping: the visitor's run among neighbours, in three layouts; the exercises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinydec.figures.log_axis import short
from tinydec.generation.batch import run_batch
from tinydec.generation.batch_trace import BatchTrace
from tinydec.generation.schedule import JOIN, LEAVE, BatchRequest, Event
from tinydec.model.batch_cache import LAYOUTS, LEFT
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import GUARDS, GuardError
from tinydec.model.seams import CORRECT_BATCH
from tinydec.runspec import RunSpec
from tinydec.ui.html import digits
from tinydec.ui.lab.tolerance import lab_tolerance
from tinydec.verification.faults import fault_by_id
from tinydec.verification.isolation import IsolationRecord, isolation, solo_trace
from tinydec.verification.lab.scenario import scenario_for

#: The visitor's row.
YOU = "you"

#: Batch steps before which the visitor's row may join or leave.
LATEST_JOIN = 4
LATEST_LEAVE = 6


@dataclass(frozen=True)
class Setup:
    """Who shares the batch with the visitor's row, and when that row comes and goes.

    Attributes:
        neighbours: how many of the five.
        joins: the batch step before which the row joins.
        leaves: the one before which it is cancelled, or None.
        fault: id of a fault of batches, or "".
    """

    neighbours: int
    joins: int
    leaves: int | None
    fault: str


@dataclass(frozen=True, eq=False)
class BatchLesson:
    """One batch in every layout.

    Attributes:
        traces: by layout.
        records: by layout: every row held against its solo run.
        tolerance: largest accepted logit error.
        refusal: what a guard says to the fault, or None.
    """

    traces: dict[str, BatchTrace]
    records: dict[str, tuple[IsolationRecord, ...]]
    tolerance: float
    refusal: str | None


def batch_lesson(checkpoint: Checkpoint, spec: RunSpec, setup: Setup) -> BatchLesson:
    """Run the batch in every layout and hold each row against its solo run.

    Raises:
        InputError: a prompt or policy that the checkpoint refuses.
    """
    model = checkpoint.cast(spec.dtype)
    requests, events = requests_of(model, spec, setup)
    seams, guards, refusal = CORRECT_BATCH, GUARDS, None
    if setup.fault:
        change = fault_by_id(setup.fault).intervention
        seams, guards = change.batch, GUARDS - change.guards_off
        if change.guards_off:
            try:
                run_batch(model, requests, events, LEFT, seams=seams)
            except GuardError as error:
                refusal = str(error)
    traces = {
        layout: run_batch(model, requests, events, layout, seams=seams, guards=guards)
        for layout in LAYOUTS
    }
    solo = {request: solo_trace(model, request) for request in requests}
    tolerance = lab_tolerance(checkpoint, spec)
    records = {
        layout: isolation(model, trace, tolerance=tolerance, solo=solo)
        for layout, trace in traces.items()
    }
    return BatchLesson(traces, records, tolerance, refusal)


def requests_of(
    checkpoint: Checkpoint, spec: RunSpec, setup: Setup
) -> tuple[list[BatchRequest], list[Event]]:
    """Return the visitor's request and its neighbours, and when they come and go."""
    encode = checkpoint.vocabulary.encode
    own = BatchRequest(
        YOU,
        encode(spec.prompt),
        spec.policy,
        spec.seed,
        spec.max_new_tokens,
        encode(spec.stop_tokens) if spec.stop_tokens else (),
    )
    rows = scenario_for(checkpoint).rows[: setup.neighbours]
    requests = [own] + [
        BatchRequest(row.name, encode(row.prompt), row.policy, row.seed, row.max_new_tokens)
        for row in rows
    ]
    events = [Event(row.joins, JOIN, row.name) for row in rows if row.joins]
    if setup.joins:
        events.append(Event(setup.joins, JOIN, YOU))
    if setup.leaves is not None:
        # It stays for its prefill: a batch in which nobody ever runs has nothing to show.
        events.append(Event(max(setup.leaves, setup.joins + 1), LEAVE, YOU))
    return requests, events


# Words -------------------------------------------------------------------------------------------


def step_text(trace: BatchTrace, place: int) -> str:
    """Return who did what in one step."""
    step = trace.steps[place]
    parts = [f"Batch step {step.index}:"]
    if step.left:
        ends = ", ".join(f"{name} ({_end(trace, name)})" for name in step.left)
        parts.append(f"{ends} had left before it.")
    if step.joined:
        waiting = [name for name in step.cache_rows if name not in step.request_ids]
        parts.append(f"{listed(step.joined)} joined and consumed a whole prompt at once.")
        if waiting:
            parts.append(f"{listed(waiting)} waited.")
    else:
        parts.append(f"{listed(step.request_ids)} consumed one token each.")
    done = [
        f"{row.request_id} ends with {row.stop_reason}"
        for row in trace.rows
        if row.stop_reason and row.batch_steps[-1] == step.index
    ]
    if done:
        parts.append("; ".join(done) + ".")
    return " ".join(parts)


def position_numbers(trace: BatchTrace, place: int, name: str = YOU) -> str:
    """Return the position rule with one row's numbers, where it ran; else another row's."""
    step = trace.steps[place]
    name = name if name in step.request_ids else step.request_ids[0]
    number = step.request_ids.index(name)
    before = int(step.plan.lengths_before[number])
    real = ~step.plan.query_pads[number] & (step.plan.query_slots[number] >= 0)
    positions = step.plan.positions[number][real].tolist()
    slots = step.plan.query_slots[number][real].tolist()
    return (
        f"row {name}, batch step {step.index}: {before} real tokens before → position"
        f"{'s' * (len(positions) > 1)} {_span(positions)}, in slot"
        f"{'s' * (len(slots) > 1)} {_span(slots)}"
    )


def error_numbers(lesson: BatchLesson) -> str:
    """Return the largest error over all rows and layouts beside the tolerance."""
    records = [record for found in lesson.records.values() for record in found]
    worst = max(record.max_abs_error for record in records)
    sign = "≤" if worst <= lesson.tolerance else ">"
    rows = len(next(iter(lesson.records.values())))
    return (
        f"{digits(worst, 3)} {sign} {short(lesson.tolerance)}, the largest of {rows} rows in "
        f"{len(lesson.records)} layouts"
    )


def verdict_text(lesson: BatchLesson) -> str:
    """Return how every row compares with its solo run, over all layouts."""
    records = [record for found in lesson.records.values() for record in found]
    failed = [record for record in records if not record.passed]
    worst = digits(max(record.max_abs_error for record in records), 3)
    if not failed:
        return (
            f"All {len(records)} comparisons pass: every row, in every layout, returns its solo "
            f"run's tokens, draws and stop reason. The logits are at most {worst} apart; "
            f"{short(lesson.tolerance)} is accepted."
        )
    first = failed[0]
    broken = [
        what
        for what, good in (
            ("logits", first.max_abs_error <= first.tolerance),
            ("tokens", first.tokens_equal),
            ("draws", first.draws_equal),
            ("stop reason", first.stop_equal),
        )
        if not good
    ]
    return (
        f"{len(failed)} of {len(records)} comparisons fail. First: row {first.row}, {first.layout} "
        f"layout, in its {', '.join(broken)} (step {first.first_difference} of that row). The "
        f"largest logit error is {worst}; {short(lesson.tolerance)} is accepted."
    )


def _end(trace: BatchTrace, name: str) -> str:
    row = trace.row(name)
    return row.stop_reason or row.end


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def _span(numbers: list[int]) -> str:
    if len(numbers) < 2:
        return "".join(map(str, numbers))
    return f"{numbers[0]} to {numbers[-1]}"
