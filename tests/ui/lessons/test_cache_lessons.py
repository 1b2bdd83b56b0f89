"""Exercises and words of phases, cache and positions: answers by hand, sentences with numbers."""

import random
import re

import numpy as np
import pandas as pd
import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import is_right
from tinydec.ui.lessons import kv_cache, phases, positions
from tinydec.ui.lessons.readable import joined, readable
from tinydec.ui.lessons.window import MOST_ROWS, window
from tinydec.verification.phases import Split

FROZEN = load_checkpoint()
DEEP = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
TINY = random_checkpoint(ModelConfig(7, 1, 10, 3, 5, 11), 4)
SEEDS = range(12)


def bold(text: str) -> list[int]:
    """The drawn numbers of a question, which stand in bold."""
    return [int(n) for n in re.findall(r"\*\*(\d+)", text)]


# Exercises: the answers, by hand ------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("checkpoint", "heads"), [(FROZEN, 4), (DEEP, 9), (TINY, 15)])
def test_pairs_are_a_triangle_and_rows(checkpoint, heads, seed):
    task = phases.pair_task(checkpoint)(random.Random(seed))
    prompt, steps = bold(task.question)
    rows = sum(range(prompt + 1, prompt + steps + 1))
    assert task.answer == (prompt * (prompt + 1) // 2 + rows) * heads
    assert str(task.answer) in task.solution


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("checkpoint", [FROZEN, DEEP, TINY])
def test_next_position_is_what_was_kept_and_what_came_after(checkpoint, seed):
    task = kv_cache.operation_task(checkpoint)(random.Random(seed))
    filled, keep, more = bold(task.question)
    assert keep < filled <= checkpoint.config.n_positions
    assert task.answer == keep + more <= checkpoint.config.n_positions
    refused = "which this decoder refuses" in task.solution
    assert refused == (task.answer == checkpoint.config.n_positions)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("checkpoint", [FROZEN, DEEP])
def test_query_is_what_can_be_thrown_away(checkpoint, seed):
    task = kv_cache.discard_task(checkpoint)(random.Random(seed))
    assert isinstance(task.answer, str)
    assert task.answer.startswith("the query of position")
    assert task.answer in task.choices
    assert len(set(task.choices)) == 3
    assert "the largest move is 0\n" in task.solution + "\n"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("checkpoint", [FROZEN, DEEP, TINY])
def test_one_token_is_returned_for_each_pass(checkpoint, seed):
    task = positions.returned_task(checkpoint)(random.Random(seed))
    rows, prompt = bold(task.question)
    assert task.answer == rows - prompt + 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("checkpoint", [FROZEN, DEEP, TINY])
def test_slid_key_keeps_the_position_it_was_made_at(checkpoint, seed):
    task = positions.slide_task(checkpoint)(random.Random(seed))
    rows, slot = bold(task.question)
    assert task.answer == min(slot + 1, rows - 1)


@pytest.mark.parametrize(
    "make",
    [
        phases.pair_task, kv_cache.operation_task, kv_cache.discard_task,
        positions.returned_task, positions.slide_task,
    ],
)  # fmt: skip
def test_new_numbers_come_and_the_same_draw_gives_the_same_task(make):
    tasks = [make(DEEP)(random.Random(seed)) for seed in SEEDS]
    assert len({task.question for task in tasks}) > 1
    assert make(DEEP)(random.Random(0)) == tasks[0]
    assert is_right(tasks[0], tasks[0].answer)
    assert not is_right(tasks[0], None)


# Phases ------------------------------------------------------------------------------------------


def phase_view(prompt: str, step: int = 0, **fields) -> tuple[phases.Plan, phases.View]:
    spec = RunSpec(prompt=tuple(prompt.split()), **fields)
    plan = phases.plan(FROZEN, spec)
    return plan, phases.view(FROZEN, spec, plan.split, step)


def test_step_0_stands_beside_the_first_decode_step():
    assert phase_view("<bos>")[1].step == 1
    assert phase_view("<bos>", 3)[1].step == 3
    assert phase_view("<bos>", 99)[1].step == 3


def test_work_text_has_the_numbers_of_the_formulas():
    # d = 4, m = 8, V = 8, L = 2, h d_h = 4. One row: 2 (4 x 16 + 2 x 32) + 32 = 288.
    # Each visible pair: 2 layers x 4 x (score and mix) = 16.
    _, view = phase_view("<bos> A B", 1)
    assert phases.work_text(view) == (
        f"Multiply-adds of the prefill of 3: {3 * 288 + 6 * 16}; of the decode step 1: "
        f"{288 + 4 * 16}; of the same step without a cache: 1312. "
        f"The first pass multiplies {3 * 16} more for pairs that the mask then hides."
    )
    assert 4 * 288 + 10 * 16 == 1312


def test_without_a_cache_the_other_way_is_a_decode_step():
    _, view = phase_view("<bos> A B", 1, cache=False)
    assert "of the full pass of 4: 1312; of the same step with a cache: 352" in phases.work_text(
        view
    )


def test_note_only_where_the_decode_step_is_not_the_runs():
    assert phase_view("<bos>")[0].note == ""
    assert phase_view("<bos> A B D")[0] == phases.Plan(
        Split((0, 2, 3, 5), 3, False), phase_view("<bos> A B D")[0].note
    )
    assert "first 3" in phase_view("<bos> A B D")[0].note
    assert "max_new_tokens" in phase_view("<bos>", max_new_tokens=1)[0].note


def test_legend_names_every_mark():
    assert phases.legend_html().count("<li>") == 4


def test_longer_prompt_is_offered_where_it_leaves_room():
    assert phases.longer_prompt(FROZEN) == "<bos> A B"
    assert phases.longer_prompt(TINY) is None


# Cache -------------------------------------------------------------------------------------------


def cache_view(checkpoint, prompt, step):
    spec = RunSpec(prompt=prompt)
    inputs = kv_cache.consumed(checkpoint, spec)
    return inputs, kv_cache.cache_view(checkpoint, spec, inputs, step)


def test_grids_hold_the_cache_and_frame_the_new_row():
    inputs, view = cache_view(FROZEN, ("<bos>",), 2)
    grids, note = kv_cache.cache_grids(view, inputs, range(2), range(2))
    assert [g.name for g in grids][:4] == ["K.0.0", "K.0.1", "V.0.0", "V.0.1"]
    assert note == ""
    values = np.asarray(grids[7].values)
    assert np.array_equal(values[:3], view.step.stored[1].values[0, 1])  # noqa: PD011
    assert np.isnan(values[3]).all()
    assert list(grids[0].marked) == [(2, 0), (2, 1)]


def test_grids_of_every_step_share_one_scale():
    limits = {cache_view(FROZEN, ("<bos>",), step)[1].limit for step in range(4)}
    assert len(limits) == 1


def test_prefill_frames_all_its_rows():
    inputs, view = cache_view(FROZEN, ("<bos>", "A", "B"), 0)
    grids, _ = kv_cache.cache_grids(view, inputs, range(1), range(1))
    assert sorted({row for row, _ in grids[0].marked}) == [0, 1, 2]


def test_long_cache_shows_a_window_and_says_so():
    long = random_checkpoint(ModelConfig(5, 31, 22, 2, 2, 7), 5)
    inputs, view = cache_view(long, ("t1",), 20)
    grids, note = kv_cache.cache_grids(view, inputs, range(1), range(1))
    assert np.asarray(grids[0].values).shape == (MOST_ROWS, 8)
    assert "positions 10 to 21 of 31" in note
    assert "the first 8 of 11 numbers" in note
    held = view.step.stored[0].keys[0, 0, 10:21, :8]
    assert np.array_equal(np.asarray(grids[0].values)[:11], held)


def test_history_text_counts_what_was_compared():
    assert "nothing to compare" in kv_cache.history_text(cache_view(FROZEN, ("<bos>",), 0)[1])
    # at step 3: 3 + 2 + 1 comparisons of 16 numbers
    assert "96 numbers so far, and every one" in kv_cache.history_text(
        cache_view(FROZEN, ("<bos>",), 3)[1]
    )


# Positions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", range(4))
def test_framed_rows_add_up(step):
    found = positions.position_run(FROZEN, RunSpec())
    token, table, total = positions.embedding_grids(FROZEN, found, step)[0]
    marked = sorted({row for row, _ in token.marked})
    assert marked == [step]
    rows = np.asarray(token.values)[marked] + np.asarray(table.values)[marked]
    assert np.array_equal(rows, np.asarray(total.values)[marked])
    assert np.array_equal(table.values, FROZEN.weights.wpe)
    assert np.isnan(np.asarray(token.values)[step + 1 :]).all()


def test_limit_is_named_only_when_it_is_reached():
    full = positions.position_run(FROZEN, RunSpec())
    assert "would need row 4" in positions.limit_text(FROZEN, full)
    short = positions.position_run(FROZEN, RunSpec(max_new_tokens=1))
    assert positions.limit_text(FROZEN, short).endswith(
        "The run stopped (max_new_tokens) with 3 rows unread."
    )


def test_notes_under_the_tokens_say_what_was_not_consumed():
    found = positions.position_run(FROZEN, RunSpec(prompt=("<bos>", "A")))
    assert positions.chip_notes(found) == [*(f"position {p}" for p in range(4)), "not consumed"]


@pytest.mark.parametrize(("tolerance", "verdicts"), [(None, [1, 0, 1]), (1.0, [1, 1, 1])])
def test_cards_judge_by_the_tolerance(tolerance, verdicts):
    spec = RunSpec(tolerance=tolerance)
    view = positions.overflow_view(FROZEN, spec, (0, 2, 3, 5, 1))
    assert [card.good for card in positions.overflow_cards(view)] == [bool(v) for v in verdicts]


def test_words_say_whether_the_token_gives_the_error_away():
    view = positions.overflow_view(FROZEN, RunSpec(), (0, 2, 3, 5, 1))
    assert "only the logits tell" in positions.slide_text(view)
    given_away = positions.overflow_view(FROZEN, RunSpec(), (0, 6, 6, 2))
    assert "Greedy selects another token" in positions.slide_text(given_away)


# Tables as shown ---------------------------------------------------------------------------------


def test_long_lists_are_cut_in_the_middle():
    assert joined((0, 1, 2)) == "0, 1, 2"
    assert joined(tuple(range(64))) == "0, 1, 2 … 63"
    assert joined(()) == ""


def test_shown_table_leaves_the_other_one_alone():
    numbers = {"n": pd.Series([1, 2], dtype=object), "e": pd.Series([None, 0.5], dtype=object)}
    table = pd.DataFrame({"p": [(0, 1), (2,)], **numbers})
    shown = readable(table, "p")
    assert shown["e"].tolist() == [None, 0.5]  # still nothing, not NaN
    assert shown["p"].tolist() == ["0, 1", "2"]
    assert shown["n"].dtype == np.int64
    assert table["p"].tolist() == [(0, 1), (2,)]


@pytest.mark.parametrize("rows", [1, 12, 13, 64])
def test_window_holds_the_current_row_and_never_sticks_out(rows):
    for current in range(rows):
        part = window(rows, 9, current)
        assert 0 <= part.first <= current < part.end <= rows
        assert part.end - part.first == min(rows, MOST_ROWS)
        assert ("positions" in part.note) == (rows > MOST_ROWS)
