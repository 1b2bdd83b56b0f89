"""Answers of the exercise, worked out again from its own words."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest

from tinydec.ui.evidence.exercises import ACCEPTED, REFUSED, draw_replay


@pytest.mark.parametrize("seed", range(60))
def test_replay_accepts_within_the_tolerance_relative_above_one(seed: int) -> None:
    task = draw_replay(random.Random(seed))
    found, expected = (Decimal(n) for n in re.findall("`(.*?)`", task.question))
    allowed = Decimal("1e-5") * max(Decimal(1), abs(expected))
    assert task.answer == (ACCEPTED if abs(found - expected) <= allowed else REFUSED)


def test_both_answers_are_drawn_on_both_sides_of_one() -> None:
    seen = set()
    for seed in range(60):
        task = draw_replay(random.Random(seed))
        here = float(re.findall("`(.*?)`", task.question)[1])
        seen.add((task.answer, abs(here) > 1))
    assert len(seen) == 4
