"""The position seam: what it answers where nothing intervenes, and where a fault does.

The other seams are tried through prefill and decode steps, see test_guards.py.
"""

import pytest

from tinydec.model.guards import GUARDS, PositionError
from tinydec.model.seams import CORRECT, Seams, position_row

RESET = Seams(position=lambda _: 0)


def test_correct_position_is_the_number_of_consumed_inputs() -> None:
    assert [position_row(CORRECT, n, 5, GUARDS) for n in range(5)] == [0, 1, 2, 3, 4]


def test_a_seam_that_answers_right_passes_the_guard() -> None:
    assert position_row(Seams(position=lambda consumed: consumed), 3, 5, GUARDS) == 3


def test_a_reset_position_acts_without_its_guard_alone() -> None:
    assert position_row(RESET, 3, 5, GUARDS - {"position"}) == 0
    with pytest.raises(PositionError, match="expected 3, found 0"):
        position_row(RESET, 3, 5, GUARDS - {"layer"})


def test_the_first_position_cannot_be_told_from_a_reset_one() -> None:
    assert position_row(RESET, 0, 5, GUARDS) == 0


@pytest.mark.parametrize("row", [-1, 5])
def test_a_row_that_does_not_exist_is_refused_without_guards(row: int) -> None:
    with pytest.raises(PositionError, match=f"expected a row from 0 to 4, found {row}"):
        position_row(Seams(position=lambda _: row), 3, 5, frozenset())
