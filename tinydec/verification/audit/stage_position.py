"""Stage 3: positions, owners, later overwrites and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tinydec.verification.audit.checks import Check, Finding, Where, judge
from tinydec.verification.observation import (
    NOT_FINITE_KIND,
    Recording,
    RunObservation,
    StepObservation,
    same_values,
)


def position_checks(recording: Recording) -> tuple[Check, ...]:
    """Judge digests and requests of caches, position records, overwrites and refusals."""
    runs = recording.all_runs
    steps = sum(len(run.steps) for run in runs)
    probes = [probe for probe in recording.probes if probe.contract == "position"]
    return (
        judge(
            "position.checkpoint",
            3,
            "the cache was filled by the checkpoint that reads it",
            "one digest",
            _stale(runs),
            count=steps,
        ),
        judge(
            "position.request",
            3,
            "every slot was written by the request that reads it",
            "the request's own slots",
            _foreign(runs),
            count=steps,
        ),
        judge(
            "position.index",
            3,
            "the next position is the number of consumed inputs",
            "0, 1, 2 …",
            chain(_positions(runs), _refused_batches(recording)),
            count=steps,
        ),
        judge(
            "position.overwritten",
            3,
            "rows do not change after their append",
            "the rows of the step before",
            _overwritten(runs),
            count=steps,
        ),
        judge(
            "position.refusals",
            3,
            "an input past the context is refused",
            "a refusal",
            (
                Finding(f"let through: {probe.outcome}", "a refusal", Where(probe.name))
                for probe in probes
                if probe.refused is None
            ),
            count=len(probes),
        ),
        judge(
            "position.inputs",
            3,
            "inputs are the prompt, then the returned tokens but the last",
            "returned tokens within the context",
            _inputs(runs),
            count=steps,
        ),
    )


def _stale(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        for step in run.steps:
            used, owner = step.checkpoint.digest, step.owner.checkpoint_digest
            if used != owner:
                yield Finding(
                    f"checkpoint {used[:12]} on a cache of {owner[:12]}",
                    f"checkpoint {owner[:12]}",
                    Where(run.name, step.index),
                )


def _foreign(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        for step in run.steps:
            for layer, stored in enumerate(step.layers):
                for slot, tag in enumerate(stored.slot_tags):
                    if tag is not None and tag.request_id != run.request_id:
                        yield Finding(
                            f"slot {slot} written by {tag.request_id}",
                            f"by {run.request_id}",
                            Where(run.name, step.index, layer),
                        )
            if step.owner.request_id != run.request_id:
                yield Finding(
                    f"cache of {step.owner.request_id}",
                    f"of {run.request_id}",
                    Where(run.name, step.index),
                )


def _positions(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        for step in run.steps:
            found = list(step.activations.positions)
            expected = list(range(step.start, step.start + len(found)))
            if found != expected:
                first = next(i for i, p in enumerate(found) if p != expected[i])
                yield Finding(
                    f"position {found[first]}",
                    f"{expected[first]}",
                    Where(run.name, step.index, position=expected[first]),
                )
        stop = run.interruption
        if stop is not None and stop.kind != NOT_FINITE_KIND:
            where = Where(run.name, stop.step, position=stop.start)
            yield Finding(f"{stop.kind}: {stop.message}", f"position {stop.start}", where)


def _refused_batches(recording: Recording) -> Iterator[Finding]:
    for refusal in recording.refusals:
        yield Finding(f"{refusal.kind}: {refusal.message}", "no refusal", Where("batch"))


def _overwritten(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        for before, after in zip(run.steps, run.steps[1:], strict=False):
            yield from _changed_rows(run, before, after)


def _changed_rows(
    run: RunObservation, before: StepObservation, after: StepObservation
) -> Iterator[Finding]:
    for layer, (old, new) in enumerate(zip(before.layers, after.layers, strict=True)):
        for name, was, now in (("K", old.keys, new.keys), ("V", old.values, new.values)):
            if not same_values(was, now[:, : was.shape[1]]):
                # A row that took over a shorter cache has lost slots.
                slot = next(
                    s
                    for s in range(was.shape[1])
                    if s >= now.shape[1] or not same_values(was[:, s], now[:, s])
                )
                yield Finding(
                    f"{name} in slot {slot} changed after its append",
                    "unchanged",
                    Where(run.name, after.index, layer),
                )


def _inputs(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        if not run.steps:
            continue
        context = run.steps[0].checkpoint.config.n_positions
        expected = run.prompt_ids
        for step in run.steps:
            where = Where(run.name, step.index)
            if step.inputs != expected:
                yield Finding(f"inputs {list(step.inputs)}", f"{list(expected)}", where)
            if step.start + len(step.inputs) > context:
                yield Finding(
                    f"{step.start + len(step.inputs)} consumed inputs", f"at most {context}", where
                )
            expected = (step.selection.token_id,)
