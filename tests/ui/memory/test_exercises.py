"""Answers of the exercises, worked out again from their own words."""

from __future__ import annotations

import random
import re

import pytest

from tinydec.ui.exercise import is_right
from tinydec.ui.memory.exercises import draw_bytes, draw_fit, draw_work

SEEDS = range(40)


def whole(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


@pytest.mark.parametrize("seed", SEEDS)
def test_bytes_are_the_product_of_the_numbers_in_the_question(seed: int) -> None:
    task = draw_bytes(random.Random(seed))
    layers, heads, width, batch, tokens, bits = whole(task.question)
    answer = 2 * layers * heads * width * batch * tokens * bits // 8
    assert is_right(task, answer)
    assert not is_right(task, answer // 2)  # without the factor 2
    assert f"**{answer} bytes**" in task.solution


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_that_fit_are_whole_ones(seed: int) -> None:
    task = draw_fit(random.Random(seed))
    layers, heads, width, bits, tokens, gib = whole(task.question)
    one = 2 * layers * heads * width * tokens * bits // 8
    assert is_right(task, gib * 2**30 // one)
    assert f"**{gib * 2**30 // one}**" in task.solution


@pytest.mark.parametrize("seed", SEEDS)
def test_saved_scores_are_counted_pair_by_pair(seed: int) -> None:
    task = draw_work(random.Random(seed))
    heads, width, length = whole(task.question)
    every = sum(query + 1 for query in range(length))  # query i sees i + 1 keys
    assert is_right(task, (every - length) * heads * width)
    assert not is_right(task, (length * length - length) * heads * width)
