"""What a batched run leaves behind: a trace for every row, and a record of every batch step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.schedule import BatchRequest, Event
from tinydec.generation.selection import Selection
from tinydec.generation.stream import GeneratorState
from tinydec.generation.trace import GenerationTrace, StepRecord
from tinydec.model.batch_activations import BatchActivations
from tinydec.model.batch_cache import CacheTags
from tinydec.model.batch_plan import Plan

#: How a row ended.
STOPPED = "stopped"  # by its own stop reason
CANCELLED = "cancelled"  # the schedule took it out
NOT_FINITE = "not_finite"  # its logits became NaN or infinite, so that nothing can be selected


@dataclass(frozen=True, eq=False)
class BatchStep:
    """One pass of the batch: the prompts of those who join, or one token of every running row.

    Attributes:
        index: the step's number; numbers at which nobody ran are left out.
        phase: ``prefill`` or ``decode``.
        request_ids: (R) whose rows the pass computes, in row order.
        sources: (R) the request that each row's token comes from; the same ids.
        joined: who joined in this step; in a prefill all of ``request_ids``.
        left: who left before it.
        plan: token ids, positions, slots, padding and masks of the pass, see :class:`Plan`.
        cache_rows: who holds which cache row after the step, all running rows.
        cache_lengths: (cache rows,) real tokens of each.
        tags: who wrote what into which slot of the cache, after the step.
        logits: (R, V) of each row's last real token.
        nan_counts: for each layer, NaN in its output: (in padding, in real rows).
        activations: every intermediate, when the run was asked to keep them.
    """

    index: int
    phase: str
    request_ids: tuple[str, ...]
    sources: tuple[str, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]
    plan: Plan
    cache_rows: tuple[str, ...]
    cache_lengths: NDArray[np.intp]
    tags: CacheTags
    logits: NDArray[Any]
    nan_counts: tuple[tuple[int, int], ...]
    activations: BatchActivations | None = None


class RowEntry(NamedTuple):
    """What one batch step did for one row; its record is made from this when it is asked for."""

    batch_step: int
    phase: str
    consumed_ids: tuple[int, ...]
    positions: tuple[int, ...]
    length_after: int
    selections: Sequence[Selection]
    number: int  # the row's place among them
    stop_reason: str | None
    activations: BatchActivations | None
    pass_row: int  # the row's place in the pass

    def record(self, index: int) -> StepRecord:
        """Return the record that a solo run would leave."""
        activations = self.activations
        return StepRecord(
            index,
            self.phase,
            self.consumed_ids,
            self.positions,
            self.length_after - len(self.consumed_ids),
            self.length_after,
            self.selections[self.number],
            self.stop_reason,
            None if activations is None else activations.row(self.pass_row),
        )


@dataclass(frozen=True, eq=False)
class RowTrace:
    """One row of a batched run.

    Attributes:
        request: what was asked.
        checkpoint_digest: what it ran on.
        entries: what each of its steps did.
        end: ``stopped``, ``cancelled`` or ``not_finite``.
        final_state: its generator when the batch was over.
    """

    request: BatchRequest
    checkpoint_digest: str
    entries: tuple[RowEntry, ...]
    end: str
    final_state: GeneratorState

    @property
    def request_id(self) -> str:
        """The stable id."""
        return self.request.request_id

    @property
    def batch_steps(self) -> tuple[int, ...]:
        """For each of its steps the batch step's number."""
        return tuple(entry.batch_step for entry in self.entries)

    @property
    def stop_reason(self) -> str | None:
        """The recorded stop reason, or None."""
        return self.entries[-1].stop_reason if self.entries else None

    @cached_property
    def trace(self) -> GenerationTrace:
        """The record that its solo run would leave, step by step.

        A row that was cancelled or became not finite has no stop reason, and perhaps no step.
        """
        request = self.request
        return GenerationTrace(
            checkpoint_digest=self.checkpoint_digest,
            request_id=request.request_id,
            prompt_ids=request.prompt_ids,
            policy=request.policy,
            seed=request.seed,
            max_new_tokens=request.max_new_tokens,
            stop_token_ids=tuple(sorted(set(request.stop_token_ids))),
            use_cache=True,
            steps=tuple(entry.record(index) for index, entry in enumerate(self.entries)),
        )


@dataclass(frozen=True, eq=False)
class BatchTrace:
    """A batched run: ``rows`` in the order of ``requests``, ``steps`` in the order of time."""

    checkpoint_digest: str
    dtype: str
    layout: str
    requests: tuple[BatchRequest, ...]
    schedule: tuple[Event, ...]
    rows: tuple[RowTrace, ...]
    steps: tuple[BatchStep, ...]

    def row(self, request_id: str) -> RowTrace:
        """Return one row.

        Raises:
            KeyError: there is no such request.
        """
        for row in self.rows:
            if row.request_id == request_id:
                return row
        raise KeyError(request_id)

    def neighbours(self, request_id: str) -> tuple[str, ...]:
        """Return who held a cache row at the same time as a request, in order of appearance."""
        seen: dict[str, None] = {}
        for step in self.steps:
            if request_id in step.cache_rows:
                seen |= dict.fromkeys(step.cache_rows)
        seen.pop(request_id, None)
        return tuple(seen)
