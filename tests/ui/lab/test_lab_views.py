"""HTML and grids of the lab's pages: what they show is what the core holds, and all is escaped."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.generation.batch import run_batch
from tinydec.generation.schedule import LEAVE, BatchRequest, Event
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import Policy, RunSpec
from tinydec.ui.lab import batch_tasks, batches, faults, lanes
from tinydec.ui.lab.checklist import checklist_html
from tinydec.ui.lab.tolerance import lab_tolerance
from tinydec.verification.faults import fault_by_id
from tinydec.verification.lab.fault import REQUEST
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.pairing import first_pair
from tinydec.verification.lab.scenario import frozen_scenario

MODEL = load_checkpoint()
LAB = laboratory(MODEL, frozen_scenario(), 1e-5)
REQUESTS = [
    BatchRequest("p<", (0,), Policy()),
    BatchRequest("q", (0, 2, 2), Policy(), max_new_tokens=1),
    BatchRequest("r", (0,), Policy("sample"), 41),
]
TRACE = run_batch(MODEL, REQUESTS, [Event(2, LEAVE, "r")])


def text(html: str) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL).split())


def broken(name: str):
    """The judged recording of a fault, and the first step that differs."""
    found = LAB.run(fault_by_id(name).intervention, REQUEST)
    return LAB.judge(found), first_pair(LAB.part_of_correct(REQUEST), found, 1e-5)


# Lanes, slots, masks -----------------------------------------------------------------------------


def test_lanes_show_tokens_ends_and_who_was_cancelled() -> None:
    html = lanes.lanes_html(MODEL.vocabulary, TRACE, 1)
    assert "p&lt;" in html
    assert "p<" not in html
    assert "▼ 1 · decode" in text(html)
    assert text(html).count("max_new_tokens") == 1
    assert text(html).count("cancelled") == 1
    assert "&lt;bos&gt; A A →" in text(html)


def test_long_batch_is_drawn_as_a_window_around_the_current_step() -> None:
    assert lanes.shown_steps(5, 4) == range(5)
    assert lanes.shown_steps(65, 40) == range(36, 44)
    assert lanes.shown_steps(65, 64) == range(57, 65)


def test_slots_of_three_layouts_stand_side_by_side() -> None:
    traces = {name: run_batch(MODEL, REQUESTS, (), name) for name in ("left", "right", "ragged")}
    html = lanes.slots_html(MODEL.vocabulary, traces, 0)
    assert [html.count(f"<h3>{name}</h3>") for name in traces] == [1, 1, 1]
    assert text(html).count("pad") == 2 * 4  # rows of 1, 3 and 1 tokens, in two padded layouts
    assert "pos 2" in text(html)


def test_mask_lets_each_query_see_real_slots_up_to_its_own() -> None:
    html = lanes.masks_html(MODEL.vocabulary, TRACE.steps[0], "left")
    first, second, third = (text(part) for part in html.split("<h3>")[1:])
    assert first.endswith("pad – – – pad – – – &lt;bos&gt; – – ●")
    assert second.endswith("&lt;bos&gt; ● – – A ● ● – A ● ● ●")
    assert third.count("●") == 1


# The checklist -----------------------------------------------------------------------------------


def test_stages_that_wait_say_nothing_of_their_verdict() -> None:
    report, _ = broken("positions-reset")
    html = checklist_html(report, 2)
    assert html.count('<li class="passed">') == 2
    assert html.count('<li class="waiting">') == 4
    assert "position.index" not in html
    assert "not judged" not in html


def test_failing_line_is_open_with_its_numbers_and_the_rest_is_not_judged() -> None:
    report, _ = broken("positions-reset")
    html = checklist_html(report, 6)
    assert html.count(" open>") == 1
    line = text(html.split(" open>")[1].split("</details>")[0])
    failure = report.first_failure
    assert f"observed {failure.observed} expected {failure.expected}" in line
    assert html.count('<li class="unjudged">') == 3
    assert "stage 3 (position and ownership) failed" in html


# The first tensor --------------------------------------------------------------------------------


def test_grids_show_the_head_that_differs_most_and_frame_what_differs() -> None:
    _, pair = broken("wrong-layer")
    correct, faulty = faults.first_grids(pair, MODEL.vocabulary, 1e-5)
    head = int(correct.title.split("head ")[1][0])
    assert np.array_equal(np.asarray(correct.values), pair.first.correct[head])
    assert np.array_equal(np.asarray(faulty.values), pair.first.faulty[head])
    different = np.abs(pair.first.correct[head] - pair.first.faulty[head]) > 1e-5
    assert set(correct.marked) == {(int(r), int(c)) for r, c in np.argwhere(different)}
    assert list(correct.rows) == ["slot 0", "slot 1"]
    largest = np.abs(pair.first.correct - pair.first.faulty).max(axis=(1, 2)).argmax()
    assert head == largest


def test_grids_of_unequal_shapes_leave_what_is_missing_empty() -> None:
    _, pair = broken("doubled-uniformly")
    correct, faulty = faults.first_grids(pair, MODEL.vocabulary, 1e-5)
    assert np.isnan(np.asarray(correct.values)[2:]).all()
    assert not np.isnan(np.asarray(faulty.values)).any()
    assert {row for row, _ in correct.marked} >= {2, 3}


def test_columns_of_scores_are_keys_and_of_probabilities_tokens() -> None:
    _, pair = broken("prefill-not-causal")
    assert list(faults.first_grids(pair, MODEL.vocabulary, 1e-5)[0].columns) == ["key 0", "key 1"]
    _, pair = broken("not-renormalised")
    columns = faults.first_grids(pair, MODEL.vocabulary, 1e-5)[0].columns
    assert list(columns) == list(MODEL.vocabulary.tokens)


# Batches and their exercises ---------------------------------------------------------------------


def test_setup_says_who_joins_and_leaves_and_when() -> None:
    spec = RunSpec(prompt=("<bos>", "A"), stop_tokens=("Y",))
    setup = batches.Setup(5, 2, 1, "")
    requests, events = batches.requests_of(MODEL, spec, setup)
    assert [request.request_id for request in requests] == ["you", *"abcde"]
    assert requests[0].prompt_ids == (0, 2)
    assert requests[0].stop_token_ids == (7,)
    assert [(e.step, e.action, e.request_id) for e in events] == [
        (1, "join", "e"),
        (2, "join", "you"),
        (3, "leave", "you"),  # after its prefill, although step 1 was asked for
    ]


def test_lesson_tells_a_broken_batch_from_a_correct_one() -> None:
    good = batches.batch_lesson(MODEL, RunSpec(), batches.Setup(4, 0, None, ""))
    assert batches.verdict_text(good).startswith("All 15 comparisons pass")
    assert good.refusal is None
    bad = batches.batch_lesson(MODEL, RunSpec(), batches.Setup(4, 0, None, "F27"))
    assert "comparisons fail. First: row you, left layout, in its logits" in batches.verdict_text(
        bad
    )
    assert bad.refusal == "next position: expected 0, found 2 (row 0)"
    assert "≤" in batches.error_numbers(good)
    assert ">" in batches.error_numbers(bad)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("context", [1, 2, 7])
def test_exercises_ask_for_what_a_batch_does_on_any_checkpoint(seed: int, context: int) -> None:
    plain = random_checkpoint(ModelConfig(5, context, 6, 1, 2, 7), seed)
    tokens = ("<b>", "|", "`x`", "y", "z")
    model = Checkpoint.build(plain.config, Vocabulary(tokens, None, "y"), plain.tensors)
    for task in (batch_tasks.position_task, batch_tasks.stop_task):
        one, other = (task(model, random.Random(seed)) for _ in range(2))
        assert one == other
        assert one.answer in one.choices or 0 <= int(one.answer) < context


def test_position_exercise_asks_where_the_slot_would_be_wrong() -> None:
    wrong = 0
    for seed in range(30):
        task = batch_tasks.position_task(MODEL, random.Random(seed))
        (slot,) = re.findall(r"go to slot (\d+)", task.question)
        wrong += int(slot) != task.answer
    assert wrong > 20


# Tolerance ---------------------------------------------------------------------------------------


def test_tolerance_is_the_visitors_or_the_checkpoints_own() -> None:
    wide = random_checkpoint(ModelConfig(5, 3, 64, 1, 2, 7), 3)
    assert lab_tolerance(MODEL, RunSpec()) == 1e-5
    assert lab_tolerance(MODEL, RunSpec(tolerance=0.5)) == 0.5
    assert lab_tolerance(wide, RunSpec(checkpoint="abc")) == pytest.approx(3e-4)
