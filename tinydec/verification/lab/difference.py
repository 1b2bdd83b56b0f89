"""Whether two recordings differ in anything: a fault that changes nothing did not act.

Numbers differ when they are further apart than the tolerance: the same product in another memory
layout may round otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from tinydec.generation.policy import Selection
from tinydec.verification.compare import largest_difference
from tinydec.verification.observation import (
    LayerObservation,
    Recording,
    RunObservation,
    StepObservation,
)

Array = NDArray[Any]
_Far = Callable[[Array, Array], bool]


def recordings_differ(one: Recording, other: Recording, tolerance: float) -> bool:
    """Return whether any recorded fact differs, numbers by more than ``tolerance``."""

    def far(a: Array, b: Array) -> bool:
        return largest_difference(a, b) > tolerance

    pairs = list(zip(one.all_runs, other.all_runs, strict=False))
    return (
        _facts(one) != _facts(other)
        or len(one.all_runs) != len(other.all_runs)
        or any(
            _selections_differ(a.selection, b.selection, far)
            for a, b in zip(one.crafted, other.crafted, strict=True)
        )
        or any(_runs_differ(a, b, far) for a, b in pairs)
    )


def _facts(recording: Recording) -> tuple[Any, ...]:
    return (
        recording.checkpoint.part_digests,
        recording.tensors_digest,
        recording.mode,
        recording.post_conditions,
        [(probe.name, probe.refused is None, probe.outcome) for probe in recording.probes],
        recording.nan_counts,
        recording.refusals,
    )


def _runs_differ(one: RunObservation, other: RunObservation, far: _Far) -> bool:
    return (
        len(one.steps) != len(other.steps)
        or one.prompt_ids != other.prompt_ids
        or one.interruption != other.interruption
        or one.final_state != other.final_state
        or far(one.prompt_logits, other.prompt_logits)
        or any(_steps_differ(a, b, far) for a, b in zip(one.steps, other.steps, strict=True))
    )


def _steps_differ(one: StepObservation, other: StepObservation, far: _Far) -> bool:
    return (
        _step_facts(one) != _step_facts(other)
        or _selections_differ(one.selection, other.selection, far)
        or any(_layers_differ(a, b, far) for a, b in zip(one.layers, other.layers, strict=True))
        or any(
            far(a, b)
            for (_, a), (_, b) in zip(
                one.activations.named(), other.activations.named(), strict=True
            )
        )
    )


def _step_facts(step: StepObservation) -> tuple[Any, ...]:
    return (
        step.inputs,
        step.checkpoint.digest,
        step.owner,
        step.stop_reason,
        step.activations.positions,
    )


def _selections_differ(one: Selection, other: Selection, far: _Far) -> bool:
    return (
        (one.policy, one.kept, one.token_id, one.uniform, one.state_before, one.state_after)
        != (
            other.policy,
            other.kept,
            other.token_id,
            other.uniform,
            other.state_before,
            other.state_after,
        )
        or far(one.probabilities, other.probabilities)
    )  # fmt: skip


def _layers_differ(one: LayerObservation, other: LayerObservation, far: _Far) -> bool:
    return (
        _layer_facts(one) != _layer_facts(other)
        or far(one.keys, other.keys)
        or far(one.values, other.values)
    )


def _layer_facts(layer: LayerObservation) -> tuple[Any, ...]:
    return (
        layer.tag,
        layer.length_before,
        layer.length_after,
        layer.slot_tags,
        layer.shares_memory,
    )
