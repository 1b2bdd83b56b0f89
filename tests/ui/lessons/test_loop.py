"""Presets that reach every stop reason, and the exercises on stopping."""

import random
import re

import pytest

from tests.generation.decoders import decoder
from tinydec.generation.generate import generate
from tinydec.generation.stopping import STOP_REASONS
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import SAMPLE, Policy, RunSpec
from tinydec.ui.domains import NAMES, Limits
from tinydec.ui.lessons import loop
from tinydec.ui.lessons.both import both_paths
from tinydec.ui.parameters import settle
from tinydec.verification.trace_pair import compare_traces

SHIPPED = load_checkpoint()


@pytest.mark.parametrize("reason", STOP_REASONS)
def test_preset_reaches_its_stop_reason(reason: str) -> None:
    values = loop.presets(SHIPPED, RunSpec())[reason]
    assert set(values) <= set(NAMES)
    settled = settle(values, Limits.of(SHIPPED))
    assert settled.notes == ()
    assert generate(SHIPPED, settled.spec).stop_reason == reason


@pytest.mark.parametrize(("size", "context"), [(1, 1), (2, 1), (7, 5), (5, 29)])
def test_presets_can_be_set_with_any_checkpoint(size: int, context: int) -> None:
    checkpoint = decoder(ModelConfig(size, context, 6, 1, 3, 11), eos=0)
    for values in loop.presets(checkpoint, RunSpec()).values():
        settled = settle(values, Limits.of(checkpoint))
        assert settled.notes == ()
        generate(checkpoint, settled.spec)


def test_pair_text_says_same_or_where_not() -> None:
    same = both_paths(SHIPPED, RunSpec()).pair
    assert loop.pair_text(same, 1e-5).startswith("The same tokens, the same draws")
    other = compare_traces(
        generate(SHIPPED, RunSpec()), generate(SHIPPED, RunSpec(policy=Policy(SAMPLE, 1.0, 3)))
    )
    assert "differ from step 0 on" in loop.pair_text(other, 1e-5)


def test_cache_control_chooses_the_trace_that_is_shown() -> None:
    assert both_paths(SHIPPED, RunSpec()).trace.use_cache
    assert not both_paths(SHIPPED, RunSpec(cache=False)).trace.use_cache


@pytest.mark.parametrize("seed", range(29))
def test_stop_exercise_has_the_cores_answer(seed: int) -> None:
    task = loop.stop_task(SHIPPED, random.Random(seed))
    assert task.answer in task.choices
    limit, prompt, returned = re.findall(r"is (not set|\d)\. From the prompt `(.*?)` .* `(.*?)`",
                                         task.question)[0]  # fmt: skip
    returned_ids = SHIPPED.vocabulary.encode(returned)
    consumed = len(prompt.split()) + len(returned_ids) - 1
    expected = (
        "eos" if returned.endswith("<eos>")
        else "context" if consumed == 4
        else "max_new_tokens"
    )  # fmt: skip
    assert task.answer == expected
    if expected == "max_new_tokens":
        assert int(limit) == len(returned_ids)


def test_stop_exercises_differ_in_their_answers() -> None:
    answers = {loop.stop_task(SHIPPED, random.Random(seed)).answer for seed in range(60)}
    assert {"eos", "max_new_tokens"} <= answers


@pytest.mark.parametrize("seed", range(7))
def test_consumed_exercise_counts_all_but_the_last(seed: int) -> None:
    task = loop.consumed_task(SHIPPED, random.Random(seed))
    prompt, returned = map(int, re.findall(r"\d+", task.question)[:2])
    assert task.answer == prompt + returned - 1
