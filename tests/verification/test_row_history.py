"""Written rows keep their bits, and one changed bit is found where it is."""

from dataclasses import replace

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.verification.cached_run import run_cached
from tinydec.verification.row_history import row_histories, same_bytes

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7, "float32")
STEPS = run_cached(CHECKPOINT, np.array([[4, 0, 12, 7, 9], [1, 1, 2, 3, 5]]), 2)


def floats(*values: float):
    return np.array(values, np.float32)


def changed(steps, row=0):
    return [
        (h.layer, h.tensor, h.position, h.changed_steps)
        for h in row_histories(steps, row)
        if not h.unchanged
    ]


def tampered(step, layer, tensor, index):
    """Move one stored number of one step's copy by one unit in the last place."""
    stored = list(STEPS[step].stored)
    array = getattr(stored[layer], tensor).copy()
    array[index] = np.nextafter(array[index], np.float32(np.inf))
    stored[layer] = replace(stored[layer], **{tensor: array})
    return (*STEPS[:step], replace(STEPS[step], stored=tuple(stored)), *STEPS[step + 1 :])


def test_every_row_is_followed_from_the_step_that_wrote_it():
    histories = row_histories(STEPS)
    assert len(histories) == 3 * 2 * 5  # layers, K and V, positions
    assert {h.scalars for h in histories} == {3 * 5}
    of_one = [h for h in histories if (h.layer, h.tensor) == (1, "V")]
    assert [h.position for h in of_one] == [0, 1, 2, 3, 4]
    assert [h.written_step for h in of_one] == [0, 0, 1, 2, 3]  # two came with the prefill
    assert [h.compared_steps for h in of_one] == [3, 3, 2, 1, 0]


def test_correct_run_changes_no_row():
    assert changed(STEPS) == changed(STEPS, row=1) == []


def test_one_bit_is_found_in_its_layer_row_and_step():
    # axes (B, h, t, d_h): sequence 0, head 2, position 1, number 4
    assert changed(tampered(2, 1, "keys", (0, 2, 1, 4))) == [(1, "K", 1, (2,))]
    assert changed(tampered(3, 2, "values", (0, 0, 3, 0))) == [(2, "V", 3, (3,))]


def test_change_in_another_sequence_is_not_blamed_on_this_one():
    steps = tampered(2, 1, "keys", (1, 2, 1, 4))
    assert changed(steps, row=0) == []
    assert changed(steps, row=1) == [(1, "K", 1, (2,))]


def test_row_that_the_step_itself_wrote_is_its_first_copy():
    # The tampered copy is the first: every later one differs from it.
    assert changed(tampered(1, 0, "keys", (0, 0, 2, 0))) == [(0, "K", 2, (2, 3))]


def test_no_steps_have_no_rows():
    assert row_histories(()) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (floats(1, 2), floats(1, 2), True),
        (floats(0.0), floats(-0.0), False),
        (floats(np.nan), floats(np.nan), True),
        (floats(1), np.ones(1), False),
        (np.zeros((1, 2)), np.zeros((2, 1)), False),
    ],
)
def test_bits_decide_not_values(one, other, same):
    assert same_bytes(one, other) is same
