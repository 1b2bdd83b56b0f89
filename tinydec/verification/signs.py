"""Signs: what in a recording tells one fault from another behind the same failing check."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinydec.generation.policy import replay
from tinydec.generation.stopping import CONTEXT, EOS
from tinydec.generation.stream import UniformStream
from tinydec.verification.observation import (
    NOT_FINITE_KIND,
    Recording,
    RunObservation,
    StepObservation,
)


def always(_recording: Recording) -> bool:
    """Fit every recording."""
    return True


def steps(recording: Recording) -> list[tuple[RunObservation, StepObservation]]:
    """Return every step of every run, with its run."""
    return [(run, step) for run in recording.all_runs for step in run.steps]


def any_step(
    test: Callable[[RunObservation, StepObservation], bool],
) -> Callable[[Recording], bool]:
    """Return whether some step of a recording passes a test."""
    return lambda recording: any(test(run, step) for run, step in steps(recording))


def uniform_logits(recording: Recording) -> bool:
    """Whether a prompt's uncached logits are all the same."""
    return any(np.ptp(run.prompt_logits) == 0 for run in recording.runs)


def grown(step: StepObservation) -> int:
    """Return how many slots the first layer's cache grew by."""
    return step.layers[0].length_after - step.layers[0].length_before


def all_doubled(recording: Recording) -> bool:
    """Whether every step of the single requests appended two slots an input."""
    return all(grown(step) == 2 * len(step.inputs) for run in recording.runs for step in run.steps)


def prompt_longer(_run: RunObservation, step: StepObservation) -> bool:
    """Whether prefill computed more positions than the prompt has."""
    rows = len(step.activations.positions)
    return step.index == 0 and rows > len(step.inputs)


def values_are_keys(_run: RunObservation, step: StepObservation) -> bool:
    """Whether a layer's values are its keys."""
    return any(np.array_equal(layer.keys, layer.values) for layer in step.layers)


def empty_slot(_run: RunObservation, step: StepObservation) -> bool:
    """Whether a counted slot was never written."""
    return any(tag is None for layer in step.layers for tag in layer.slot_tags)


def starts_behind_slots(_run: RunObservation, step: StepObservation) -> bool:
    """Whether the first step found slots that were taken."""
    return step.index == 0 and step.layers[0].length_before > 0


def changed_tensors(recording: Recording) -> set[str]:
    """Return the names of tensors that steps computed with and that were not loaded."""
    changed: set[str] = set()
    original = recording.checkpoint
    for _, step in steps(recording):
        if step.checkpoint.digest != original.digest:
            changed |= {
                name
                for name, array in step.checkpoint.tensors.items()
                if not np.array_equal(array, original.tensors[name])
            }
    return changed


def only_projections(recording: Recording) -> bool:
    """Whether nothing but the query, key and value weights changed."""
    return all(".attn.c_attn." in name for name in changed_tensors(recording))


def feeds_no_key(recording: Recording) -> bool:
    """Whether only weights changed from which no key or value is made."""
    last = f"h.{recording.checkpoint.config.n_layer - 1}."
    return all(
        name.startswith(("ln_f", f"{last}ln_2", f"{last}mlp"))
        for name in changed_tensors(recording)
    )


def foreign(run: RunObservation, step: StepObservation) -> list[bool]:
    """Return, slot by slot, whether another request wrote it."""
    tags = (tag for layer in step.layers for tag in layer.slot_tags if tag is not None)
    return [tag.request_id != run.request_id for tag in tags]


def some_slots_foreign(run: RunObservation, step: StepObservation) -> bool:
    """Whether another request wrote into a cache that is the request's own."""
    return any(foreign(run, step)) and step.owner.request_id == run.request_id


def cache_foreign(run: RunObservation, step: StepObservation) -> bool:
    """Whether the whole cache belongs to another request."""
    return step.owner.request_id != run.request_id


def rows_foreign(recording: Recording) -> bool:
    """Whether a row of a batch reads slots of another one."""
    return any(any(foreign(run, step)) for run in recording.rows for step in run.steps)


def positions(recording: Recording) -> list[tuple[int, int]]:
    """Return (position read, inputs consumed before) for the inputs of single requests."""
    return [
        (position, step.start + offset)
        for run in recording.runs
        for step in run.steps
        for offset, position in enumerate(step.activations.positions)
    ]


def all_zero(recording: Recording) -> bool:
    """Whether every position is 0."""
    found = positions(recording)
    return all(position == 0 for position, _ in found) and any(count for _, count in found)


def off_by_one(recording: Recording) -> bool:
    """Whether all wrong positions are one off."""
    wrong = [position - count for position, count in positions(recording) if position != count]
    return bool(wrong) and set(wrong) <= {1, -1}


def prompt_added(recording: Recording) -> bool:
    """Prompts agree, and the first decode step is off by the prompt's length or breaks off."""
    return any(
        (run.interruption is not None and run.interruption.step == 1)
        or any(
            step.activations.positions[0] - step.start == len(run.prompt_ids)
            for step in run.steps[1:2]
        )
        for run in recording.runs
    )


def past_context(run: RunObservation) -> bool:
    """Whether a run consumed, or tried to consume, an input past the context."""
    if not run.steps:
        return False
    context = run.steps[0].checkpoint.config.n_positions
    stopped = run.interruption
    return len(run.inputs) > context or (stopped is not None and stopped.start >= context)


def went_past_context(recording: Recording) -> bool:
    """Whether some run consumed, or tried to consume, an input past the context."""
    return any(past_context(run) for run in recording.all_runs)


def rows_alone(recording: Recording) -> bool:
    """Batches go wrong although the requests that ran alone have right positions."""
    right = all(
        step.activations.positions[0] == step.start for run in recording.runs for step in run.steps
    )
    return right and any(
        step.activations.positions[0] != step.start for run in recording.rows for step in run.steps
    )


def nan(recording: Recording) -> bool:
    """Whether a batch held NaN."""
    return bool(recording.nan_counts) or any(
        run.interruption is not None and run.interruption.kind == NOT_FINITE_KIND
        for run in recording.rows
    )


def pads_seen(recording: Recording) -> bool:
    """Attention of a row's own keys sums to less than one: something else got the rest."""
    return any(
        abs(float(block.attention.sum(axis=3).min()) - 1) > 1e-3
        for run in recording.rows
        for step in run.steps
        for block in step.activations.blocks
    )


def future_seen(_run: RunObservation, step: StepObservation) -> bool:
    """Whether a query of a prompt sees a later key."""
    rows = len(step.activations.positions)
    hidden = np.triu(np.ones((rows, rows), bool), 1)
    scores = step.activations.blocks[0].scores[..., -rows:]
    return rows > 1 and bool(np.isfinite(scores[..., hidden]).any())


def past_hidden(_run: RunObservation, step: StepObservation) -> bool:
    """Whether the single query of a decode step does not see every key."""
    scores = step.activations.blocks[0].scores
    return scores.shape[2] == 1 and bool(np.isinf(scores).any())


def crafted_keeps_more(recording: Recording) -> bool:
    """Whether a row made by hand kept more tokens than asked for."""
    return any(
        len(row.selection.kept) > (row.selection.policy.top_k or 1) for row in recording.crafted
    )


def sum_is_not_one(_run: RunObservation, step: StepObservation) -> bool:
    """Whether probabilities do not sum to one."""
    return abs(float(step.selection.probabilities.sum()) - 1) > 1e-6


def crafted_takes_last(recording: Recording) -> bool:
    """Whether greedy did not take the lowest id of a tie."""
    return any(
        not row.selection.policy.samples and row.selection.token_id != 0
        for row in recording.crafted
    )


def first_tokens_equal(recording: Recording) -> bool:
    """Whether rows of a batch share their first draw."""
    first = [run.steps[0].selection for run in recording.rows if run.steps]
    return len({selection.uniform for selection in first}) < len(first) and bool(first)


def two_draws(_run: RunObservation, step: StepObservation) -> bool:
    """Whether a token consumed more than one number."""
    selection = step.selection
    return selection.policy.samples and replay(selection).state_after != selection.state_after


def starts_elsewhere(recording: Recording) -> bool:
    """Whether a row's generator does not start from its seed."""
    return any(
        run.steps[0].selection.state_before != UniformStream(run.seed).state
        for run in recording.rows
        if run.steps and run.policy.samples
    )


def row_reasons(recording: Recording) -> bool:
    """Whether a row's ``<eos>`` was not recorded as its stop reason."""
    eos = recording.checkpoint.vocabulary.eos_id
    return any(
        step.selection.token_id == eos and step.stop_reason != EOS
        for run in recording.rows
        for step in run.steps
    )


def run_reasons(recording: Recording) -> bool:
    """Whether a single request's ``<eos>`` was recorded as the context limit."""
    eos = recording.checkpoint.vocabulary.eos_id
    return any(
        step.selection.token_id == eos and step.stop_reason == CONTEXT
        for run in recording.runs
        for step in run.steps
    )
