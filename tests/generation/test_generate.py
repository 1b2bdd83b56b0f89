from dataclasses import replace
from typing import Any

import numpy as np
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
from tinydec.generation.generate import generate, new_request, run_request
from tinydec.generation.policy import replay
from tinydec.generation.request import Request
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.runspec import Policy, RunSpec

SAMPLE = Policy("sample")


def check_same_run(cached: GenerationTrace, full: GenerationTrace) -> None:
    """Tokens, draws and stop reasons are the same; logits agree to rounding."""
    assert cached.returned_ids == full.returned_ids
    assert cached.consumed_ids == full.consumed_ids
    assert cached.stop_reason == full.stop_reason
    for one, other in zip(cached.steps, full.steps, strict=True):
        assert one.consumed_ids == other.consumed_ids
        assert one.positions == other.positions
        assert (one.length_before, one.length_after) == (other.length_before, other.length_after)
        assert one.stop_reason == other.stop_reason
        mine, theirs = one.selection, other.selection
        assert mine.uniform == theirs.uniform
        assert (mine.state_before, mine.state_after) == (theirs.state_before, theirs.state_after)
        assert mine.kept == theirs.kept
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=0, atol=1e-9)


@settings(max_examples=60)
@given(st.data(), decoders())
def test_with_and_without_a_cache_the_run_is_the_same(
    data: st.DataObject, checkpoint: Checkpoint
) -> None:
    options = data.draw(run_options(checkpoint.config))
    cached, full = (run(checkpoint, **options, use_cache=cache) for cache in (True, False))
    check_same_run(cached, full)
    assert {step.phase for step in full.steps} == {"full"}
    phases = [step.phase for step in cached.steps]
    assert phases == ["prefill"] + ["decode"] * (len(phases) - 1)
    assert (cached.use_cache, full.use_cache) == (True, False)


def test_the_comparison_of_two_runs_can_fail() -> None:
    checkpoint = decoder()
    options: dict[str, Any] = {"policy": SAMPLE, "seed": 5}
    full = run(checkpoint, (1, 2), **options, use_cache=False)
    check_same_run(run(checkpoint, (1, 2), **options), full)
    rows = checkpoint.tensors["wpe.weight"].copy()
    rows[3] += 1e-6 * np.arange(SMALL.n_embd)  # read by the third of four steps only
    moved = checkpoint.with_tensors({**checkpoint.tensors, "wpe.weight": rows})
    for other in (
        run(moved, (1, 2), **options),
        run(checkpoint, (1, 2), SAMPLE, 6),
        run(checkpoint, (1, 2), **options, max_new_tokens=2),
    ):
        with pytest.raises(AssertionError):
            check_same_run(other, full)


@settings(max_examples=60)
@given(st.data(), decoders("float32"), st.booleans())
def test_every_run_obeys_the_loop(data: st.DataObject, checkpoint: Checkpoint, cache: bool) -> None:
    options = data.draw(run_options(checkpoint.config))
    trace = run(checkpoint, **options, use_cache=cache)
    context = checkpoint.config.n_positions
    prompt = tuple(options["prompt_ids"])
    assert trace.prompt_ids == prompt
    assert trace.token_ids == prompt + trace.returned_ids
    assert trace.consumed_ids == trace.token_ids[:-1]  # the last one returned is never consumed
    assert len(trace.consumed_ids) <= context
    ends = trace.returned_ids[-1]
    stops = checkpoint.vocabulary.eos_id, *options["stop_token_ids"]
    assert not set(trace.returned_ids[:-1]) & set(stops)
    causes = {
        "eos": ends == checkpoint.vocabulary.eos_id,
        "stop_token": ends in options["stop_token_ids"],
        "context": len(trace.consumed_ids) == context,
        "max_new_tokens": len(trace.steps) == options["max_new_tokens"],
    }
    assert trace.stop_reason == next(name for name, applies in causes.items() if applies)
    assert [step.stop_reason for step in trace.steps[:-1]] == [None] * (len(trace.steps) - 1)
    check_steps(trace, checkpoint)


def check_steps(trace: GenerationTrace, checkpoint: Checkpoint) -> None:
    """Each step follows from the one before and can be recomputed from its record."""
    length, state = 0, None
    for index, step in enumerate(trace.steps):
        assert (step.index, step.length_before) == (index, length)
        assert step.positions == tuple(range(length, step.length_after))
        assert step.length_after == length + len(step.consumed_ids)
        assert state in (None, step.selection.state_before)
        prefix = trace.token_ids[: step.length_after]
        logits = full_forward(checkpoint, prefix).last_logits[0]
        np.testing.assert_allclose(step.selection.logits, logits, rtol=0, atol=2e-3)
        assert step.selection.logits.dtype == checkpoint.dtype
        assert replay(step.selection).same_as(step.selection)
        length, state = step.length_after, step.selection.state_after


@settings(max_examples=30)
@given(st.data(), decoders())
def test_the_same_seed_gives_the_same_trace_bit_for_bit(
    data: st.DataObject, checkpoint: Checkpoint
) -> None:
    options = data.draw(run_options(checkpoint.config))
    before = checkpoint.digest, {n: a.tobytes() for n, a in checkpoint.tensors.items()}
    one, other = (run(checkpoint, **options, keep_activations=True) for _ in range(2))
    assert_same_trace(one, other)
    assert_same_trace(one, run(checkpoint, **options, keep_activations=True, request_id="x"))
    assert before == (checkpoint.digest, {n: a.tobytes() for n, a in checkpoint.tensors.items()})


def test_another_seed_gives_another_trace() -> None:
    traces = [run(decoder(), (1,), SAMPLE, seed) for seed in (0, 1)]
    with pytest.raises(AssertionError):
        assert_same_trace(*traces)
    assert len({run(decoder(), (1,), SAMPLE, seed).returned_ids for seed in range(9)}) > 3


def test_uniforms_of_a_run_are_those_of_default_rng() -> None:
    trace = run(decoder(), (1,), SAMPLE, 41)
    uniforms = [step.selection.uniform for step in trace.steps]
    assert uniforms == np.random.default_rng(41).random(SMALL.n_positions).tolist()


def test_greedy_returns_the_argmax_and_leaves_the_generator_untouched() -> None:
    trace = run(decoder(), (1, 2), Policy(), 41)
    for step in trace.steps:
        assert step.returned_id == step.selection.logits.argmax()
        assert step.selection.state_before == step.selection.state_after
        assert step.selection.state_after == trace.steps[0].selection.state_before


# From a spec --------------------------------------------------------------------------------------


def test_a_spec_runs_as_it_says() -> None:
    checkpoint = decoder(eos=6)
    spec = RunSpec(
        prompt=("t1", "t2"),
        policy=Policy("sample", 0.9, 5, 0.95),
        seed=7,
        max_new_tokens=2,
        stop_tokens=("t5", "t0"),
        dtype="float64",
    )
    trace = generate(checkpoint, spec, keep_activations=True)
    direct = run(
        checkpoint,
        (1, 2),
        spec.policy,
        7,
        max_new_tokens=2,
        stop_token_ids=(0, 5),
        keep_activations=True,
    )
    assert_same_trace(trace, direct)
    assert trace.stop_token_ids == (0, 5)
    assert not generate(checkpoint, replace(spec, cache=False)).use_cache
    assert generate(checkpoint, spec).steps[0].activations is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_spec_runs_in_its_dtype(dtype: str) -> None:
    trace = generate(decoder(dtype="float32"), RunSpec(prompt=("t1",), dtype=dtype))
    assert {step.selection.logits.dtype.name for step in trace.steps} == {dtype}
    assert {step.selection.probabilities.dtype.name for step in trace.steps} == {"float64"}


def test_what_only_the_checkpoint_can_tell_is_refused_before_anything_runs() -> None:
    checkpoint = decoder()
    spec = RunSpec(prompt=("t1",), dtype="float64")
    assert isinstance(new_request(checkpoint, spec), Request)
    tokens = "t0 t1 t2 t3 t4 t5 t6"
    for wrong, expected in (
        ({"prompt": ("t1", "t7")}, f"token: expected one of {tokens}, found 't7'"),
        ({"stop_tokens": ("A",)}, f"token: expected one of {tokens}, found 'A'"),
        (
            {"prompt": ("t1",) * 6},
            "prompt: expected at most 5 tokens (the context), found 6",
        ),
        (
            {"policy": Policy("sample", top_k=8)},
            "top_k: expected 1 to 7 (the vocabulary), found 8",
        ),
    ):
        assert refusal(generate, checkpoint, replace(spec, **wrong)) == expected


def test_running_a_stopped_request_returns_the_same_trace() -> None:
    request = Request(decoder(), (1,), Policy(), 0)
    assert_same_trace(run_request(request), run_request(request))
