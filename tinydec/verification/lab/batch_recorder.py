"""Take a batched run apart into rows, each observed as a request of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.batch_trace import NOT_FINITE, BatchStep, BatchTrace, RowTrace
from tinydec.generation.trace import StepRecord
from tinydec.model.activations import Activations
from tinydec.model.batch_cache import NONE
from tinydec.model.cache import CacheOwner, SlotTag
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.model.seams import ReferenceSeams
from tinydec.verification.observation import (
    NOT_FINITE_KIND,
    Interruption,
    LayerObservation,
    NanCount,
    RunObservation,
    StepObservation,
)

Array = NDArray[Any]


def observed_rows(
    checkpoint: Checkpoint,
    trace: BatchTrace,
    seams: ReferenceSeams,
    generator: np.random.Generator,
) -> tuple[RunObservation, ...]:
    """Return one observation for each row that ran; ``trace`` must hold activations.

    Args:
        checkpoint: what the batch computed with.
        trace: the batch.
        seams: interventions in the uncached path.
        generator: draws dropout masks in training mode.
    """
    steps = {step.index: step for step in trace.steps}

    def reference(inputs: tuple[int, ...]) -> Activations:
        return full_forward(checkpoint, inputs, seams, generator)

    return tuple(
        _row(checkpoint, trace, row, [steps[index] for index in row.batch_steps], reference)
        for row in trace.rows
        if row.trace.steps or row.end == NOT_FINITE
    )


def nan_counts(trace: BatchTrace) -> tuple[NanCount, ...]:
    """Return where a batch held NaN, padding included."""
    return tuple(
        NanCount(f"batch, {trace.layout}", step.index, layer, padding, real)
        for step in trace.steps
        for layer, (padding, real) in enumerate(step.nan_counts)
        if padding or real
    )


def _row(
    checkpoint: Checkpoint,
    trace: BatchTrace,
    row: RowTrace,
    batch_steps: Sequence[BatchStep],
    run_reference: Callable[[tuple[int, ...]], Activations],
) -> RunObservation:
    request = row.request
    # A row that goes on selecting after its end computes nothing more: it has no activations.
    steps = tuple(
        _step(checkpoint, record, batch_step, row.request_id, record.activations)
        for record, batch_step in zip(row.trace.steps, batch_steps, strict=False)
        if record.activations is not None
    )
    inputs = tuple(token for step in steps for token in step.inputs)
    inputs = inputs[: checkpoint.config.n_positions]
    reference = run_reference(inputs) if inputs else None
    interruption = None
    if row.end == NOT_FINITE:
        interruption = Interruption(len(steps), len(inputs), NOT_FINITE_KIND, "logits are NaN")
    return RunObservation(
        name=f"row {row.request_id}, {trace.layout}",
        request_id=row.request_id,
        prompt_ids=request.prompt_ids,
        policy=request.policy,
        seed=request.seed,
        max_new_tokens=request.max_new_tokens,
        stop_token_ids=request.stop_token_ids,
        steps=steps,
        interruption=interruption,
        references={} if reference is None else {checkpoint.digest: reference},
        prompt_logits=np.zeros((0, 0)),
        final_state=row.final_state,
    )


def _step(
    checkpoint: Checkpoint,
    record: StepRecord,
    batch_step: BatchStep,
    request_id: str,
    activations: Activations,
) -> StepObservation:
    number = batch_step.request_ids.index(request_id)
    plan = batch_step.plan
    place = plan.places[number]
    cache_row = plan.first_row + number
    slots = place.keys + plan.groups[place.group].read.start
    entries = batch_step.tags.entries[:, cache_row, slots]  # (L, t)
    layers = tuple(
        LayerObservation(
            tag=_layer_tag(entries["layer"][layer]),
            length_before=int(plan.lengths_before[number]),
            length_after=int(plan.lengths_after[number]),
            keys=block.keys[0],  # (1, h, t, d_h) -> (h, t, d_h)
            values=block.values[0],
            slot_tags=_slot_tags(entries[layer], batch_step),
            shares_memory=False,
        )
        for layer, block in enumerate(activations.blocks)
    )
    return StepObservation(
        index=record.index,
        phase=record.phase,
        inputs=record.consumed_ids,
        start=record.length_before,
        checkpoint=checkpoint,
        owner=_owner(entries, batch_step, request_id),
        layers=layers,
        activations=activations,
        selection=record.selection,
        stop_reason=record.stop_reason,
    )


def _layer_tag(layers: Array) -> int:
    """Return the layer that all slots name, or -1 where they disagree."""
    named = set(layers.tolist())
    return int(layers[0]) if len(named) == 1 else NONE


def _slot_tags(entries: Array, step: BatchStep) -> tuple[SlotTag | None, ...]:
    return tuple(
        None if request == NONE else SlotTag(step.tags.request_ids[request], order)
        for request, order in zip(
            entries["request"].tolist(), entries["order"].tolist(), strict=True
        )
    )


def _owner(entries: Array, step: BatchStep, request_id: str) -> CacheOwner:
    digests = set(entries["checkpoint"].ravel().tolist()) - {NONE}
    digest = step.tags.digests[digests.pop()] if len(digests) == 1 else "several"
    return CacheOwner(digest, request_id)
