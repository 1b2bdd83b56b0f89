"""What each slot holds, worked out by hand for three rows, and by rule for random batches."""

from __future__ import annotations

import random

import pytest

from tests.batches import random_batch, random_model
from tinydec.generation.batch import run_batch
from tinydec.generation.schedule import JOIN, BatchRequest, Event
from tinydec.generation.slots import slot_map
from tinydec.model.guards import GUARDS
from tinydec.model.seams import LEAVE_TOKENS, BatchSeams
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy

FROZEN = load_checkpoint()


def rows(layout: str, step: int, seams: BatchSeams | None = None):
    """Two rows of 1 and 3 tokens; a third of 1 joins at step 1."""
    requests = [
        BatchRequest("p", (0,), Policy(), max_new_tokens=3),
        BatchRequest("q", (0, 2, 3), Policy(), max_new_tokens=3),
        BatchRequest("r", (6,), Policy(), max_new_tokens=2),
    ]
    trace = run_batch(FROZEN, requests, [Event(1, JOIN, "r")], layout)
    return slot_map(trace, step)


def drawn(row) -> str:
    """``P`` padding, ``.`` nothing, else token id and position; ``*`` new, ``!`` seen."""
    return " ".join(
        (
            "P"
            if slot.padding
            else "."
            if slot.token_id is None
            else f"{slot.token_id}@{slot.position}"
        )
        + "*" * slot.new
        + "!" * slot.seen
        for slot in row.slots
    )


@pytest.mark.parametrize(
    ("layout", "step", "expected"),
    [
        # p: <bos>; q: <bos> A B. One step: both prompts.
        ("left", 0, ["P* P* 0@0*!", "0@0*! 2@1*! 3@2*!"]),
        ("right", 0, ["0@0*! P* P*", "0@0*! 2@1*! 3@2*!"]),
        ("ragged", 0, ["0@0*! . .", "0@0*! 2@1*! 3@2*!"]),
        # r joins: X alone, the others wait.
        ("left", 1, ["P P 0@0", "0@0 2@1 3@2", ". . 6@0*!"]),
        ("right", 1, ["0@0 P P", "0@0 2@1 3@2", "6@0*! . ."]),
        # All read what greedy returned: A after <bos>, D after <bos> A B, X after X.
        ("left", 2, ["P P 0@0! 2@1*!", "0@0! 2@1! 3@2! 5@3*!", ". . 6@0! 6@1*!"]),
        ("ragged", 2, ["0@0! 2@1*! . .", "0@0! 2@1! 3@2! 5@3*!", "6@0! 6@1*! . ."]),
    ],
)
def test_slots_hold_what_a_person_would_write_down(layout, step, expected) -> None:
    assert [drawn(row) for row in rows(layout, step)] == expected


def test_rows_that_wait_are_told_from_rows_that_run() -> None:
    assert [(row.request_id, row.ran) for row in rows("left", 1)] == [
        ("p", False),
        ("q", False),
        ("r", True),
    ]


def test_no_such_step() -> None:
    with pytest.raises(IndexError):
        rows("left", 99)


@pytest.mark.parametrize("seed", range(20))
def test_no_padding_is_seen_and_positions_count_real_tokens(seed: int) -> None:
    model = random_model(seed)
    requests, events = random_batch(random.Random(seed), model.config)
    for layout in ("left", "right", "ragged"):
        trace = run_batch(model, requests, events, layout)
        for step in range(len(trace.steps)):
            for row in slot_map(trace, step):
                real = [slot for slot in row.slots if slot.token_id is not None]
                consumed = trace.row(row.request_id).trace.consumed_ids
                assert [slot.position for slot in real] == list(range(len(real)))
                assert tuple(slot.token_id for slot in real) == consumed[: len(real)]
                assert {slot.written_by for slot in real} <= {row.request_id}
                if row.ran:
                    assert [slot.seen for slot in real] == [True] * len(real)
                assert not any(slot.seen for slot in row.slots if slot.token_id is None)


def test_caches_that_do_not_close_up_show_who_wrote_them() -> None:
    requests = [
        BatchRequest("p", (0,), Policy(), max_new_tokens=1),
        BatchRequest("q", (0, 2), Policy()),
    ]
    seams = BatchSeams(leave=LEAVE_TOKENS)
    guards = GUARDS - {"request", "position", "overflow"}
    trace = run_batch(FROZEN, requests, (), "left", seams=seams, guards=guards)
    (row,) = slot_map(trace, 1)
    assert (row.request_id, {s.written_by for s in row.slots}) == ("q", {"p", "q"})
    (row,) = slot_map(run_batch(FROZEN, requests, (), "left"), 1)
    assert {s.written_by for s in row.slots} == {"q"}
