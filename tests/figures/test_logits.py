"""Bars of logits: the numbers in the figure are the core's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.figures.logits import (
    MOST_STEPS,
    MOST_TOKENS,
    label,
    shown_ids,
    shown_steps,
    steps_figure,
    turn_figure,
)
from tinydec.figures.palette import FULL, KEY, QUERY
from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec

TOKENS = ("<bos>", "<eos>", "A", "B", "C", "D", "X", "Y")


@pytest.fixture(scope="module")
def trace() -> GenerationTrace:
    return generate(load_checkpoint(), RunSpec())


def test_turn_shows_the_row_and_its_probabilities(trace: GenerationTrace) -> None:
    selection = trace.steps[2].selection
    figure = turn_figure(TOKENS, selection.logits, selection.probabilities, selection.token_id)
    left, right = figure.data
    assert list(left.x) == selection.logits.tolist()
    assert list(right.x) == selection.probabilities.tolist()
    assert left.customdata[5][1] == repr(float(selection.logits[5]))


def test_selected_token_is_told_by_colour_and_by_a_sign(trace: GenerationTrace) -> None:
    selection = trace.steps[2].selection
    figure = turn_figure(TOKENS, selection.logits, selection.probabilities, 5)
    colours = list(figure.data[0].marker.color)
    assert [i for i, colour in enumerate(colours) if colour == QUERY.mark] == [5]
    assert [i for i, text in enumerate(figure.layout.yaxis.ticktext) if "▶" in text] == [5]
    other = turn_figure(TOKENS, selection.logits, selection.probabilities, 2)
    assert list(other.data[0].marker.color) != colours


def test_every_step_is_shown_and_the_current_one_stands_out(trace: GenerationTrace) -> None:
    rows = [step.selection.logits for step in trace.steps]
    figure = steps_figure(TOKENS, rows, trace.returned_ids, 2)
    panels = [t for t in figure.data if t.type == "bar"]
    assert [list(p.x) for p in panels] == [row.tolist() for row in rows]
    assert [KEY.mark in p.marker.color for p in panels] == [False, False, True, False]
    assert [FULL.mark in p.marker.color for p in panels] == [True, True, False, True]
    assert [a.text for a in figure.layout.annotations] == [
        "step 0", "step 1", "<b>▼ step 2</b>", "step 3",
    ]  # fmt: skip
    diamonds = [t for t in figure.data if t.type == "scatter"]
    assert [d.y[0] for d in diamonds] == list(trace.returned_ids)
    assert [d.x[0] for d in diamonds] == [
        float(row[i]) for row, i in zip(rows, trace.returned_ids, strict=True)
    ]


def test_steps_share_one_scale(trace: GenerationTrace) -> None:
    rows = [step.selection.logits for step in trace.steps]
    figure = steps_figure(TOKENS, rows, trace.returned_ids, 0)
    ranges = {tuple(figure.layout[f"xaxis{n}"].range) for n in ("", 2, 3, 4)}
    assert len(ranges) == 1
    low, high = ranges.pop()
    assert low < min(row.min() for row in rows)
    assert high > max(row.max() for row in rows)


def test_row_of_zeros_has_a_scale() -> None:
    figure = steps_figure(TOKENS, [np.zeros(8)], [0], 0)
    assert tuple(figure.layout.xaxis.range) == (-1, 1)


@given(
    rows=st.lists(st.lists(st.floats(-9, 9), min_size=29, max_size=29), min_size=1, max_size=3),
    always=st.lists(st.integers(0, 28), max_size=3, unique=True),
)
def test_large_vocabulary_is_cut_to_its_highest_tokens(
    rows: list[list[float]], always: list[int]
) -> None:
    arrays = [np.array(row) for row in rows]
    ids = shown_ids(arrays, always)
    assert ids == sorted(set(ids))
    assert len(ids) == MOST_TOKENS
    assert set(always) <= set(ids)
    highest = np.max(arrays, axis=0)
    rest = [i for i in ids if i not in always]
    left_out = [i for i in range(29) if i not in ids]
    assert min(highest[rest]) >= max(highest[left_out])


def test_small_vocabulary_is_shown_whole() -> None:
    assert shown_ids([np.arange(float(MOST_TOKENS))]) == list(range(MOST_TOKENS))
    assert len(shown_ids([np.arange(MOST_TOKENS + 1.0)])) == MOST_TOKENS


@pytest.mark.parametrize("count", [1, 2, MOST_STEPS, MOST_STEPS + 1, 64])
def test_window_of_steps_holds_the_current_one(count: int) -> None:
    for current in range(count):
        steps = shown_steps(count, current)
        assert current in steps
        assert len(steps) == min(count, MOST_STEPS)
        assert steps[0] >= 0
        assert steps[-1] < count


def test_labels_keep_angle_brackets_and_stay_short() -> None:
    assert label("<bos>") == "&lt;bos&gt;"
    assert label("a&b", selected=True) == "▶ a&amp;b"
    assert label("abcdefghijkl") == "abcdefghi…"
