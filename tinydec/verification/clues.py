"""Clues: what in a recording points from a failing check to one fault rather than another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinydec.generation.policy import replay
from tinydec.generation.stream import UniformStream
from tinydec.verification.observation import (
    NOT_FINITE_KIND,
    Recording,
    RunObservation,
    StepObservation,
)


@dataclass(frozen=True)
class Clue:
    """If ``check`` fails and the recording fits, ``fault`` (an id) is a likely cause."""

    check: str
    fault: str
    fits: Callable[[Recording], bool]


def _always(_recording: Recording) -> bool:
    return True


def _steps(recording: Recording) -> list[tuple[RunObservation, StepObservation]]:
    return [(run, step) for run in recording.all_runs for step in run.steps]


def _any_step(
    test: Callable[[RunObservation, StepObservation], bool],
) -> Callable[[Recording], bool]:
    return lambda recording: any(test(run, step) for run, step in _steps(recording))


def _uniform_logits(recording: Recording) -> bool:
    return any(np.ptp(run.prompt_logits) == 0 for run in recording.runs)


def _grown(step: StepObservation) -> int:
    return step.layers[0].length_after - step.layers[0].length_before


def _all_doubled(recording: Recording) -> bool:
    return all(_grown(step) == 2 * len(step.inputs) for run in recording.runs for step in run.steps)


def _prompt_longer(_run: RunObservation, step: StepObservation) -> bool:
    rows = len(step.activations.positions)
    return step.index == 0 and rows > len(step.inputs)


def _values_are_keys(_run: RunObservation, step: StepObservation) -> bool:
    return any(np.array_equal(layer.keys, layer.values) for layer in step.layers)


def _empty_slot(_run: RunObservation, step: StepObservation) -> bool:
    return any(tag is None for layer in step.layers for tag in layer.slot_tags)


def _starts_behind_slots(_run: RunObservation, step: StepObservation) -> bool:
    return step.index == 0 and step.layers[0].length_before > 0


def _changed_tensors(recording: Recording) -> set[str]:
    changed: set[str] = set()
    original = recording.checkpoint
    for _, step in _steps(recording):
        if step.checkpoint.digest != original.digest:
            changed |= {
                name
                for name, array in step.checkpoint.tensors.items()
                if not np.array_equal(array, original.tensors[name])
            }
    return changed


def _only_projections(recording: Recording) -> bool:
    return all(".attn.c_attn." in name for name in _changed_tensors(recording))


def _feeds_no_key(recording: Recording) -> bool:
    last = f"h.{recording.checkpoint.config.n_layer - 1}."
    return all(
        name.startswith(("ln_f", f"{last}ln_2", f"{last}mlp"))
        for name in _changed_tensors(recording)
    )


def _foreign(run: RunObservation, step: StepObservation) -> list[bool]:
    tags = (tag for layer in step.layers for tag in layer.slot_tags if tag is not None)
    return [tag.request_id != run.request_id for tag in tags]


def _some_slots_foreign(run: RunObservation, step: StepObservation) -> bool:
    foreign = _foreign(run, step)
    return any(foreign) and step.owner.request_id == run.request_id


def _cache_foreign(run: RunObservation, step: StepObservation) -> bool:
    return step.owner.request_id != run.request_id


def _rows_foreign(recording: Recording) -> bool:
    return any(any(_foreign(run, step)) for run in recording.rows for step in run.steps)


def _positions(recording: Recording) -> list[tuple[int, int]]:
    return [
        (position, step.start + offset)
        for run in recording.runs
        for step in run.steps
        for offset, position in enumerate(step.activations.positions)
    ]


def _all_zero(recording: Recording) -> bool:
    found = _positions(recording)
    return all(position == 0 for position, _ in found) and any(count for _, count in found)


def _off_by_one(recording: Recording) -> bool:
    wrong = [position - count for position, count in _positions(recording) if position != count]
    return bool(wrong) and set(wrong) <= {1, -1}


def _prompt_added(recording: Recording) -> bool:
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


def _past_context(recording: Recording) -> bool:
    return any(past_context(run) for run in recording.all_runs)


def _rows_alone(recording: Recording) -> bool:
    """Batches go wrong although the requests that ran alone have right positions."""
    right = all(
        step.activations.positions[0] == step.start for run in recording.runs for step in run.steps
    )
    return right and any(
        step.activations.positions[0] != step.start for run in recording.rows for step in run.steps
    )


def _nan(recording: Recording) -> bool:
    return bool(recording.nan_counts) or any(
        run.interruption is not None and run.interruption.kind == NOT_FINITE_KIND
        for run in recording.rows
    )


def _pads_seen(recording: Recording) -> bool:
    """Attention of a row's own keys sums to less than one: something else got the rest."""
    return any(
        abs(float(block.attention.sum(axis=3).min()) - 1) > 1e-3
        for run in recording.rows
        for step in run.steps
        for block in step.activations.blocks
    )


def _future_seen(_run: RunObservation, step: StepObservation) -> bool:
    rows = len(step.activations.positions)
    hidden = np.triu(np.ones((rows, rows), bool), 1)
    scores = step.activations.blocks[0].scores[..., -rows:]
    return rows > 1 and bool(np.isfinite(scores[..., hidden]).any())


def _past_hidden(_run: RunObservation, step: StepObservation) -> bool:
    scores = step.activations.blocks[0].scores
    return scores.shape[2] == 1 and bool(np.isinf(scores).any())


def _crafted_keeps_more(recording: Recording) -> bool:
    return any(
        len(row.selection.kept) > (row.selection.policy.top_k or 1) for row in recording.crafted
    )


def _sum_is_not_one(_run: RunObservation, step: StepObservation) -> bool:
    return abs(float(step.selection.probabilities.sum()) - 1) > 1e-6


def _crafted_takes_last(recording: Recording) -> bool:
    return any(
        not row.selection.policy.samples and row.selection.token_id != 0
        for row in recording.crafted
    )


def _first_tokens_equal(recording: Recording) -> bool:
    first = [run.steps[0].selection for run in recording.rows if run.steps]
    return len({selection.uniform for selection in first}) < len(first) and bool(first)


def _two_draws(_run: RunObservation, step: StepObservation) -> bool:
    selection = step.selection
    return selection.policy.samples and replay(selection).state_after != selection.state_after


def _starts_elsewhere(recording: Recording) -> bool:
    return any(
        run.steps[0].selection.state_before != UniformStream(run.seed).state
        for run in recording.rows
        if run.steps and run.policy.samples
    )


def _row_reasons(recording: Recording) -> bool:
    eos = recording.checkpoint.vocabulary.eos_id
    return any(
        step.selection.token_id == eos and step.stop_reason != "eos"
        for run in recording.rows
        for step in run.steps
    )


def _run_reasons(recording: Recording) -> bool:
    eos = recording.checkpoint.vocabulary.eos_id
    return any(
        step.selection.token_id == eos and step.stop_reason == "context"
        for run in recording.runs
        for step in run.steps
    )


#: In order: of several clues that fit, the earlier one names the likelier cause.
CLUES: tuple[Clue, ...] = (
    Clue("checkpoint.golden", "F04", _uniform_logits),
    Clue("checkpoint.golden", "F29", _always),
    Clue("checkpoint.vocabulary", "F05", _always),
    Clue("checkpoint.mode", "F06", _always),
    Clue("checkpoint.repeatable", "F06", _always),
    Clue("cache.layer", "F20", _always),
    Clue("cache.axes", "F11", _any_step(_values_are_keys)),
    Clue("cache.axes", "F15", _always),
    Clue("cache.length", "F08", _any_step(_prompt_longer)),
    Clue("cache.length", "F13", _all_doubled),
    Clue("cache.length", "F07", _always),
    Clue("cache.rows", "F11", _any_step(_values_are_keys)),
    Clue("cache.rows", "F09", _any_step(_empty_slot)),
    Clue("cache.rows", "F15", _always),
    Clue("cache.order", "F10", _any_step(_starts_behind_slots)),
    Clue("cache.order", "F09", _any_step(_empty_slot)),
    Clue("cache.order", "F14", _always),
    Clue("cache.width", "F12", _always),
    Clue("cache.reads", "F19", _always),
    Clue("cache.post_conditions", "F10", _always),
    Clue("position.checkpoint", "F02", _feeds_no_key),
    Clue("position.checkpoint", "F01", _only_projections),
    Clue("position.checkpoint", "F03", _always),
    Clue("position.request", "F42", _rows_foreign),
    Clue("position.request", "F21", _any_step(_cache_foreign)),
    Clue("position.request", "F22", _any_step(_some_slots_foreign)),
    Clue("position.overwritten", "F22", _always),
    Clue("position.index", "F27", _rows_alone),
    Clue("position.index", "F37", _past_context),
    Clue("position.index", "F16", _all_zero),
    Clue("position.index", "F17", _off_by_one),
    Clue("position.index", "F18", _prompt_added),
    Clue("position.refusals", "F23", _always),
    Clue("position.inputs", "F37", _past_context),
    Clue("position.inputs", "F42", _always),
    Clue("equivalence.nan", "F28", _nan),
    *(
        Clue(f"equivalence.{group}", fault, fits)
        for group in ("kv", "attention", "intermediates", "logits")
        for fault, fits in (
            ("F24", _any_step(_future_seen)),
            ("F25", _any_step(_past_hidden)),
            ("F26", _pads_seen),
        )
    ),
    Clue("policy.support", "F40", _crafted_takes_last),
    Clue("policy.support", "F30", _crafted_keeps_more),
    Clue("policy.support", "F31", _any_step(_sum_is_not_one)),
    Clue("policy.support", "F32", _always),
    Clue("policy.sum", "F31", _always),
    Clue("policy.probabilities", "F32", _always),
    Clue("policy.draws", "F33", _any_step(_two_draws)),
    Clue("policy.draws", "F35", _first_tokens_equal),
    Clue("policy.token", "F40", _crafted_takes_last),
    Clue("policy.token", "F35", _first_tokens_equal),
    Clue("policy.stream", "F34", _starts_elsewhere),
    Clue("policy.stream", "F39", _always),
    Clue("policy.domain", "F41", _always),
    Clue("stopping.reason", "F36", _run_reasons),
    Clue("stopping.reason", "F38", _row_reasons),
    Clue("stopping.end", "F38", _always),
)
