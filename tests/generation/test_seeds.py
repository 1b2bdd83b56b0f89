"""What many seeds select, held against one selection at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.generation.policy_strategies import UNIFORMS, cases
from tests.refusals import refusal
from tinydec.generation.policy import choose_rows
from tinydec.generation.seeds import first_uniforms, token_counts, tokens_drawn
from tinydec.generation.stream import Draw, UniformStream
from tinydec.runspec import GREEDY, SAMPLE, Policy

STATE = UniformStream(0).state


@pytest.mark.parametrize("first", [0, 41, 2**53])
def test_first_uniforms_are_those_of_numpy(first: int) -> None:
    expected = [np.random.default_rng(first + n).random() for n in range(7)]
    assert first_uniforms(7, first).tolist() == expected


def test_first_uniforms_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        first_uniforms(2)[0] = 0.5


@pytest.mark.parametrize(("count", "first"), [(0, 0), (-1, 0), (2.0, 0), (3, -1)])
def test_wrong_counts_and_seeds_are_refused(count: int, first: int) -> None:
    refusal(first_uniforms, count, first)


@given(case=cases(), uniforms=st.lists(UNIFORMS, min_size=1, max_size=9))
def test_tokens_are_those_of_single_selections(
    case: tuple[NDArray, Policy], uniforms: list[float]
) -> None:
    row, policy = case
    draws = [Draw(u, STATE, STATE) if policy.samples else STATE for u in uniforms]
    single = [choose_rows(row[None], policy, [draw])[0].token_id for draw in draws]
    assert tokens_drawn(row, policy, np.array(uniforms)).tolist() == single


def test_number_on_an_edge_belongs_to_the_interval_above() -> None:
    row = np.log(np.array([1.0, 1.0, 2.0]))  # intervals [0, 1/4), [1/4, 1/2), [1/2, 1)
    edges = np.array([0.0, np.nextafter(0.25, 0), 0.25, 0.5, 1 - 2**-53])
    assert tokens_drawn(row, Policy(SAMPLE), edges).tolist() == [0, 0, 1, 2, 2]


def test_counts_have_a_place_for_every_token() -> None:
    row = np.array([5.0, 1.0, 5.0, 0.0, 0.0])
    uniforms = np.array([0.1, 0.2, 0.9])
    assert token_counts(row, Policy(SAMPLE, 1.0, 2), uniforms).tolist() == [2, 0, 1, 0, 0]
    assert token_counts(row, Policy(GREEDY), uniforms).tolist() == [3, 0, 0, 0, 0]


def test_counts_of_many_seeds_lie_around_their_expectation() -> None:
    row = np.log(np.array([0.5, 0.3, 0.2]))
    p = np.array([0.5, 0.3, 0.2])
    counts = token_counts(row, Policy(SAMPLE), first_uniforms(1000))
    sigmas = np.abs(counts - 1000 * p) / np.sqrt(1000 * p * (1 - p))
    assert sigmas.max() < 3
    wrong = np.abs(counts - 1000 * p[::-1]) / np.sqrt(1000 * p * (1 - p))
    assert wrong.max() > 3
