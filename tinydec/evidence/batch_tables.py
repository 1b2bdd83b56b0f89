"""Tables of a batch: who ran when, what each slot holds, each row against its solo run."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.generation.batch_trace import BatchTrace
from tinydec.generation.slots import slot_map
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.isolation import IsolationRecord

ISOLATION = TableSchema(
    "batch_isolation.csv",
    "Every row of the batch held against the same request alone",
    (
        text("row", "the request"),
        text("layout", "where padding stands"),
        text("neighbours", "who held a cache row at the same time"),
        integer("steps", "how many of its steps were compared"),
        number("max_abs_error", "largest logit difference from the solo run", rule="session"),
        number("tolerance", "largest accepted one", rule="exact"),
        flag("tokens_equal", "same inputs, positions and returned tokens"),
        flag("draws_equal", "same random numbers, same generator at the end"),
        flag("stop_equal", "same stop reason at the same step"),
        flag("excused", "a token differs, by a margin below twice the logit error"),
        flag("passed", "logits within the tolerance, the rest equal or excused"),
    ),
)

LANES = TableSchema(
    "batch_lanes.csv",
    "What each row did in each step of the batch",
    (
        integer("batch_step", "one pass of the whole batch"),
        text("phase", "prefill of those who join, or one token of every running row"),
        text("row", "the request"),
        text("consumed", "inputs that are new in this step"),
        text("positions", "their positions: real tokens so far"),
        text("slots", "where their keys and values went"),
        integer("padding", "queries computed for padding in this row"),
        text("returned", "the selected token", optional=True),
        text("stop_reason", "why the row ended here", optional=True),
    ),
)

STOPS = TableSchema(
    "batch_stops.csv",
    "How each row ended",
    (
        text("row", "the request"),
        text("prompt", "its prompt"),
        text("returned", "every returned token"),
        integer("consumed", "inputs it consumed"),
        integer("joined", "batch step of its prefill", optional=True),
        integer("last_step", "batch step of its last token", optional=True),
        text("stop_reason", "its own; empty where it was cancelled", optional=True),
        text("end", "stopped, cancelled or not_finite"),
    ),
)

SLOTS = TableSchema(
    "batch_slots.csv",
    "What each slot of the batch's cache holds after one step",
    (
        text("layout", "where padding stands"),
        text("row", "who holds the cache row"),
        integer("slot", "from 0"),
        text("holds", "token, pad, or nothing"),
        integer("position", "position of the token", optional=True),
        text("written_by", "the request in the slot's tag", optional=True),
        flag("new", "written in this step"),
        flag("seen", "visible to the row's last query of this step"),
    ),
)


def isolation_rows(records: Iterable[IsolationRecord]) -> pd.DataFrame:
    """Return one row for each request."""
    return frame(
        ISOLATION,
        [
            (
                record.row,
                record.layout,
                " ".join(record.neighbours),
                record.steps,
                record.max_abs_error,
                record.tolerance,
                record.tokens_equal,
                record.draws_equal,
                record.stop_equal,
                record.excused,
                record.passed,
            )
            for record in records
        ],
    )


def lanes(vocabulary: Vocabulary, trace: BatchTrace) -> pd.DataFrame:
    """Return one row for each request in each step in which it ran."""
    rows = []
    for step in trace.steps:
        for number_of, name in enumerate(step.request_ids):
            row = trace.row(name)
            plan, records = step.plan, dict(zip(row.batch_steps, row.trace.steps, strict=False))
            record = records.get(step.index)
            slots = [s for s in plan.query_slots[number_of].tolist() if s >= 0]
            pads = plan.query_pads[number_of]
            real = [s for s, pad in zip(slots, pads.tolist(), strict=False) if not pad]
            rows.append(
                (
                    step.index,
                    step.phase,
                    name,
                    "" if record is None else vocabulary.decode(record.consumed_ids),
                    "" if record is None else " ".join(map(str, record.positions)),
                    " ".join(map(str, real)),
                    int(pads.sum()),
                    None if record is None else vocabulary.tokens[record.returned_id],
                    None if record is None else record.stop_reason,
                )
            )
    return frame(LANES, rows)


def stops(vocabulary: Vocabulary, trace: BatchTrace) -> pd.DataFrame:
    """Return how each row ended."""
    return frame(
        STOPS,
        [
            (
                row.request_id,
                vocabulary.decode(row.request.prompt_ids),
                vocabulary.decode(row.trace.returned_ids),
                len(row.trace.consumed_ids),
                row.batch_steps[0] if row.batch_steps else None,
                row.batch_steps[-1] if row.batch_steps else None,
                row.stop_reason,
                row.end,
            )
            for row in trace.rows
        ],
    )


def slots(vocabulary: Vocabulary, trace: BatchTrace, index: int) -> pd.DataFrame:
    """Return what every slot holds after the step at a place in ``trace.steps``."""
    return frame(
        SLOTS,
        [
            (
                trace.layout,
                row.request_id,
                slot.number,
                _holds(vocabulary, slot.token_id, slot.padding),
                slot.position,
                slot.written_by,
                slot.new,
                slot.seen,
            )
            for row in slot_map(trace, index)
            for slot in row.slots
        ],
    )


def _holds(vocabulary: Vocabulary, token_id: int | None, padding: bool) -> str:
    if token_id is not None:
        return vocabulary.tokens[token_id]
    return "pad" if padding else "nothing"
