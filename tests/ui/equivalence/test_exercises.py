"""Answers of the exercises, worked out again from their own words."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest

from tinydec.ui.equivalence.exercises import draw_act, draw_error
from tinydec.ui.exercise import is_right

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_largest_error_follows_from_the_rows_in_the_question(seed: int) -> None:
    task = draw_error(random.Random(seed))
    full, cached = (
        [Decimal(number.replace("−", "-")) for number in row.split()]
        for row in re.findall("`(.*?)`", task.question)
    )
    answer = max(abs(a - b) for a, b in zip(full, cached, strict=True))
    assert is_right(task, float(answer))
    assert not is_right(task, float(answer) + 0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reset_hides_in_the_prefix_of_one_token_alone(seed: int) -> None:
    task = draw_act(random.Random(seed))
    assert [choice for choice in task.choices if len(choice.split()) == 1] == [task.answer]
    assert len(set(task.choices)) == 3
