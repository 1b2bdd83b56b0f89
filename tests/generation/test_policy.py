import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example
from hypothesis import given as given_cases
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.generation.policy_checks import (
    LAST,
    STATE,
    check_all,
    check_draws,
    check_tiles,
    choose,
    given,
)
from tests.generation.policy_strategies import UNIFORMS, cases, policies, rows
from tinydec.generation.policy import choose_rows, distribution, replay, select, select_rows
from tinydec.generation.stream import Draw, UniformStream
from tinydec.runspec import Policy

GREEDY = Policy()
SAMPLE = Policy("sample")
#: Probabilities 0.4, 0.1, 0.3, 0.2 at temperature 1.
TENTHS = np.log([0.4, 0.1, 0.3, 0.2])


# Computed by hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (SAMPLE, [0.4, 0.1, 0.3, 0.2]),
        # Temperature 1/2 squares: 16, 1, 9, 4 of 30.
        (Policy("sample", 0.5), [16 / 30, 1 / 30, 9 / 30, 4 / 30]),
        # The two highest: 4 and 3 of 7.
        (Policy("sample", top_k=2), [4 / 7, 0, 3 / 7, 0]),
        # 0.4 + 0.3 = 0.7 misses 0.75, with 0.2 it is reached: 4, 3 and 2 of 9.
        (Policy("sample", top_p=0.75), [4 / 9, 0, 3 / 9, 2 / 9]),
        # 0.4 alone reaches 0.35.
        (Policy("sample", top_p=0.35), [1, 0, 0, 0]),
        # Top-3 first: 4/9, 3/9, 2/9. Then 4/9 + 3/9 = 0.78 reaches 0.75; top-p on the
        # unfiltered row would have needed a third token.
        (Policy("sample", 1.0, 3, 0.75), [4 / 7, 0, 3 / 7, 0]),
        # Squares, top-3 of them: 16, 9, 4 of 29. 16/29 = 0.55 misses 0.6, 25/29 reaches it.
        (Policy("sample", 0.5, 3, 0.6), [16 / 25, 0, 9 / 25, 0]),
        (GREEDY, [1, 0, 0, 0]),
    ],
)
def test_probabilities_equal_those_computed_by_hand(policy: Policy, expected: list[float]) -> None:
    found = given(choose, TENTHS, policy, 0.0)
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-14)
    assert found.kept == tuple(i for i, p in enumerate(expected) if p)


@pytest.mark.parametrize(
    ("uniform", "token", "interval"),
    [
        (0.0, 0, (0.0, 0.25)),
        (0.2499, 0, (0.0, 0.25)),
        (0.25, 2, (0.25, 0.5)),  # the end of an interval belongs to the next one
        (0.5, 3, (0.5, 0.75)),
        (0.75, 4, (0.75, 1.0)),
        (LAST, 4, (0.75, 1.0)),
    ],
)
def test_token_ids_share_the_unit_interval_in_order(
    uniform: float, token: int, interval: tuple[float, float]
) -> None:
    # Four equal tokens are left by top-4: exact quarters, and token 1 has none of them.
    row = np.array([5.0, -2.0, 5.0, 5.0, 5.0])
    found = given(choose, row, Policy("sample", top_k=4), uniform)
    assert (found.token_id, found.interval) == (token, interval)


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (GREEDY, (1,)),
        (Policy("sample", top_k=1), (1,)),
        (Policy("sample", top_k=2), (1, 2)),
        (Policy("sample", top_k=3), (1, 2, 4)),
        (Policy("sample", top_k=4), (0, 1, 2, 4)),
        (Policy("sample", top_p=0.2), (1,)),
        (Policy("sample", top_p=0.5), (1, 2)),
    ],
)
def test_ties_go_to_the_lowest_id(policy: Policy, kept: tuple[int, ...]) -> None:
    # Three tokens share 0.84 of the probability, two share the rest.
    assert given(choose, np.array([1.0, 3.0, 3.0, 1.0, 3.0]), policy, 0.0).kept == kept


def test_top_k_keeps_k_tokens_even_when_a_probability_underflows() -> None:
    row = np.array([0.0, -1e9, -2e9, -1e9])
    found = given(choose, row, Policy("sample", top_k=3), LAST)
    assert found.kept == (0, 1, 3)
    assert found.probabilities.tolist() == [1, 0, 0, 0]
    assert (found.token_id, found.interval) == (0, (0, 1))


def test_a_token_of_probability_zero_is_never_selected_even_where_rounding_leaves_a_gap() -> None:
    gaps = 0
    for seed in range(60):
        row = np.append(np.random.default_rng(seed).normal(size=9), -1e9)
        found = given(choose, row, SAMPLE, LAST)
        assert found.kept[-1] == 9
        assert found.token_id == 8
        gaps += float(np.cumsum(found.probabilities)[-2]) < 1
    assert gaps  # the plain running sum ended below 1 at least once


def test_a_running_sum_above_one_ends_the_intervals_at_one() -> None:
    above = 0
    for seed in range(200):
        row = np.append(np.random.default_rng(seed).normal(size=9), -40.0)
        check_tiles(choose, row, SAMPLE)
        above += float(np.cumsum(given(choose, row, SAMPLE, LAST).probabilities)[-2]) > 1
    assert above  # the plain running sum went beyond 1 at least once


def test_top_p_never_brings_back_what_top_k_left_out() -> None:
    short = 0
    for seed in range(200):
        row = np.random.default_rng(seed).normal(size=9)
        found = given(choose, row, Policy("sample", 1.0, 5, LAST), 0.5)
        assert len(found.kept) <= 5
        top_k = given(choose, row, Policy("sample", top_k=5), 0.5).probabilities
        short += math.fsum(top_k) < LAST
    assert short  # all five together missed p by rounding at least once


def test_top_p_of_one_keeps_every_token() -> None:
    row = np.array([-1e9, 1.0, 1.0])
    assert given(choose, row, Policy("sample", top_p=1), 0.5).kept == (0, 1, 2)
    assert given(choose, row, Policy("sample", top_p=LAST), 0.5).kept == (1, 2)


def test_every_stage_equals_the_one_computed_by_hand() -> None:
    # Twice the logits at temperature 2, so 4, 1, 3, 2 of 10; top-3 leaves 9, top-p leaves 7.
    found = distribution(2 * TENTHS[np.newaxis, :], Policy("sample", 2.0, 3, 0.75))
    stages = {
        "scaled": np.log([1, 1 / 4, 3 / 4, 2 / 4]),
        "softmax": np.array([4, 1, 3, 2]) / 10,
        "top_k": np.array([4, 0, 3, 2]) / 9,
        "probabilities": np.array([4, 0, 3, 0]) / 7,
        "cdf": np.array([4, 4, 7, 7]) / 7,
    }
    for name, expected in stages.items():
        np.testing.assert_allclose(getattr(found, name)[0], expected, rtol=1e-13, err_msg=name)
    assert found.kept.tolist() == [[True, False, True, False]]


def test_greedy_shows_the_softmax_at_temperature_one() -> None:
    found = distribution(TENTHS[np.newaxis, :], Policy("greedy", 0.5, 2, 0.1))
    np.testing.assert_allclose(found.softmax[0], [0.4, 0.1, 0.3, 0.2], rtol=1e-14)
    assert found.probabilities.tolist() == [[1, 0, 0, 0]]


def test_eight_tokens_of_a_tenth_reach_eight_tenths() -> None:
    assert sum([0.1] * 8) < 0.8  # added up plainly they do not
    found = given(choose, np.zeros(10), Policy("sample", top_p=0.8), 0.0)
    assert found.kept == tuple(range(8))


def test_a_tiny_temperature_leaves_the_ties_of_the_highest_logit() -> None:
    found = given(choose, np.array([1.0, 2.0, 2.0]), Policy("sample", 1e-308), 0.6)
    assert found.probabilities.tolist() == [0, 0.5, 0.5]


def test_a_huge_temperature_makes_all_tokens_equally_likely() -> None:
    found = given(choose, np.array([-1e30, 0.0, 5.0, 1e30]), Policy("sample", 1e308), 0.6)
    assert found.probabilities.tolist() == [0.25] * 4


# Properties ---------------------------------------------------------------------------------------


@given_cases(cases(), UNIFORMS)
@example((np.array([0.0, 0.0]), Policy("sample", 1.0, 2, 0.5)), 0.5)
@example((np.array([-1e30, 1e30], "float32"), Policy("sample", 5e-324)), 0.0)
def test_every_rule_holds(case: tuple[NDArray, Policy], uniform: float) -> None:
    check_all(choose, *case, uniform)


@given_cases(cases(), st.integers(0, 2**70))
def test_sampling_draws_one_uniform_of_the_seeded_pcg64_and_greedy_none(
    case: tuple[NDArray, Policy], seed: int
) -> None:
    check_draws(select, *case, seed)


@given_cases(cases(), st.integers(0, 99))
def test_replay_gives_the_same_record(case: tuple[NDArray, Policy], seed: int) -> None:
    found = select(*case, UniformStream(seed).state)
    again = replay(found)
    assert again is not found
    assert again.same_as(found)
    assert found.same_as(again)


def test_same_as_tells_every_field_and_every_bit_apart() -> None:
    found = select(np.array([0.0, 1.0]), SAMPLE, UniformStream(3).state)
    other = UniformStream(4).state
    changes: dict[str, Any] = {
        "policy": GREEDY,
        "logits": np.array([-0.0, 1.0]),
        "probabilities": found.probabilities.astype(np.float32),
        "kept": (0,),
        "token_id": 1 - found.token_id,
        "uniform": 0.25,
        "interval": (0.0, 1.0),
        "state_before": other,
        "state_after": other,
    }
    assert set(changes) == set(found.__dataclass_fields__)
    assert found.same_as(replace(found))
    for name, value in changes.items():
        assert not found.same_as(replace(found, **{name: value})), name


@given_cases(st.data(), rows(max_size=7), st.integers(1, 11), st.booleans())
def test_rows_together_equal_rows_alone_bit_for_bit(
    data: st.DataObject, row: NDArray, count: int, fortran: bool
) -> None:
    rng = np.random.default_rng(count)
    table = np.array([rng.permutation(row) for _ in range(count)])
    table = np.asfortranarray(table) if fortran else table
    few = data.draw(st.lists(policies(len(row)), min_size=1, max_size=3))
    mixed = [data.draw(st.sampled_from(few)) for _ in range(count)]
    states = [UniformStream(seed).state for seed in range(count)]
    together = select_rows(table, mixed, states)
    for i, found in enumerate(together):
        assert found.same_as(select(table[i], mixed[i], states[i]))


def test_wide_rows_do_not_depend_on_their_layout_or_neighbours() -> None:
    # 501 values: NumPy's pairwise sums differ from sums taken column by column.
    table = np.asfortranarray(np.random.default_rng(5).normal(size=(7, 501)))
    alone = [given(choose, row.copy(), SAMPLE, 0.5) for row in table]
    together = choose_rows(table, SAMPLE, [Draw(0.5, STATE, STATE)] * 7)
    assert all(one.same_as(other) for one, other in zip(alone, together, strict=True))
    by_column = np.exp(table - table.max(axis=1, keepdims=True))
    assert (by_column.sum(axis=1) != np.ascontiguousarray(by_column).sum(axis=1)).any()


def chi_square(counts: NDArray, probabilities: NDArray) -> float:
    expected = counts.sum() * probabilities
    return float(((counts - expected) ** 2 / expected).sum())


def test_frequencies_over_many_seeds_match_the_probabilities() -> None:
    policy = Policy("sample", 0.7, 5, 0.97)
    row = np.array([0.3, 1.1, -0.4, 0.9, 0.2, -3.0, 0.8])
    count = 20000
    found = select_rows(
        np.tile(row, (count, 1)), [policy] * count, [UniformStream(i).state for i in range(count)]
    )
    kept = list(found[0].kept)
    assert len(kept) == 5
    counts = np.bincount([s.token_id for s in found], minlength=len(row))
    assert counts.sum() == counts[kept].sum()
    # 4 degrees of freedom: 18.47 is exceeded once in 1000 times.
    assert chi_square(counts[kept], found[0].probabilities[kept]) < 18.47
    wrong = given(choose, row, replace(policy, temperature=0.8), 0.5).probabilities[kept]
    assert chi_square(counts[kept], wrong) > 18.47  # so near a miss is told apart


@given_cases(cases())
def test_records_are_read_only_and_apart_from_the_given_row(case: tuple[NDArray, Policy]) -> None:
    row, policy = case
    found = given(choose, row, policy, 0.5)
    kept_logits, kept_dtype = found.logits.copy(), row.dtype
    row[:] = 7
    assert found.logits.tobytes() == kept_logits.tobytes()
    assert found.logits.dtype == kept_dtype
    for array in (found.logits, found.probabilities, *distribution(row[np.newaxis], policy)):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
