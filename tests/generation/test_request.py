from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generation.decoders import (
    SMALL,
    assert_same_trace,
    decoder,
    decoders,
    run,
    run_options,
)
from tests.refusals import refusal
from tinydec.generation.request import Request
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import ForeignRequestError
from tinydec.runspec import Policy

SAMPLE = Policy("sample")
CONTEXT = SMALL.n_positions


# Stop reasons in real runs ------------------------------------------------------------------------


def returned(**options) -> tuple[int, ...]:
    """What an unlimited greedy run on the small decoder returns; it has no `<eos>`."""
    return run(decoder(), (1,), Policy(), **options).returned_ids


def test_a_run_without_other_causes_stops_at_the_context() -> None:
    trace = run(decoder(), (1,))
    assert trace.stop_reason == "context"
    # 1 of the prompt + 4 consumed fill the context; the fifth returned token is never consumed.
    assert len(trace.returned_ids) == CONTEXT
    assert len(trace.consumed_ids) == CONTEXT
    assert len(trace.token_ids) == CONTEXT + 1


def test_a_prompt_that_fills_the_context_still_returns_one_token() -> None:
    trace = run(decoder(), (1, 2, 3, 4, 5))
    assert trace.stop_reason == "context"
    assert len(trace.steps) == 1
    assert trace.consumed_ids == (1, 2, 3, 4, 5)
    assert trace.steps[0].positions == (0, 1, 2, 3, 4)


def test_eos_stops_a_run_and_is_not_consumed() -> None:
    first = returned()[0]
    trace = run(decoder(eos=first), (1,))
    assert (trace.stop_reason, trace.returned_ids) == ("eos", (first,))
    assert trace.consumed_ids == (1,)


def test_an_eos_in_the_prompt_does_not_stop_a_run() -> None:
    first = returned()[0]
    other = next(token for token in range(7) if token not in (first, *returned()))
    trace = run(decoder(eos=other), (1, other, 2))
    assert trace.consumed_ids[:3] == (1, other, 2)
    assert trace.stop_reason in ("eos", "context")


def test_a_stop_token_stops_a_run() -> None:
    first = returned()[0]
    trace = run(decoder(), (1,), stop_token_ids=[first, 6, first])
    assert (trace.stop_reason, trace.returned_ids) == ("stop_token", (first,))
    assert trace.stop_token_ids == tuple(sorted({first, 6}))


@pytest.mark.parametrize("limit", range(1, CONTEXT))
def test_max_new_tokens_stops_a_run(limit: int) -> None:
    trace = run(decoder(), (1,), max_new_tokens=limit)
    assert trace.stop_reason == "max_new_tokens"
    assert trace.returned_ids == returned()[:limit]


@pytest.mark.parametrize(
    ("eos", "stop_token", "full", "limit", "expected"),
    [
        (eos, stop, full, limit, expected)
        for eos in (False, True)
        for stop in (False, True)
        for full in (False, True)
        for limit in (False, True)
        for expected in [
            ("eos" if eos else "stop_token" if stop else "context" if full else "max_new_tokens")
        ]
        if eos or stop or full or limit
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_causes_that_meet_in_one_step_follow_the_precedence(
    eos: bool, stop_token: bool, full: bool, limit: bool, expected: str, cache: bool
) -> None:
    prompt = (1, 2, 3, 4, 5) if full else (1, 2)
    token = run(decoder(), prompt, max_new_tokens=1).returned_ids[0]
    trace = run(
        decoder(eos=token if eos else None),
        prompt,
        max_new_tokens=1 if limit else None,
        stop_token_ids=[token] if stop_token else [],
        use_cache=cache,
    )
    assert (trace.stop_reason, trace.returned_ids) == (expected, (token,))


# The life of a request ----------------------------------------------------------------------------


def test_a_stopped_request_refuses_another_step_and_stays_as_it_was() -> None:
    request = Request(decoder(), (1,), SAMPLE, 3, max_new_tokens=1)
    request.step()
    before = request.steps, request.consumed, request.pending, request.stream.state
    message = refusal(request.step)
    assert message == "request: expected one that runs, found it stopped by max_new_tokens"
    assert before == (request.steps, request.consumed, request.pending, request.stream.state)
    assert len(request.trace().steps) == 1


def test_a_running_request_has_no_trace_yet() -> None:
    request = Request(decoder(), (1,), SAMPLE, 3, max_new_tokens=2)
    expected = "trace: expected a request that has stopped, found one that runs"
    assert refusal(request.trace) == expected
    request.step()
    assert refusal(request.trace) == expected
    request.step()
    assert request.trace().returned_ids == tuple(step.returned_id for step in request.steps)


def test_a_request_counts_what_it_consumed() -> None:
    request = Request(decoder(), (4, 2), Policy(), 0)
    assert request.cache is not None
    assert (request.position, request.pending, request.cache.length) == (0, (4, 2), 0)
    first = request.step().returned_id
    assert (request.position, request.pending, request.cache.length) == (2, (first,), 2)
    assert request.cache.token_ids().tolist() == [[4, 2]]
    request.step()
    assert (request.position, request.cache.length) == (3, 3)
    assert request.cache.token_ids().tolist() == [[4, 2, first]]
    assert Request(decoder(), (4, 2), Policy(), 0, use_cache=False).cache is None


def test_a_step_that_a_guard_refuses_changes_nothing() -> None:
    request = Request(decoder(), (1,), SAMPLE, 3)
    request.step()
    cache = request.cache
    request.cache = Request(decoder(), (1,), SAMPLE, 3, request_id="other").cache
    with pytest.raises(ForeignRequestError):
        request.step()
    assert (request.position, len(request.steps)) == (1, 1)
    request.cache = cache
    while request.stop_reason is None:
        request.step()
    assert_same_trace(request.trace(), run(decoder(), (1,), SAMPLE, 3))


def orders(one: int, other: int) -> list[tuple[int, ...]]:
    return sorted(set(permutations([0] * one + [1] * other)))


@pytest.mark.parametrize("policy", [SAMPLE, Policy()])
@pytest.mark.parametrize("cache", [True, False])
def test_requests_in_any_order_of_steps_equal_each_run_alone(policy: Policy, cache: bool) -> None:
    checkpoint = decoder()
    arguments = [((1, 3), policy, 7), ((2, 4, 6), SAMPLE, 7)]
    options: dict[str, Any] = {"use_cache": cache, "keep_activations": True}
    alone = [run(checkpoint, *each, **options) for each in arguments]
    lengths = [len(trace.steps) for trace in alone]
    assert lengths == [4, 3]
    for order in orders(*lengths):
        pair = [Request(checkpoint, *each, **options) for each in arguments]
        for turn in order:
            pair[turn].step()
        for request, expected in zip(pair, alone, strict=True):
            assert_same_trace(request.trace(), expected)


@settings(max_examples=30)
@given(st.data(), decoders("float32"))
def test_any_two_requests_share_nothing(data: st.DataObject, checkpoint: Checkpoint) -> None:
    options = [data.draw(run_options(checkpoint.config)) for _ in range(2)]
    pair = [
        Request(checkpoint, **each, request_id=f"request-{number}")
        for number, each in enumerate(options)
    ]
    while running := [request for request in pair if request.stop_reason is None]:
        data.draw(st.sampled_from(running)).step()
    for request, each in zip(pair, options, strict=True):
        assert_same_trace(request.trace(), run(checkpoint, **each))


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ((), "prompt: expected at least one token, found none"),
        ((1,) * 6, "prompt: expected at most 5 tokens (the context), found 6"),
        ((7,), "token id: expected 0 to 6, found 7"),
        ((-1,), "token id: expected 0 to 6, found -1"),
        ([[1], [2]], "prompt: expected one sequence of ids, found 2"),
    ],
)
def test_wrong_prompts_are_refused(prompt, message: str) -> None:
    assert refusal(Request, decoder(), prompt, Policy(), 0) == message


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3"])
def test_wrong_limits_are_refused(wrong) -> None:
    message = refusal(Request, decoder(), (1,), Policy(), 0, max_new_tokens=wrong)
    assert message == f"max_new_tokens: expected an integer >= 1, found {wrong!r}"


@pytest.mark.parametrize("wrong", [-1, 1.5, True, None])
def test_wrong_seeds_are_refused(wrong) -> None:
    message = refusal(Request, decoder(), (1,), Policy(), wrong)
    assert message == f"seed: expected an integer >= 0, found {wrong!r}"


def test_wrong_top_k_and_stop_tokens_are_refused() -> None:
    message = refusal(Request, decoder(), (1,), Policy("sample", top_k=8), 0)
    assert message == "top_k: expected 1 to 7 (the vocabulary), found 8"
    for wrong in (7, -1):
        message = refusal(Request, decoder(), (1,), Policy(), 0, stop_token_ids=[wrong])
        assert message == f"token id: expected 0 to 6, found {wrong}"
    for odd in (1.5, "A", True, None):
        refusal(Request, decoder(), (1,), Policy(), 0, stop_token_ids=[odd])
        refusal(Request, decoder(), (1,), Policy(), 0, stop_token_ids=[1, odd])
