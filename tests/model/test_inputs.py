"""Token ids that the cached path refuses before anything changes, and those it takes.

What the full forward refuses stands in test_full.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tests.rows import REQUEST, run_cached
from tinydec.errors import InputError
from tinydec.model.cache import KVCache
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.inputs import integer_id
from tinydec.model.prefill import prefill

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)


def filled() -> KVCache:
    """A cache of two sequences that have consumed three tokens each."""
    return run_cached(CHECKPOINT, [[3, 1, 4], [2, 7, 1]], (2, 0))[0]


def refused(consume: Callable, ids: Any) -> None:
    cache = filled()
    before = [(layer.length, layer.keys.tobytes()) for layer in cache.layers], cache.consumed[:]
    with pytest.raises(InputError, match=r"expected .*found") as info:
        consume(CHECKPOINT, cache, ids, REQUEST)
    assert len(str(info.value).splitlines()) == 1
    after = [(layer.length, layer.keys.tobytes()) for layer in cache.layers], cache.consumed[:]
    assert after == before


@pytest.mark.parametrize(
    "ids",
    [
        *([5], [5, 9, 1], [], [5, 13], [5, -1], [5, 9.0], [5, True], [True, False], ["5", "9"]),
        *("59", [None, 9], 5, None, [[5], [9]], [5, [9, 9]]),
        *(np.array([5.0, 9.0]), np.array([True, False]), np.array([[5], [9]])),
    ],
)
def test_wrong_ids_of_a_decode_step_are_refused(ids: Any) -> None:
    refused(decode_step, ids)


@pytest.mark.parametrize(
    "ids",
    [
        *([5, 9], [[5]], [[5], [9], [1]], [], [[], []], [[5], [13]], [[5], [-1]], [[5], [9.0]]),
        *([[True], [False]], [[5], [True]], [["5"], ["9"]], "59", 5, None, [[5], [9, 9]]),
        *([[[5]], [[9]]], [[0] * 12] * 2),
    ],
)
def test_wrong_ids_of_a_prefill_are_refused(ids: Any) -> None:
    refused(prefill, ids)


@pytest.mark.parametrize(
    "ids", [(5, 9), np.array([5, 9]), np.array([5, 9], np.uint8), iter([5, 9])]
)
def test_any_sequence_of_integers_is_accepted(ids: Any) -> None:
    right = decode_step(CHECKPOINT, filled(), [5, 9], REQUEST)
    cache = filled()
    assert np.array_equal(decode_step(CHECKPOINT, cache, ids, REQUEST).logits, right.logits)
    assert cache.consumed[-1] == (5, 9)
    assert {type(token_id) for token_id in cache.consumed[-1]} == {int}


@pytest.mark.parametrize("token_id", [0, np.int64(0), np.uint8(0)])
def test_integer_id_is_a_plain_integer(token_id: Any) -> None:
    assert type(integer_id(token_id)) is int


@pytest.mark.parametrize("token_id", [True, np.True_, 1.0, np.float32(1), "1", None, [1]])
def test_what_is_no_integer_id(token_id: Any) -> None:
    with pytest.raises(InputError, match="token id: expected an integer, found "):
        integer_id(token_id)
