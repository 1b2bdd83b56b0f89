"""Run a session, with or without an intervention, and write down what happens.

The recorder observes every run in the same way: nothing in a recording says what was
switched on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinydec.errors import InputError
from tinydec.generation.batch import run_batch
from tinydec.generation.batch_trace import BatchTrace
from tinydec.generation.policy import NotFiniteError
from tinydec.generation.request import Request
from tinydec.generation.schedule import JOIN, BatchRequest, Event
from tinydec.generation.trace import StepRecord
from tinydec.model.activations import Activations
from tinydec.model.batch_cache import LAYOUTS
from tinydec.model.cache import KVCache, LayerCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.model.guards import GUARDS, GuardError
from tinydec.model.prefill import prefill
from tinydec.verification.lab.batch_recorder import nan_counts, observed_rows
from tinydec.verification.lab.intervention import NOTHING, Intervention
from tinydec.verification.lab.probes import crafted, domains, overflow, post_conditions
from tinydec.verification.lab.scenario import Scenario, ScenarioRun
from tinydec.verification.observation import (
    NOT_FINITE_KIND,
    Interruption,
    LayerObservation,
    Recording,
    RunObservation,
    StepObservation,
)

#: Seeds the dropout masks of a reference in training mode.
_DROPOUT_SEED = 0
_NEIGHBOUR = "neighbour"


def record(
    checkpoint: Checkpoint,
    scenario: Scenario,
    intervention: Intervention = NOTHING,
    layouts: Sequence[str] = LAYOUTS,
) -> Recording:
    """Run every request of a session and return what was observed.

    Args:
        checkpoint: the published checkpoint, in the dtype that is to be used.
        scenario: the requests.
        intervention: what differs from the correct code.
        layouts: in which layouts the session's rows run side by side; none leaves them out.
    """
    loaded = checkpoint if intervention.load is None else intervention.load(checkpoint)
    generator = np.random.default_rng(_DROPOUT_SEED)
    guards = GUARDS - intervention.guards_off
    runs = tuple(
        _run(loaded, entry, scenario, intervention, guards, generator, number)
        for number, entry in enumerate(scenario.runs)
    )
    batches, refusals = _batches(loaded, scenario, intervention, guards, layouts)
    return Recording(
        checkpoint=loaded,
        tensors_digest=loaded.part_digests.tensors,
        mode=loaded.mode,
        runs=runs,
        rows=tuple(
            row
            for batch in batches
            for row in observed_rows(loaded, batch, intervention.reference, generator)
        ),
        nan_counts=tuple(count for batch in batches for count in nan_counts(batch)),
        refusals=refusals,
        post_conditions=post_conditions(loaded, intervention),
        probes=(overflow(loaded, intervention, guards), *domains(loaded, intervention)),
        crafted=crafted(loaded, intervention),
    )


def _run(
    checkpoint: Checkpoint,
    entry: ScenarioRun,
    scenario: Scenario,
    intervention: Intervention,
    guards: frozenset[str],
    generator: np.random.Generator,
    number: int,
) -> RunObservation:
    ids = checkpoint.vocabulary.encode(entry.prompt)
    stops = checkpoint.vocabulary.encode(entry.stop_tokens) if entry.stop_tokens else ()
    request = Request(
        checkpoint,
        ids,
        entry.policy,
        entry.seed,
        max_new_tokens=entry.max_new_tokens,
        stop_token_ids=stops,
        keep_activations=True,
        request_id=f"request-{number}",
        seams=intervention.request,
        neighbour=_neighbour(checkpoint, ids, scenario.neighbour_shift),
        guards=guards,
    )
    _recycle(request, intervention)
    steps: list[StepObservation] = []
    interruption = None
    before = _lengths(request)
    while request.stop_reason is None and interruption is None:
        start, before = request.position, _lengths(request)
        try:
            found = request.step()
        except (GuardError, InputError) as error:
            finite = not isinstance(error, NotFiniteError)
            kind = type(error).__name__ if finite else NOT_FINITE_KIND
            inputs, attempted = request.pending, request.step_ids
            interruption = Interruption(len(steps), start, kind, str(error), inputs, attempted)
        else:
            steps.append(_step(request, found, before))
    prompts = [_reference(checkpoint, ids, intervention, generator) for _ in range(2)]
    return RunObservation(
        name=entry.name,
        request_id=request.request_id,
        prompt_ids=ids,
        policy=entry.policy,
        seed=entry.seed,
        max_new_tokens=entry.max_new_tokens,
        stop_token_ids=stops,
        steps=tuple(steps),
        interruption=interruption,
        references=_references(steps, intervention, generator),
        prompt_logits=np.stack([found.last_logits[0] for found in prompts]),
        final_state=request.stream.state,
        left_behind=() if interruption is None else _left_behind(request, before),
    )


def _batches(
    checkpoint: Checkpoint,
    scenario: Scenario,
    intervention: Intervention,
    guards: frozenset[str],
    layouts: Sequence[str],
) -> tuple[tuple[BatchTrace, ...], tuple[Interruption, ...]]:
    """Run the session's rows side by side, once in each layout."""
    encode = checkpoint.vocabulary.encode
    requests = [
        BatchRequest(row.name, encode(row.prompt), row.policy, row.seed, row.max_new_tokens)
        for row in scenario.rows
    ]
    joins = [Event(row.joins, JOIN, row.name) for row in scenario.rows if row.joins]
    batches: list[BatchTrace] = []
    refusals: list[Interruption] = []
    for layout in layouts if requests else ():
        try:
            batches.append(
                run_batch(
                    checkpoint,
                    requests,
                    joins,
                    layout,
                    keep_activations=True,
                    seams=intervention.batch,
                    guards=guards,
                )
            )
        except GuardError as error:
            refusals.append(Interruption(0, 0, type(error).__name__, str(error)))
    return tuple(batches), tuple(refusals)


def _neighbour(checkpoint: Checkpoint, ids: tuple[int, ...], shift: int) -> KVCache:
    """Return the cache of another request whose prompt has the same length."""
    other = [(token + shift) % checkpoint.config.vocab_size for token in ids]
    cache = KVCache(checkpoint, _NEIGHBOUR, capacity=checkpoint.config.n_positions + 1)
    prefill(checkpoint, cache, other, _NEIGHBOUR)
    return cache


def _recycle(request: Request, intervention: Intervention) -> None:
    """Let another request use the cache's memory first, so that each run follows a reset."""
    cache, checkpoint = request.cache, request.checkpoint
    if cache is None:
        return
    prefill(checkpoint, cache, request.prompt_ids[:1], request.request_id)
    keep = intervention.request.model.reset_keeps_length
    cache.reset(checkpoint, request.request_id, keep_length=keep)


def _left_behind(request: Request, before: tuple[int, ...]) -> tuple[LayerObservation, ...]:
    cache = request.step_cache
    if cache is None:
        return ()
    return tuple(_layer(layer, length) for layer, length in zip(cache.layers, before, strict=True))


def _lengths(request: Request) -> tuple[int, ...]:
    cache = request.step_cache
    return () if cache is None else tuple(layer.length for layer in cache.layers)


def _step(request: Request, found: StepRecord, before: tuple[int, ...]) -> StepObservation:
    cache, activations = request.step_cache, found.activations
    if cache is None or activations is None:
        raise RuntimeError("the recorder runs requests with a cache and keeps activations")
    return StepObservation(
        index=found.index,
        phase=found.phase,
        inputs=found.consumed_ids,
        start=found.length_before,
        checkpoint=request.step_checkpoint,
        owner=cache.owner,
        layers=tuple(
            _layer(layer, length) for layer, length in zip(cache.layers, before, strict=True)
        ),
        activations=activations,
        selection=found.selection,
        stop_reason=found.stop_reason,
    )


def _layer(layer: LayerCache, before: int) -> LayerObservation:
    keys, values = layer.valid()
    return LayerObservation(
        tag=layer.layer,
        length_before=before,
        length_after=layer.length,
        keys=keys[0].copy(),  # (1, h, t, d_h) -> (h, t, d_h)
        values=values[0].copy(),
        slot_tags=tuple(layer.tags),
        shares_memory=np.shares_memory(layer.keys, layer.values),
    )


def _references(
    steps: list[StepObservation], intervention: Intervention, generator: np.random.Generator
) -> dict[str, Activations]:
    """Run the request's inputs without a cache, once for each checkpoint that was used."""
    inputs = tuple(token for step in steps for token in step.inputs)
    used = {step.checkpoint.digest: step.checkpoint for step in steps}
    return {
        digest: _reference(
            checkpoint, inputs[: checkpoint.config.n_positions], intervention, generator
        )
        for digest, checkpoint in used.items()
    }


def _reference(
    checkpoint: Checkpoint,
    ids: tuple[int, ...],
    intervention: Intervention,
    generator: np.random.Generator,
) -> Activations:
    return full_forward(checkpoint, ids, intervention.reference, generator)
