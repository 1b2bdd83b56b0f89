"""Batched generation: who runs when, and what each row's record holds."""

import random
from typing import Any

import numpy as np
import pytest

from tests.batches import random_batch, random_model
from tests.refusals import refusal
from tinydec.errors import InputError
from tinydec.generation.batch import run_batch
from tinydec.generation.batch_trace import CANCELLED, STOPPED
from tinydec.generation.schedule import JOIN, LEAVE, BatchRequest, Event, timeline
from tinydec.model.batch_cache import LAYOUTS, LEFT, RAGGED, RIGHT
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy
from tinydec.verification.isolation import solo_trace

FROZEN = load_checkpoint().cast("float64")
SAMPLE = Policy("sample", 1.0, 3)
A = BatchRequest("a", (0,), SAMPLE, 41)
B = BatchRequest("b", (0, 2, 3), max_new_tokens=1)
C = BatchRequest("c", (0, 6), SAMPLE, 7, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_published_kind_of_trace_comes_out_of_a_batch(layout: str) -> None:
    greedy = BatchRequest("greedy", (0,))
    trace = run_batch(FROZEN, [greedy, A], layout=layout)
    decode = FROZEN.vocabulary.decode
    assert decode(trace.row("greedy").trace.token_ids) == "<bos> A B D <eos>"
    assert decode(trace.row("a").trace.token_ids) == "<bos> Y X Y <eos>"
    assert [row.stop_reason for row in trace.rows] == ["eos", "eos"]
    assert {row.end for row in trace.rows} == {STOPPED}


def test_one_pass_a_step_and_prompts_go_first() -> None:
    trace = run_batch(FROZEN, [A, B, C], [Event(1, JOIN, "c")])
    assert [(s.index, s.phase, s.request_ids, s.joined, s.left) for s in trace.steps] == [
        (0, "prefill", ("a", "b"), ("a", "b"), ()),
        (1, "prefill", ("c",), ("c",), ("b",)),  # b was to return one token; a waits
        (2, "decode", ("a", "c"), (), ()),
        (3, "decode", ("a",), (), ("c",)),
        (4, "decode", ("a",), (), ()),
    ]
    assert [s.cache_rows for s in trace.steps] == [
        ("a", "b"), ("a", "c"), ("a", "c"), ("a",), ("a",),
    ]  # fmt: skip
    assert [s.cache_lengths.tolist() for s in trace.steps] == [[1, 3], [1, 2], [2, 3], [3], [4]]
    assert {name: trace.row(name).batch_steps for name in "abc"} == {
        "a": (0, 2, 3, 4),
        "b": (0,),
        "c": (1, 2),
    }
    assert trace.neighbours("b") == ("a",)
    assert trace.neighbours("a") == ("b", "c")
    assert all(s.sources == s.request_ids for s in trace.steps)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_field_of_a_rows_record_is_that_of_its_solo_run(layout: str) -> None:
    rng = random.Random(11)
    for seed in range(12):
        checkpoint = random_model(seed)
        requests, _ = random_batch(rng, checkpoint.config)
        trace = run_batch(checkpoint, requests, (), layout, keep_activations=True)
        for row in trace.rows:
            solo = solo_trace(checkpoint, row.request)
            for name in solo.__dataclass_fields__:
                if name != "steps":
                    assert getattr(row.trace, name) == getattr(solo, name), name
            assert len(row.trace.steps) == len(solo.steps)
            for step, alone in zip(row.trace.steps, solo.steps, strict=True):
                for name in alone.__dataclass_fields__:
                    if name not in ("selection", "activations"):
                        assert getattr(step, name) == getattr(alone, name), name
                found, expected = step.selection, alone.selection
                assert (found.policy, found.kept) == (expected.policy, expected.kept)
                assert (found.token_id, found.uniform) == (expected.token_id, expected.uniform)
                assert found.state_after == expected.state_after
                np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-12)
                assert step.activations is not None
                assert step.activations.positions == step.positions
                assert np.array_equal(step.activations.last_logits[0], found.logits)


def test_a_cancelled_row_keeps_what_it_has_and_has_no_stop_reason() -> None:
    trace = run_batch(FROZEN, [A, C], [Event(2, LEAVE, "a"), Event(9, LEAVE, "c")])
    row = trace.row("a")
    assert (row.end, row.stop_reason, len(row.trace.steps)) == (CANCELLED, None, 2)
    assert row.trace.returned_ids == solo_trace(FROZEN, A).returned_ids[:2]
    assert trace.row("c").end == STOPPED  # it had finished long before


def test_a_row_cancelled_before_it_joins_never_runs() -> None:
    for schedule in (
        [Event(1, JOIN, "c"), Event(1, LEAVE, "c")],
        [Event(0, LEAVE, "c")],
    ):
        trace = run_batch(FROZEN, [A, C], schedule)
        row = trace.row("c")
        assert (row.end, row.trace.steps, row.stop_reason) == (CANCELLED, (), None)
        assert all("c" not in step.cache_rows for step in trace.steps)
        assert trace.row("a").trace.returned_ids == solo_trace(FROZEN, A).returned_ids


def test_steps_at_which_nobody_runs_are_left_out() -> None:
    trace = run_batch(FROZEN, [B, C], [Event(7, JOIN, "c")])
    assert [step.index for step in trace.steps] == [0, 7, 8]
    assert trace.neighbours("c") == ()


@pytest.mark.parametrize("layout", [LEFT, RIGHT])
def test_a_longer_prompt_that_joins_shifts_the_slots(layout: str) -> None:
    trace = run_batch(FROZEN, [A, B], [Event(1, JOIN, "b")], layout)
    before, after = trace.steps[0].tags, trace.steps[1].tags
    assert (before.entries.shape[2], after.entries.shape[2]) == (1, 3)
    was, now = before.at(0, 0, 0), after.at(0, 0, 2 if layout == LEFT else 0)
    assert was == now is not None


def test_records_cannot_be_changed() -> None:
    trace = run_batch(FROZEN, [A, B, C], keep_activations=True)
    step = trace.steps[-1]
    assert step.activations is not None
    plan = step.plan
    arrays = [step.logits, step.cache_lengths, step.tags.entries]
    arrays += [plan.token_ids, plan.positions, plan.query_slots, plan.query_pads, plan.pads]
    arrays += [plan.mask, plan.real_keys, plan.lengths_before, plan.lengths_after]
    arrays += [plan.groups[0].token_ids, plan.groups[0].real]
    arrays += [array for _, array in step.activations.named()]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_kept_activations_are_those_of_their_own_step() -> None:
    for layout in LAYOUTS:
        kept = run_batch(FROZEN, [A, B, C], [Event(2, JOIN, "b")], layout, keep_activations=True)
        for step in kept.steps:
            assert step.activations is not None
            for number in range(len(step.request_ids)):
                length = int(step.plan.lengths_after[number])
                assert step.activations.row(number).blocks[1].keys.shape == (1, 2, length, 2)
        plain = run_batch(FROZEN, [A, B, C], [Event(2, JOIN, "b")], layout)
        assert all(step.activations is None for step in plain.steps)
        assert [row.trace.returned_ids for row in plain.rows] == [
            row.trace.returned_ids for row in kept.rows
        ]


# Schedules and refusals ---------------------------------------------------------------------------


def test_requests_join_by_step_then_in_their_own_order() -> None:
    times = timeline([A, B, C], [Event(2, JOIN, "a"), Event(5, LEAVE, "a")])
    assert [(step, request.request_id) for step, request in times.joins] == [
        (0, "b"),
        (0, "c"),
        (2, "a"),
    ]
    assert times.leaves == {"a": 5}


def test_wrong_schedules_are_refused_in_one_line() -> None:
    assert "at least one, found none" in refusal(timeline, [])
    assert "found 'a' twice" in refusal(timeline, [A, A])
    assert "requests a, b, found 'c'" in refusal(timeline, [A, B], [Event(0, JOIN, "c")])
    twice = [Event(0, LEAVE, "a"), Event(3, LEAVE, "a")]
    assert "one leave of 'a', found two" in refusal(timeline, [A], twice)
    early = [Event(3, JOIN, "a"), Event(2, LEAVE, "a")]
    assert "step 3 or later, found 2" in refusal(timeline, [A], early)
    assert "expected one of join, leave" in refusal(Event, 0, "stop", "a")
    assert "integer >= 0" in refusal(Event, -1, JOIN, "a")


def test_wrong_requests_are_refused_in_one_line() -> None:
    assert "expected a name" in refusal(BatchRequest, "", (0,))
    assert "prompt_ids: expected a tuple of ids" in refusal(BatchRequest, "a", [0])
    assert "seed: expected" in refusal(BatchRequest, "a", (0,), SAMPLE, -1)
    assert "max_new_tokens: expected" in refusal(BatchRequest, "a", (0,), SAMPLE, 1, 0)
    assert "expected a policy" in refusal(BatchRequest, "a", (0,), "greedy")
    for request, found in (
        (BatchRequest("a", ()), "at least one token"),
        (BatchRequest("a", (0,) * 5), "at most 4 tokens"),
        (BatchRequest("a", (9,)), "expected 0 to 7, found 9"),
        (BatchRequest("a", (0,), Policy("sample", 1.0, 9)), "top_k: expected 1 to 8"),
        (BatchRequest("a", (0,), stop_token_ids=(8,)), "expected 0 to 7, found 8"),
    ):
        assert found in refusal(run_batch, FROZEN, [B, request])
    assert "left, right, ragged" in refusal(run_batch, FROZEN, [A], (), "middle")
    assert run_batch(FROZEN, [A], (), RAGGED).layout == RAGGED


@pytest.mark.parametrize("requests", [None, "a", A, [A, "b"], [("a", (0,))]])
def test_what_is_no_request_is_refused(requests: Any) -> None:
    with pytest.raises(InputError, match="requests: expected a"):
        run_batch(FROZEN, requests)


@pytest.mark.parametrize("schedule", [None, "a", 3, [(1, JOIN, "a")], Event(1, JOIN, "a")])
def test_what_is_no_schedule_is_refused(schedule: Any) -> None:
    with pytest.raises(InputError, match="schedule: expected a"):
        run_batch(FROZEN, [A], schedule)
