"""Whether two recordings differ in anything: a fault that changes nothing did not act."""

from __future__ import annotations

from tinydec.verification.observation import (
    LayerObservation,
    Recording,
    RunObservation,
    StepObservation,
    same_bits,
)


def recordings_differ(one: Recording, other: Recording) -> bool:
    """Return whether any recorded fact differs."""
    return (
        one.checkpoint.part_digests != other.checkpoint.part_digests
        or (one.tensors_digest, one.mode) != (other.tensors_digest, other.mode)
        or one.post_conditions != other.post_conditions
        or one.probes != other.probes
        or one.nan_counts != other.nan_counts
        or one.refusals != other.refusals
        or len(one.all_runs) != len(other.all_runs)
        or any(
            not a.selection.same_as(b.selection)
            for a, b in zip(one.crafted, other.crafted, strict=True)
        )
        or any(_runs_differ(a, b) for a, b in zip(one.all_runs, other.all_runs, strict=True))
    )


def _runs_differ(one: RunObservation, other: RunObservation) -> bool:
    return (
        len(one.steps) != len(other.steps)
        or one.prompt_ids != other.prompt_ids
        or one.interruption != other.interruption
        or one.final_state != other.final_state
        or not same_bits(one.prompt_logits, other.prompt_logits)
        or any(_steps_differ(a, b) for a, b in zip(one.steps, other.steps, strict=True))
    )


def _steps_differ(one: StepObservation, other: StepObservation) -> bool:
    return (
        one.inputs != other.inputs
        or one.checkpoint.digest != other.checkpoint.digest
        or one.owner != other.owner
        or one.stop_reason != other.stop_reason
        or one.activations.positions != other.activations.positions
        or not one.selection.same_as(other.selection)
        or any(_layers_differ(a, b) for a, b in zip(one.layers, other.layers, strict=True))
        or any(
            not same_bits(a, b)
            for (_, a), (_, b) in zip(
                one.activations.named(), other.activations.named(), strict=True
            )
        )
    )


def _layers_differ(one: LayerObservation, other: LayerObservation) -> bool:
    return (
        (one.tag, one.length_before, one.length_after, one.slot_tags, one.shares_memory)
        != (other.tag, other.length_before, other.length_after, other.slot_tags,
            other.shares_memory)
        or not same_bits(one.keys, other.keys)
        or not same_bits(one.values, other.values)
    )  # fmt: skip
