"""What each slot of a batch's cache holds after a step: token, padding or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from tinydec.generation.batch_trace import BatchStep, BatchTrace
from tinydec.model.batch_cache import NONE


@dataclass(frozen=True)
class Slot:
    """One slot of one cache row, as the tags of layer 0 tell it.

    Attributes:
        number: from 0.
        token_id: the token whose key and value it holds, or None.
        position: the position that the token was given, or None.
        padding: whether it was written for padding.
        written_by: the request that wrote it, or None where nothing was written.
        new: whether the step wrote it.
        seen: whether the row's last query in the step could see it; False where the row waits.
    """

    number: int
    token_id: int | None
    position: int | None
    padding: bool
    written_by: str | None
    new: bool
    seen: bool


@dataclass(frozen=True)
class SlotRow:
    """One cache row: who holds it, its slots, and whether the step's pass computed it."""

    request_id: str
    slots: tuple[Slot, ...]
    ran: bool


def slot_map(trace: BatchTrace, index: int) -> tuple[SlotRow, ...]:
    """Return every cache row after the step at ``trace.steps[index]``.

    Raises:
        IndexError: the batch has no such step.
    """
    step = trace.steps[index]
    return tuple(
        SlotRow(name, _slots(trace, step, row, name), name in step.request_ids)
        for row, name in enumerate(step.cache_rows)
    )


def _slots(trace: BatchTrace, step: BatchStep, row: int, name: str) -> tuple[Slot, ...]:
    number = step.request_ids.index(name) if name in step.request_ids else None
    written: set[int] = set()
    seen: set[int] = set()
    if number is not None:
        plan = step.plan
        written = {slot for slot in plan.query_slots[number].tolist() if slot >= 0}
        last = int((~plan.query_pads[number] & (plan.query_slots[number] >= 0)).nonzero()[0][-1])
        seen = set(plan.mask[number, last].nonzero()[0].tolist())
    entries = step.tags.entries[0, row]  # (S,)
    found = []
    for slot, (request, position, _, _, order) in enumerate(entries.tolist()):
        writer = None if request == NONE else step.tags.request_ids[request]
        real = writer is not None and position != NONE
        consumed = trace.row(writer).trace.consumed_ids if real and writer else ()
        found.append(
            Slot(
                number=slot,
                token_id=consumed[order] if real and order < len(consumed) else None,
                position=position if real else None,
                padding=writer is not None and not real,
                written_by=writer,
                new=slot in written,
                seen=slot in seen,
            )
        )
    return tuple(found)
