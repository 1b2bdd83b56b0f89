"""The chosen number of the decode step's page: values, junk, clicks, and the exercises."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tinydec.figures.stages import walk
from tinydec.model.activations import tensor_names
from tinydec.model.config import ModelConfig
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import is_right
from tinydec.ui.lessons import decode_step as page
from tinydec.ui.lessons.decode_tasks import score_task, weight_task
from tinydec.ui.lessons.explain_tree import check_words, element_words, operand_label
from tinydec.ui.number_grid import grid_data
from tinydec.verification.explain import Element, explain

FROZEN = load_checkpoint(FROZEN_PATH)
LESSON = page.lesson(FROZEN, RunSpec(prompt=("<bos>", "A")))
RECORDING = LESSON.recording
LARGE = random_checkpoint(ModelConfig(29, 37, 95, 3, 5, 67), 3, "float32")
TINY = random_checkpoint(ModelConfig(2, 1, 1, 1, 1, 1), 3, "float32")


# The choice --------------------------------------------------------------------------------------


def test_nothing_chosen_is_the_first_number_of_the_newest_token() -> None:
    choice = page.choose(RECORDING, 1, {})
    assert choice.element == Element(1, "token_embedding", 2, 0)
    assert choice.notes == ()


def test_position_outside_the_step_is_found_in_its_own() -> None:
    choice = page.choose(RECORDING, 1, {"tensor": "h.1.q", "position": "0", "head": "1"})
    assert choice.element == Element(0, "h.1.q", 0, 0, head=1)
    slot = page.choose(RECORDING, 1, {"tensor": "h.1.keys", "position": "0"})
    assert slot.element.step == 1  # step 1 read slot 0


@pytest.mark.parametrize(
    ("junk", "line"),
    [
        ({"tensor": "wte"}, "tensor: expected a tensor such as token_embedding or logits, found"),
        ({"position": "4"}, "position: expected newest or 0 to 3, found '4'; ran with newest"),
        ({"position": "-1"}, "found '-1'; ran with newest"),
        ({"tensor": "h.0.q", "head": "2"}, "head: expected 0 to 1, found '2'; ran with 0"),
        ({"index": "1e400"}, "index: expected 0 to 3, found '1e400'; ran with 0"),
        ({"index": ""}, "index: expected 0 to 3, found ''; ran with 0"),
    ],
)
def test_junk_is_replaced_and_named(junk: dict[str, str], line: str) -> None:
    choice = page.choose(RECORDING, 2, junk)
    assert len(choice.notes) == 1
    assert line in choice.notes[0]
    explain(RECORDING, choice.element)


@given(st.dictionaries(st.sampled_from(page.CONTROLS), st.text(max_size=9) | st.integers()))
def test_whatever_is_asked_for_there_is_a_number(wanted: dict[str, Any]) -> None:
    assert explain(RECORDING, page.choose(RECORDING, 2, wanted).element).agrees


def test_controls_of_an_element_lead_back_to_it() -> None:
    for tensor in tensor_names(2):
        for position in range(4):
            step = RECORDING.step_of(tensor, position, 2)
            element = Element(step, tensor, position, 0)
            values = page.control_values(element, newest=3)
            assert page.choose(RECORDING, 2, values).element == element
            assert (values["position"] == "newest") == (position == 3)


# The walk ----------------------------------------------------------------------------------------


def test_next_stage_walks_through_every_stop_and_back() -> None:
    tensor: str | None = "token_embedding"
    seen = [tensor]
    while tensor is not None and (tensor := page.neighbour(2, tensor, 1)) is not None:
        seen.append(tensor)
    assert len(seen) == len(walk(2))
    assert seen[-1] == "logits"
    back: str | None = "logits"
    count = 0
    while back is not None and (back := page.neighbour(2, back, -1)) is not None:
        count += 1
    assert count == len(walk(2)) - 1


@pytest.mark.parametrize("checkpoint", [FROZEN, LARGE, TINY])
@pytest.mark.parametrize("cache", [True, False])
def test_every_stage_of_any_checkpoint_makes_grids(checkpoint: Any, cache: bool) -> None:
    first = checkpoint.vocabulary.tokens[0]
    count = min(checkpoint.config.n_positions, 11)
    lesson = page.lesson(checkpoint, RunSpec(prompt=(first,) * count, cache=cache))
    recording = lesson.recording
    for step in {0, len(recording.steps) - 1}:
        for tensor in tensor_names(checkpoint.config.n_layer):
            element = page.choose(recording, step, {"tensor": tensor}).element
            for make in (page.walk_panels, page.heat_panels):
                panels = make(recording, element, step)
                frames = page.frames(lesson, panels, checkpoint.vocabulary.tokens)
                chosen = page.selected(element, panels)
                data = grid_data(frames, 0, chosen)
                assert data["frames"]
                if make is page.walk_panels:
                    assert chosen is not None  # the chosen number is always in sight
            note = page.cut_note(recording, page.walk_panels(recording, element, step), 0)
            assert note == "" or checkpoint is LARGE


def test_click_names_the_element_and_junk_names_none() -> None:
    element = page.choose(RECORDING, 1, {"tensor": "h.0.scores"}).element
    panels = page.walk_panels(RECORDING, element, 1)
    good = {"grid": "h.0.scores@1@2", "row": 0, "column": 2, "frame": 2}
    assert page.clicked({"cell": good}, panels) == Element(2, "h.0.scores", 3, 2, head=1)
    junk: Any
    for junk in (
        None, {}, [], {"cell": None}, {"cell": 3}, {"cell": good | {"row": -1}},
        {"cell": good | {"row": 1}}, {"cell": good | {"column": 4}}, {"cell": good | {"row": "0"}},
        {"cell": good | {"row": True}}, {"cell": good | {"grid": "h.0.scores@1@9"}},
    ):  # fmt: skip
        assert page.clicked(junk, panels) is None


def test_empty_cell_of_a_triangle_names_nothing() -> None:
    element = page.choose(RECORDING, 1, {}).element
    panels = page.heat_panels(RECORDING, element, 1)
    cell = {"grid": "h.0.attention@0@1", "row": 1, "column": 1}
    found = page.clicked({"cell": cell}, panels)
    assert found is not None
    assert (found.position, found.index) == (1, 1)
    assert page.clicked({"cell": cell | {"column": 2}}, panels) is None
    assert page.clicked({"cell": cell | {"row": 3}}, panels) is None


def test_cut_note_says_what_is_shown_of_a_large_model() -> None:
    recording = page.lesson(LARGE, RunSpec(prompt=("t0",) * 11)).recording
    element = page.choose(recording, 0, {"tensor": "h.1.mlp_hidden", "index": "60"}).element
    panels = page.walk_panels(recording, element, 0)
    note = page.cut_note(recording, panels, 0)
    assert "mlp_hidden 51 to 66 of 67" in note
    assert "positions 3 to 10" in note


# Words -------------------------------------------------------------------------------------------


def test_words_name_place_value_and_verdict() -> None:
    element = Element(1, "h.1.scores", 2, 0, head=1)
    assert element_words(element, LESSON.tokens) == (
        "query at position 2 (`B`), key at position 0 (`<bos>`), head 1, layer 1, computed in "
        "step 1"
    )
    node = explain(RECORDING, element)
    assert "✓ float64" in check_words(node, "float32")
    assert "within the" in check_words(node, "float32")
    exact = explain(RECORDING, Element(1, "h.1.keys", 2, 0))
    assert check_words(exact, "float32").endswith(": the same number.")
    assert operand_label(RECORDING, element).startswith("h.1.scores[1, 2, 0] = ")


def test_words_flag_a_number_that_the_arithmetic_does_not_give() -> None:
    from dataclasses import replace

    node = explain(RECORDING, Element(1, "h.1.scores", 2, 0, head=1))
    wrong = check_words(replace(node, value=node.value + 1), "float32")
    assert wrong.startswith("✗")
    assert "beyond the" in wrong
    copied = explain(RECORDING, Element(1, "h.1.keys", 2, 0))
    assert check_words(replace(copied, value=9.0), "float32").endswith(": another number.")


# Exercises ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [FROZEN, LARGE, TINY])
@pytest.mark.parametrize("draw", [score_task, weight_task])
def test_exercise_can_be_solved_from_the_numbers_it_gives(checkpoint: Any, draw: Any) -> None:
    answers = set()
    for seed in range(12):
        task = draw(checkpoint, random.Random(seed))
        assert draw(checkpoint, random.Random(seed)) == task
        shown = task.solution.rsplit("**", 2)[1]
        assert is_right(task, float(shown))
        assert not is_right(task, float(shown) + 1)
        answers.add(task.answer)
    assert len(answers) > 3 or checkpoint is TINY


def test_weight_exercise_is_the_softmax_of_the_scores_it_shows() -> None:
    import math
    import re

    for seed in range(12):
        task = weight_task(FROZEN, random.Random(seed))
        found = re.search(
            r"positions 0 to (\d) are ([-0-9., ]+)\. Which .* position (\d)", task.question
        )
        assert found is not None
        scores = [float(v) for v in found[2].split(",")]
        assert len(scores) == int(found[1]) + 1
        weights = [math.exp(s) for s in scores]
        assert weights[int(found[3])] / sum(weights) == pytest.approx(task.answer, abs=2e-3)
