"""The checks of policies can fail: each broken rule is detected."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.generation.policy_checks import (
    LAST,
    check_all,
    check_draws,
    check_kept,
    check_probabilities,
    check_tiles,
    check_token,
)
from tests.generation.reference_policy import CONTRACT, Chooser, Rules, reference_chooser
from tinydec.generation.policy import Selection, choose_rows, select
from tinydec.generation.stream import Draw, GeneratorState, UniformStream
from tinydec.runspec import Policy

SAMPLE = Policy("sample")


def bank() -> list[tuple[NDArray, Policy, float]]:
    """Rows with ties and near ties under many policies, the same on every run."""
    rng = np.random.default_rng(11)
    found = []
    for number in range(60):
        row = rng.integers(-2, 3, size=7) + rng.choice([0, 1], size=7) * rng.normal(size=7)
        if number % 5 == 0:
            row[-1] = -1e9
        policy = Policy(
            "greedy" if number % 6 == 0 else "sample",
            (0.7, 1.0, 1.9)[number % 3],
            (None, 3, 5)[number % 4 % 3],
            (None, 0.6, 0.85)[number % 7 % 3],
        )
        found.append((row, policy, float(rng.random())))
    halves = np.zeros(4)  # exact quarters: ends of intervals and of top-p are exact
    found += [(halves, SAMPLE, 0.5), (halves, Policy("sample", top_p=0.5), 0.25)]
    return found


def broken(rule: str) -> Rules:
    return replace(CONTRACT, **{rule: not getattr(CONTRACT, rule)})


def check_three_numbers(chooser: Chooser, row: NDArray, policy: Policy, uniform: float) -> None:
    for number in (uniform, 0.0, LAST):
        check_token(chooser, row, policy, number)


def detects(check: Callable, rules: Rules) -> bool:
    """Whether a check fails somewhere in the bank for a policy that follows these rules."""
    chooser = reference_chooser(rules)
    for row, policy, uniform in bank():
        arguments = (uniform,) if check in (check_all, check_three_numbers) else ()
        try:
            check(chooser, row, policy, *arguments)
        except AssertionError:
            return True
    return False


def test_the_reference_itself_passes_every_check() -> None:
    assert not detects(check_all, CONTRACT)


@pytest.mark.parametrize("rule", Rules.__dataclass_fields__)
def test_each_broken_rule_is_detected(rule: str) -> None:
    assert detects(check_all, broken(rule))


@pytest.mark.parametrize(
    ("check", "rule"),
    [
        (check_probabilities, "multiply_by_temperature"),
        (check_probabilities, "renormalise"),
        (check_probabilities, "top_p_first"),
        (check_kept, "ties_by_highest_id"),
        (check_kept, "keep_all_ties"),
        (check_kept, "stop_before_p"),
        (check_kept, "go_beyond_p"),
        (check_tiles, "close_the_end"),
        (check_tiles, "invert_by_rank"),
        (check_three_numbers, "close_at_last_kept"),
        (check_three_numbers, "right_closed"),
        (check_three_numbers, "invert_by_rank"),
    ],
)
def test_the_check_that_names_a_rule_detects_it(check: Callable, rule: str) -> None:
    assert detects(check, broken(rule))


def draws_twice(row: NDArray, policy: Policy, state: GeneratorState) -> Selection:
    stream = UniformStream.resume(state)
    first = stream.draw()
    return choose_rows(row[np.newaxis], policy, [Draw(first.uniform, state, stream.draw()[2])])[0]


def draws_after_the_first(row: NDArray, policy: Policy, state: GeneratorState) -> Selection:
    stream = UniformStream.resume(state)
    stream.draw()
    return choose_rows(row[np.newaxis], policy, [stream.draw()])[0]


def draws_under_greedy(row: NDArray, policy: Policy, state: GeneratorState) -> Selection:
    after = UniformStream.resume(state).draw().state_after
    return replace(select(row, policy, state), state_after=after)


@pytest.mark.parametrize(
    ("selector", "policy"),
    [
        (draws_twice, SAMPLE),
        (draws_after_the_first, SAMPLE),
        (draws_under_greedy, Policy()),
    ],
)
def test_a_wrong_number_of_draws_is_detected(selector, policy: Policy) -> None:
    row = np.array([0.5, 1.0, 0.0])
    check_draws(select, row, policy, 41)
    with pytest.raises(AssertionError):
        check_draws(selector, row, policy, 41)
