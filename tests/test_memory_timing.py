"""Timing with a clock that is an argument."""

from __future__ import annotations

from itertools import count

import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.memory import timing
from tinydec.memory.shapes import SHAPES
from tinydec.memory.timing import StepTiming, time_steps
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step

TINY = random_checkpoint(ModelConfig(5, 3, 4, 1, 2, 7), 1)


def test_every_length_of_the_context_is_timed_by_the_clock() -> None:
    ticks = count()
    found = time_steps(TINY, 3, lambda: float(next(ticks)))
    assert [step.length for step in found] == [1, 2, 3]
    # The clock moves on by 1 at each look: every step takes 1.
    assert all(step.cached == step.full == (1.0, 1.0, 1.0) for step in found)
    assert next(ticks) == 3 * 3 * 3


def test_quartiles_are_those_of_the_samples() -> None:
    times = iter([0, 1, 2, 2, 4, 5, 5, 14, 20])  # steps of 1, 2, 9 and passes of 1, 1, 6
    one = random_checkpoint(ModelConfig(5, 1, 4, 1, 2, 7), 1)
    found = time_steps(one, 3, lambda: float(next(times)))
    assert found == (StepTiming(1, (1.5, 2.0, 5.5), (1.0, 1.0, 3.5)),)
    assert found[0].ratio == 0.5


def test_each_sample_sees_the_same_length(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    right = decode_step

    def looked_at(checkpoint, cache, ids, request):
        seen.append(cache.length)
        return right(checkpoint, cache, ids, request)

    monkeypatch.setattr(timing, "decode_step", looked_at)
    time_steps(TINY, 3, lambda: 0.0)
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("repeats", [2, 0, 3.0])
def test_too_few_repeats_are_refused(repeats) -> None:
    with pytest.raises(InputError, match="expected an integer >= 3"):
        time_steps(TINY, repeats, lambda: 0.0)


def test_published_shapes_have_the_published_number_of_parameters() -> None:
    # Biases everywhere and a tied head: 124 439 808 and 1 557 611 200 scalars.
    for name, parameters in (("GPT-2 small", 124_439_808), ("GPT-2 XL", 1_557_611_200)):
        s = SHAPES[name]
        config = ModelConfig(s.vocabulary, s.context or 0, s.width, s.layers, s.heads, s.mlp_width)
        assert config.parameter_count() == parameters
