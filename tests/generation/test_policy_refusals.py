import math

import numpy as np
import pytest

from tests.generation.policy_checks import STATE, choose, given
from tinydec.errors import InputError
from tinydec.generation.policy import choose_rows, distribution, select, select_rows
from tinydec.generation.stream import Draw
from tinydec.runspec import Policy

GREEDY = Policy()
SAMPLE = Policy("sample")
TENTHS = np.log([0.4, 0.1, 0.3, 0.2])


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("policy", [GREEDY, SAMPLE])
def test_logits_that_are_not_finite_are_refused(wrong: float, dtype: str, policy: Policy) -> None:
    with pytest.raises(InputError, match=r"^logits: expected finite values, found NaN or inf.*$"):
        select(np.array([1.0, wrong], dtype), policy, STATE)


@pytest.mark.parametrize("shape", [(1, 0), (3, 0), (1, 2, 3)])
def test_logits_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"^logits: expected axes \(R, V\), found shape .*$"):
        distribution(np.zeros(shape), SAMPLE)


def test_no_rows_give_no_selections() -> None:
    assert select_rows(np.zeros((0, 3)), [], []) == []
    assert choose_rows(np.zeros((0, 3)), SAMPLE, []) == []


def test_top_k_above_the_vocabulary_is_refused() -> None:
    assert given(choose, TENTHS, Policy("sample", top_k=4), 0.5).kept == (0, 1, 2, 3)
    with pytest.raises(InputError, match=r"^top_k: expected 1 to 4 .*, found 5$"):
        select(TENTHS, Policy("sample", top_k=5), STATE)


def test_numbers_of_draws_policies_and_states_must_fit_the_rows() -> None:
    table = np.zeros((3, 5))
    with pytest.raises(InputError, match=r"^policies: expected 3, one a row, found 2$"):
        select_rows(table, [SAMPLE] * 2, [STATE] * 3)
    with pytest.raises(InputError, match=r"^states: expected 3, one a row, found 4$"):
        select_rows(table, [SAMPLE] * 3, [STATE] * 4)
    with pytest.raises(InputError, match=r"^draws: expected 3, one for each row, found 2$"):
        choose_rows(table, GREEDY, [STATE] * 2)


def test_draws_that_do_not_fit_the_policy_are_refused() -> None:
    with pytest.raises(InputError, match=r"^draws: expected one uniform number .*, found none$"):
        choose(TENTHS, SAMPLE, STATE)
    with pytest.raises(InputError, match=r"^draws: expected none under greedy, found a uniform"):
        choose(TENTHS, GREEDY, Draw(0.5, STATE, STATE))
    for uniform in (1.0, -0.1, math.nan):
        with pytest.raises(InputError, match=r"^draws: expected a number from 0 to below 1, found"):
            choose(TENTHS, SAMPLE, Draw(uniform, STATE, STATE))
