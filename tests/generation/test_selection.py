"""Selections kept as columns are those made one by one."""

import numpy as np
import pytest

from tinydec.generation.policy import choose_rows, select_columns
from tinydec.generation.stream import UniformStream
from tinydec.runspec import Policy

TABLE = np.random.default_rng(3).normal(size=(5, 7))


@pytest.mark.parametrize("policy", [Policy(), Policy("sample", 1.3, 4, 0.9)])
def test_rows_of_columns_are_the_rows_made_one_by_one(policy: Policy) -> None:
    streams = [UniformStream(seed) for seed in range(5)]
    draws = [stream.draw() if policy.samples else stream.state for stream in streams]
    columns = select_columns(TABLE, policy, draws)
    assert len(columns) == 5
    assert columns.token_ids == [selection.token_id for selection in columns]
    for number, draw in enumerate(draws):
        [alone] = choose_rows(TABLE[number : number + 1], policy, [draw])
        assert columns[number].same_as(alone)
        assert columns[number] is columns[number - 5]
    assert [s.token_id for s in columns[1:3]] == columns.token_ids[1:3]
    with pytest.raises(IndexError):
        columns[5]


def test_columns_do_not_follow_what_the_caller_changes_later() -> None:
    table = TABLE.copy()
    draws = [UniformStream(seed).draw() for seed in range(5)]
    columns = select_columns(table, Policy("sample"), draws)
    first = draws[0]
    table[:] = 0
    draws.clear()
    assert np.array_equal(columns[0].logits, TABLE[0])
    assert columns[0].uniform == first.uniform
