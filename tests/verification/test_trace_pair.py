"""Runs on both paths, and runs that are not the same."""

from dataclasses import replace

import numpy as np
import pytest

from tinydec.generation.generate import generate
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import SAMPLE, Policy, RunSpec
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.trace_pair import compare_traces

SEEDED = RunSpec(policy=Policy(SAMPLE, 1.0, 3))


@pytest.fixture(scope="module")
def shipped() -> Checkpoint:
    return load_checkpoint()


@pytest.mark.parametrize("spec", [RunSpec(), SEEDED, RunSpec(prompt=("<bos>", "X"))])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_both_paths_give_the_same_run(shipped: Checkpoint, spec: RunSpec, dtype: str) -> None:
    one = replace(spec, dtype=dtype)
    pair = compare_traces(generate(shipped, one), generate(shipped, replace(one, cache=False)))
    assert (pair.same, pair.same_tokens, pair.same_stop, pair.same_draws) == (True,) * 4
    assert pair.max_abs_error <= TOLERANCES[dtype]


def test_inputs_are_one_token_a_step_with_a_cache_and_the_prefix_without(
    shipped: Checkpoint,
) -> None:
    spec = RunSpec(prompt=("<bos>", "A"))
    pair = compare_traces(generate(shipped, spec), generate(shipped, replace(spec, cache=False)))
    assert [step.cached_inputs for step in pair.steps] == [2, 1, 1]
    assert [step.full_inputs for step in pair.steps] == [2, 3, 4]


def test_largest_error_is_the_one_of_the_rows(shipped: Checkpoint) -> None:
    cached, full = generate(shipped, RunSpec()), generate(shipped, RunSpec(cache=False))
    expected = max(
        float(np.abs(a.selection.logits.astype(float) - b.selection.logits.astype(float)).max())
        for a, b in zip(cached.steps, full.steps, strict=True)
    )
    assert compare_traces(cached, full).max_abs_error == expected > 0


def test_another_seed_differs_in_its_draws(shipped: Checkpoint) -> None:
    pair = compare_traces(generate(shipped, SEEDED), generate(shipped, replace(SEEDED, seed=42)))
    assert not pair.same_draws
    assert not pair.same


def test_other_tokens_and_another_stop_are_seen(shipped: Checkpoint) -> None:
    greedy, short = generate(shipped, RunSpec()), generate(shipped, RunSpec(max_new_tokens=2))
    pair = compare_traces(greedy, short)
    assert (pair.same_tokens, pair.same_stop, len(pair.steps)) == (False, False, 2)
    assert all(step.same_token for step in pair.steps)


def test_error_is_measured_up_to_the_first_other_token(shipped: Checkpoint) -> None:
    # Greedy goes <bos> A B D, seed 41 goes <bos> Y X Y: after step 0 the prefixes differ.
    pair = compare_traces(generate(shipped, RunSpec()), generate(shipped, SEEDED))
    assert not pair.steps[0].same_token
    assert pair.max_abs_error == pair.steps[0].max_abs_error == 0
    assert pair.steps[1].max_abs_error > 1
