"""Selecting a token for every row of a batch: each by its own policy, from its own stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.batch_trace import NOT_FINITE, STOPPED, RowEntry
from tinydec.generation.policy import choose_rows, select_columns
from tinydec.generation.schedule import BatchRequest
from tinydec.generation.selection import Selection
from tinydec.generation.stopping import EOS, stop_reason
from tinydec.generation.stream import Draw, GeneratorState, UniformStream
from tinydec.generation.trace import PREFILL
from tinydec.model.batch_activations import BatchActivations
from tinydec.model.batch_plan import Plan
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.seams import BatchSeams

Array = NDArray[Any]
#: The token selected for a row, and where its selection stands: among these, at this place.
Chosen = tuple[int, Sequence[Selection], int]


class Row:
    """What one request changes while it runs."""

    __slots__ = (
        "consumed", "end", "entries", "pending", "policy_number", "request", "request_id",
        "samples", "stop_token_ids", "stream",
    )  # fmt: skip

    def __init__(self, request: BatchRequest, stream: UniformStream, policy_number: int) -> None:
        self.request = request
        self.request_id = request.request_id
        self.policy_number = policy_number
        self.stop_token_ids = frozenset(request.stop_token_ids)
        self.stream = stream
        self.samples = request.policy.samples
        self.consumed = 0
        self.pending = request.prompt_ids
        self.entries: list[RowEntry] = []
        self.end: str | None = None


class Selector:
    """Selects and records for the rows of one pass."""

    def __init__(self, checkpoint: Checkpoint, seams: BatchSeams, index: int, phase: str) -> None:
        """Keep what all rows of the pass share."""
        self._eos_id = checkpoint.vocabulary.eos_id
        self._context = checkpoint.config.n_positions
        self._seams = seams
        self._index = index
        self._phase = phase

    def select(
        self,
        rows: Sequence[Row],
        inputs: Sequence[tuple[int, ...]],
        plan: Plan,
        logits: Array,
        activations: BatchActivations | None,
        joined: int,
    ) -> None:
        """Select one token for each row and record its step.

        A row whose logits are not finite ends without a record: there is nothing to select.

        Args:
            rows: R rows.
            inputs: what each of them has just consumed.
            plan: the pass.
            logits: (R, V).
            activations: every intermediate, where they are to be kept.
            joined: how many rows have joined so far.
        """
        numbers: Sequence[int] = range(len(rows))
        finite = np.isfinite(logits).all(axis=1)
        if not finite.all():
            numbers = np.flatnonzero(finite).tolist()
            for number in np.flatnonzero(~finite).tolist():
                rows[number].end = NOT_FINITE
            logits = logits[numbers]
        chosen = [rows[number] for number in numbers]
        selections = self._chosen(chosen, logits)
        hidden = None
        if self._seams.stops_together:
            tokens = [token for token, _, _ in selections]
            hidden = None if tokens == [self._eos_id] * joined else EOS
        positions = _real_positions(plan)
        for row, number, (token, columns, place) in zip(chosen, numbers, selections, strict=True):
            consumed = inputs[number]
            row.consumed += len(consumed)
            reason = stop_reason(
                token,
                eos_id=self._eos_id,
                stop_token_ids=row.stop_token_ids,
                consumed=row.consumed,
                n_positions=self._context,
                returned=len(row.entries) + 1,
                max_new_tokens=row.request.max_new_tokens,
            )
            if reason is not None:
                row.end = STOPPED
            row.entries.append(
                RowEntry(
                    self._index,
                    self._phase,
                    consumed,
                    positions[number],
                    row.consumed,
                    columns,
                    place,
                    None if reason == hidden else reason,
                    activations,
                    number,
                )
            )
            row.pending = (token,)

    def draw_again(self, rows: Iterable[Row]) -> None:
        """Select once more from the last logits of rows that have stopped; nothing is consumed."""
        for row in rows:
            last = row.entries[-1]
            logits = last.selections[last.number].logits[np.newaxis]  # (V,) -> (1, V)
            again = select_columns(logits, row.request.policy, _draws([row]))
            row.entries.append(
                last._replace(
                    batch_step=self._index,
                    phase=self._phase,
                    consumed_ids=(),
                    positions=(),
                    selections=again,
                    number=0,
                    activations=None,
                )
            )

    def _chosen(self, rows: Sequence[Row], logits: Array) -> list[Chosen]:
        if self._seams.first_token_copied and self._phase == PREFILL and len(rows) > 1:
            copied = _copied(rows, logits)
            return [(selection.token_id, copied, i) for i, selection in enumerate(copied)]
        groups: dict[int, list[int]] = {}
        for number, row in enumerate(rows):
            groups.setdefault(row.policy_number, []).append(number)
        found: dict[int, Chosen] = {}
        for numbers in groups.values():
            members = [rows[number] for number in numbers]
            mine = logits if len(groups) == 1 else logits[numbers]
            columns = select_columns(mine, members[0].request.policy, _draws(members))
            for place, (number, token) in enumerate(zip(numbers, columns.token_ids, strict=True)):
                found[number] = (token, columns, place)
        return [found[number] for number in range(len(rows))]


def _real_positions(plan: Plan) -> list[tuple[int, ...]]:
    """Return the positions of each row's real queries."""
    if plan.positions.shape[1] == 1:
        return list(zip(plan.positions[:, 0].tolist()))
    return [tuple(p for p in line if p >= 0) for line in plan.positions.tolist()]


def _draws(rows: Sequence[Row]) -> list[Draw | GeneratorState]:
    return [row.stream.draw() if row.samples else row.stream.state for row in rows]


def _copied(rows: Sequence[Row], logits: Array) -> list[Selection]:
    """Give every row the first one's token, number and states, beside its own logits."""
    first = choose_rows(logits[:1], rows[0].request.policy, _draws(rows[:1]))[0]
    found = [first]
    for row, own in zip(rows[1:], logits[1:], strict=True):
        policy = row.request.policy
        draw: Draw | GeneratorState = first.state_before
        if policy.samples:
            draw = Draw(0.0, first.state_before, first.state_after)
        alone = choose_rows(own[np.newaxis], policy, [draw])[0]
        copied = replace(
            first, policy=policy, logits=own, probabilities=alone.probabilities, kept=alone.kept
        )
        found.append(copied)
    return found
