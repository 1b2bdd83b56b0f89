"""What was observed of a run: records alone, with no word of what was switched on.

The recorder fills these; the audit reads nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.policy import Selection
from tinydec.generation.stream import GeneratorState
from tinydec.model.activations import Activations, freeze
from tinydec.model.cache import CacheOwner, SlotTag
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import Policy

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LayerObservation:
    """One layer's cache after a step.

    Attributes:
        tag: the layer that the cache says it belongs to.
        length_before: valid slots before the step.
        length_after: valid slots after it.
        keys: (h, t, d_h), a copy of the valid slots.
        values: (h, t, d_h), a copy.
        slot_tags: who wrote each of the t slots; None for a slot that nobody wrote.
        shares_memory: whether keys and values are the same memory.
    """

    tag: int
    length_before: int
    length_after: int
    keys: Array
    values: Array
    slot_tags: tuple[SlotTag | None, ...]
    shares_memory: bool

    def __post_init__(self) -> None:
        freeze(self.keys, self.values)


@dataclass(frozen=True, eq=False)
class StepObservation:
    """One step of one request.

    Attributes:
        index: 0 for the step that consumes the prompt.
        phase: ``prefill`` or ``decode``.
        inputs: the request's own account of its new inputs.
        start: inputs that the request had consumed before the step.
        checkpoint: what the step computed with.
        owner: whose cache the step used.
        layers: the cache that the step used, layer by layer, after the step.
        activations: every intermediate; B = 1.
        selection: the token selected from the step's last logits row.
        stop_reason: what was recorded after the step.
    """

    index: int
    phase: str
    inputs: tuple[int, ...]
    start: int
    checkpoint: Checkpoint
    owner: CacheOwner
    layers: tuple[LayerObservation, ...]
    activations: Activations
    selection: Selection
    stop_reason: str | None

    def __post_init__(self) -> None:
        self.activations.freeze()


#: Kind of an interruption by logits that are NaN or infinite: nothing can be selected.
NOT_FINITE_KIND = "not finite"


@dataclass(frozen=True)
class Interruption:
    """A step that ended in an exception instead of a record.

    Attributes:
        step: its index.
        start: inputs that the request had consumed before it.
        kind: the exception's name.
        message: what it said.
        inputs: the request's account of the inputs that the step was to consume.
        attempted: the inputs that the cache was given.
    """

    step: int
    start: int
    kind: str
    message: str
    inputs: tuple[int, ...] = ()
    attempted: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class RunObservation:
    """One request from prompt to stop.

    Attributes:
        name: what the run is called in findings.
        request_id: who asked.
        prompt_ids: the prompt.
        policy: the declared policy.
        seed: the declared seed.
        max_new_tokens: the declared limit.
        stop_token_ids: the declared stop tokens.
        steps: what was recorded.
        interruption: how the run broke off, or None.
        references: the uncached run over the request's inputs, by the digest of each checkpoint
            that a step computed with; B = 1.
        prompt_logits: final row of the uncached prompt, computed twice: (2, V).
        final_state: the request's generator when everything was over.
        left_behind: the cache that the run was using when it broke off, layer by layer.
    """

    name: str
    request_id: str
    prompt_ids: tuple[int, ...]
    policy: Policy
    seed: int
    max_new_tokens: int | None
    stop_token_ids: tuple[int, ...]
    steps: tuple[StepObservation, ...]
    interruption: Interruption | None
    references: Mapping[str, Activations]
    prompt_logits: NDArray[Any]
    final_state: GeneratorState
    left_behind: tuple[LayerObservation, ...] = ()

    def __post_init__(self) -> None:
        for reference in self.references.values():
            reference.freeze()
        freeze(self.prompt_logits)
        object.__setattr__(self, "references", MappingProxyType(dict(self.references)))

    @property
    def inputs(self) -> tuple[int, ...]:
        """Every input that the request says it consumed."""
        return tuple(token for step in self.steps for token in step.inputs)

    @property
    def returned(self) -> tuple[int, ...]:
        """Every selected token."""
        return tuple(step.selection.token_id for step in self.steps)


@dataclass(frozen=True)
class NanCount:
    """NaN in one layer's output of one batch step: in padding and in real rows."""

    run: str
    step: int
    layer: int
    padding: int
    real: int


@dataclass(frozen=True)
class PostCondition:
    """What a cache operation left behind, beside what it promises."""

    operation: str
    expected: str
    found: str


@dataclass(frozen=True)
class Probe:
    """An input that must be refused, and what happened to it.

    Attributes:
        name: what was tried.
        contract: ``position`` for an input past the context, ``policy`` for a number outside
            its domain.
        refused: the refusal's message, or None when it was let through.
        outcome: what happened instead of a refusal, or an empty text.
    """

    name: str
    contract: str
    refused: str | None
    outcome: str = ""


@dataclass(frozen=True, eq=False)
class CraftedRow:
    """A selection from a row made by hand, such as one with ties."""

    name: str
    selection: Selection


@dataclass(frozen=True, eq=False)
class Recording:
    """Everything observed of one session on one checkpoint.

    Attributes:
        checkpoint: what was loaded and used.
        tensors_digest: the digest that the loader recorded for the tensors.
        mode: the mode that the loader recorded.
        runs: the requests that ran one by one.
        rows: rows of batches, each observed as a request of its own.
        post_conditions: what reset, truncate and export left behind.
        probes: inputs that must be refused.
        crafted: selections from rows made by hand.
        nan_counts: where batches held NaN, padding included.
        refusals: batches that a guard stopped.
    """

    checkpoint: Checkpoint
    tensors_digest: str
    mode: str
    runs: tuple[RunObservation, ...]
    rows: tuple[RunObservation, ...] = ()
    post_conditions: tuple[PostCondition, ...] = ()
    probes: tuple[Probe, ...] = ()
    crafted: tuple[CraftedRow, ...] = ()
    nan_counts: tuple[NanCount, ...] = ()
    refusals: tuple[Interruption, ...] = ()

    @property
    def all_runs(self) -> tuple[RunObservation, ...]:
        """Single requests, then rows of batches."""
        return self.runs + self.rows


def same_values(one: Array, other: Array) -> bool:
    """Whether two arrays have the same shape, dtype and values, NaN equal to NaN, -0 to +0."""
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
