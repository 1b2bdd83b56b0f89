"""Batched generation: rows of unequal length that finish, leave and join while others run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from numpy.typing import NDArray

from tinydec.generation.batch_rows import Row, Selector
from tinydec.generation.batch_trace import (
    CANCELLED,
    STOPPED,
    BatchStep,
    BatchTrace,
    RowTrace,
)
from tinydec.generation.schedule import BatchRequest, Event, timeline
from tinydec.generation.stream import UniformStream
from tinydec.generation.trace import DECODE, PREFILL
from tinydec.model.batch_activations import BatchActivations
from tinydec.model.batch_cache import LEFT, BatchCache
from tinydec.model.batch_step import batch_decode_step, batch_prefill
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import GUARDS, check_guards
from tinydec.model.inputs import checked_prompt
from tinydec.model.seams import CORRECT_BATCH, LEAVE_CACHES, LEAVE_TOKENS, BatchSeams
from tinydec.runspec import Policy

Array = NDArray[Any]


def run_batch(
    checkpoint: Checkpoint,
    requests: Sequence[BatchRequest],
    schedule: Sequence[Event] = (),
    layout: str = LEFT,
    *,
    keep_activations: bool = False,
    seams: BatchSeams = CORRECT_BATCH,
    guards: frozenset[str] = GUARDS,
) -> BatchTrace:
    """Run requests side by side until the last one ends.

    Each batch step is one pass: while requests wait to join, the prefill of all of them at
    once; else one decode step of every running row. Before it, rows that finished or that the
    schedule cancels leave the batch.

    Args:
        checkpoint: the decoder; its dtype is the dtype of all arithmetic.
        requests: the rows.
        schedule: when they join and leave; who has no join event joins at step 0.
        layout: ``left``, ``right`` or ``ragged``.
        keep_activations: record every intermediate, of the batch and of each row.
        seams: interventions; none by default.
        guards: which refusals are on; all by default.

    Raises:
        InputError: see :func:`timeline`; or a prompt, policy or layout outside its domain.
        GuardError: the cache refused a row.
    """
    check_guards(guards)
    times = timeline(requests, schedule)
    for request in requests:
        checked_prompt(checkpoint, request.prompt_ids)
        request.policy.check_vocabulary(checkpoint.config.vocab_size)
        for token_id in request.stop_token_ids:
            checked_prompt(checkpoint, (token_id,))
    run = BatchRun(checkpoint, layout, keep_activations, seams, guards)
    waiting = list(times.joins)
    step = 0
    while waiting or run.running:
        if not run.running:
            step = max(step, waiting[0][0])  # nothing runs until somebody joins
        gone = {name for name, at in times.leaves.items() if at <= step}
        run.leave(gone)
        ready = [request for at, request in waiting if at <= step]
        waiting = waiting[len(ready) :]
        run.step(step, [request for request in ready if request.request_id not in gone])
        step += 1
    return BatchTrace(
        checkpoint_digest=checkpoint.digest,
        dtype=checkpoint.dtype.name,
        layout=layout,
        requests=tuple(requests),
        schedule=tuple(schedule),
        rows=tuple(run.row_trace(request) for request in requests),
        steps=tuple(run.steps),
    )


class BatchRun:
    """The rows of a batch, their cache, and what has been recorded so far."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        layout: str,
        keep_activations: bool,
        seams: BatchSeams,
        guards: frozenset[str],
    ) -> None:
        """Make a batch without rows.

        Raises:
            InputError: an unknown layout.
        """
        self.checkpoint = checkpoint
        self.cache = BatchCache(checkpoint, layout)
        self.running: list[Row] = []
        self.steps: list[BatchStep] = []
        self._rows: dict[str, Row] = {}
        self._sources: list[Row] = []  # whose pending token each running row consumes next
        self._policies: dict[Policy, int] = {}
        self._left: tuple[str, ...] = ()
        self._keep = keep_activations
        self._seams = seams
        self._guards = guards

    def leave(self, cancelled: Collection[str]) -> None:
        """Take out the rows that have ended or are cancelled: their tokens and their caches."""
        rows, tokens = self.running, self._sources
        if cancelled:
            for row in rows:
                if row.end is None and row.request_id in cancelled:
                    row.end = CANCELLED
        keep = [index for index, row in enumerate(rows) if row.end is None]
        self._left = tuple(row.request_id for row in rows if row.end is not None)
        if not self._left:
            return
        stay = range(len(keep))
        which = self._seams.leave
        self.running = [rows[i] for i in keep]
        self._sources = [tokens[i] for i in (stay if which == LEAVE_CACHES else keep)]
        self.cache.keep_rows(stay if which == LEAVE_TOKENS else keep)

    def step(self, index: int, joining: Sequence[BatchRequest]) -> None:
        """Run one pass: the prompts of ``joining``, or one token of every running row.

        Raises:
            GuardError: the cache refused a row.
        """
        if not (joining or self.running):
            return
        if joining:
            phase, rows = PREFILL, [self._new_row(request) for request in joining]
            sources = rows
            names = [row.request_id for row in rows]
            prompts = [row.pending for row in rows]
            found = batch_prefill(
                self.checkpoint, self.cache, prompts, names, self._seams, self._guards
            )
            self.running += rows
        else:
            phase, rows, sources = DECODE, self.running, self._sources
            found = batch_decode_step(
                self.checkpoint,
                self.cache,
                [row.pending[0] for row in sources],
                [row.request_id for row in sources],
                [row.consumed for row in rows],
                self._seams,
                self._guards,
            )
        logits = found.last_logits
        logits.setflags(write=False)
        if self._keep:
            found = found.snapshot()
        self._record_pass(index, phase, rows, sources, found, logits)
        inputs = [row.pending for row in sources]
        self._sources = list(self.running) if phase == DECODE else self._sources + rows
        selector = Selector(self.checkpoint, self._seams, index, phase)
        if self._seams.finished_rows_draw:
            selector.draw_again(row for row in self._rows.values() if row.end == STOPPED)
        activations = found if self._keep else None
        selector.select(rows, inputs, found.plan, logits, activations, len(self._rows))

    def row_trace(self, request: BatchRequest) -> RowTrace:
        """Return what a request's row left behind."""
        row = self._rows.get(request.request_id)
        if row is None:  # cancelled before it joined
            row = Row(request, UniformStream(request.seed), 0)
            row.end = CANCELLED
        end = row.end if row.end is not None else STOPPED
        return RowTrace(request, self.checkpoint.digest, tuple(row.entries), end, row.stream.state)

    def _new_row(self, request: BatchRequest) -> Row:
        stream: UniformStream | None = None
        if self._seams.shared_stream:
            stream = next((row.stream for row in self._rows.values()), None)
        if stream is None:
            stream = UniformStream(request.seed)
        number = self._policies.setdefault(request.policy, len(self._policies))
        row = self._rows[request.request_id] = Row(request, stream, number)
        return row

    def _record_pass(
        self,
        index: int,
        phase: str,
        rows: list[Row],
        sources: list[Row],
        found: BatchActivations,
        logits: Array,
    ) -> None:
        names = tuple(row.request_id for row in rows)
        lengths = self.cache.lengths
        lengths.setflags(write=False)
        self.steps.append(
            BatchStep(
                index=index,
                phase=phase,
                request_ids=names,
                sources=tuple(row.request_id for row in sources),
                joined=names if phase == PREFILL else (),
                left=self._left,
                plan=found.plan,
                cache_rows=tuple(row.request_id for row in self.running),
                cache_lengths=lengths,
                tags=self.cache.snapshot_tags(),
                logits=logits,
                nan_counts=found.nan_counts(),
                activations=found if self._keep else None,
            )
        )
