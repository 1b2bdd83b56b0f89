"""The fixed row and the draw, what a moved slider says, and the exercises."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.generation.decoders import decoder
from tinydec.generation.generate import generate
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import GREEDY, SAMPLE, Policy, RunSpec
from tinydec.ui.domains import NAMES, Limits
from tinydec.ui.lessons import policy
from tinydec.ui.parameters import settle

SHIPPED = load_checkpoint()
TOP_3 = Policy(SAMPLE, 1.0, 3)


def row(*prompt: str) -> np.ndarray:
    return policy.prompt_row(SHIPPED, RunSpec(prompt=prompt))


def test_row_is_the_first_of_any_run_with_that_prompt() -> None:
    for spec in (RunSpec(prompt=("<bos>", "A")), RunSpec(prompt=("<bos>", "A"), policy=TOP_3)):
        expected = generate(SHIPPED, spec).steps[0].selection.logits
        assert policy.prompt_row(SHIPPED, spec).tolist() == expected.tolist()


def test_nth_draw_is_numpys() -> None:
    expected = np.random.default_rng(5).random(7)
    assert [policy.nth_draw(5, n).uniform for n in range(7)] == expected.tolist()


def test_study_selects_as_the_run_does() -> None:
    trace = generate(SHIPPED, RunSpec(policy=TOP_3))
    uniforms = policy.seed_uniforms(SHIPPED, RunSpec())
    found = policy.study(SHIPPED.vocabulary, row("<bos>"), TOP_3, policy.nth_draw(41, 0), uniforms)
    assert found.selection.same_as(trace.steps[0].selection)
    assert found.counts.sum() == policy.SEEDS
    assert found.picture.shares.sum() == pytest.approx(1)
    assert set(found.counts.nonzero()[0]) == set(found.selection.kept)


def test_titles_fit_a_phone() -> None:
    for rule in (
        Policy(GREEDY),
        TOP_3,
        Policy(SAMPLE, 0.05, None, 0.95),
        Policy(SAMPLE, 1.25, 256),
    ):
        for title in policy._titles(rule, 1000):
            assert all(len(line) <= 8 for line in title.split("<br>"))


def test_near_tie_is_named_only_where_it_is_one() -> None:
    assert "near-tie" in policy.near_tie(SHIPPED.vocabulary, row("<bos>", "A", "B"))
    assert "near-tie" not in policy.near_tie(SHIPPED.vocabulary, row("<bos>"))
    tied = np.zeros(8)
    assert "<bos> and <eos> are exactly tied" in policy.near_tie(SHIPPED.vocabulary, tied)


def seen(**changes) -> policy.Seen:
    state = policy.nth_draw(41, 0).state_before
    return replace(policy.Seen(("<bos>",), TOP_3, 41, 0, state, "Y"), **changes)


def test_moved_slider_is_said_to_consume_nothing() -> None:
    hot = seen(policy=replace(TOP_3, temperature=2.0), token="A")
    text = policy.moved_text(seen(), hot)
    assert "from sample, temperature 1, top-k 3 to sample, temperature 2, top-k 3" in text
    assert "0 numbers consumed" in text
    assert "Y → A" in text
    assert "still Y" in policy.moved_text(seen(), replace(hot, token="Y"))


def test_other_generator_state_is_never_called_unchanged() -> None:
    after = policy.nth_draw(41, 1).state_before
    for moved in (
        seen(state=after, index=1),
        seen(state=after, index=1, policy=replace(TOP_3, temperature=2.0)),
    ):
        text = policy.moved_text(seen(), moved)
        assert "unchanged" not in text
        assert "another generator state" in text


def test_other_moves_are_told_apart() -> None:
    assert policy.moved_text(None, seen()).startswith("Move a slider")
    assert policy.moved_text(seen(), seen()).startswith("Move a slider")
    assert policy.moved_text(seen(), seen(prompt=("A",))).startswith("The row changed")
    greedy = seen(policy=Policy(GREEDY))
    hot = seen(policy=Policy(GREEDY, 2.0))
    assert policy.moved_text(greedy, hot).startswith("Greedy looks at no slider")


@pytest.mark.parametrize("rule", [Policy(GREEDY), TOP_3])
@pytest.mark.parametrize("index", [0, 3])
def test_presets_can_be_set(rule: Policy, index: int) -> None:
    for checkpoint in (SHIPPED, decoder(), decoder(ModelConfig(1, 1, 6, 1, 3, 11))):
        found = policy.presets(checkpoint, RunSpec(policy=rule), index)
        for values in found.values():
            assert set(values) <= set(NAMES)
            assert settle(values, Limits.of(checkpoint)).notes == ()
        assert ("Near-tie: C or D" in found) == (checkpoint is SHIPPED)


@pytest.mark.parametrize("seed", range(13))
def test_interval_exercise_can_be_solved_by_adding_up(seed: int) -> None:
    task = policy.interval_task(SHIPPED, random.Random(seed))
    shown = [float(part.split("` ")[1]) for part in task.question.splitlines()[2].split(" · ")]
    uniform = float(re.findall(r"u = ([\d.e-]+)\$", task.question)[0])
    assert max(shown) < 0.96  # there is something to choose
    place = next(i for i, total in enumerate(np.cumsum(shown)) if uniform < total)
    assert task.choices[place] == task.answer


@pytest.mark.parametrize("seed", range(7))
def test_temperature_exercise_has_the_exponential_as_its_answer(seed: int) -> None:
    task = policy.temperature_task(SHIPPED, random.Random(seed))
    gap, temperature = map(
        float, re.findall(r"is ([\d.]+) above .* temperature ([\d.]+),", task.question)[0]
    )
    assert task.answer == pytest.approx(np.exp(gap / temperature), rel=2e-3)
    assert task.tolerance == pytest.approx(0.02 * float(task.answer))


@pytest.mark.parametrize("seed", range(3))
def test_exercises_exist_for_any_checkpoint(seed: int) -> None:
    for config in (ModelConfig(1, 1, 6, 1, 3, 11), ModelConfig(7, 5, 6, 2, 3, 11)):
        checkpoint = decoder(config, seed)
        rng = random.Random(seed)
        assert policy.interval_task(checkpoint, rng).question
        assert policy.temperature_task(checkpoint, rng).question
