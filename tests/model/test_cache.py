"""The cache itself: shapes, bytes, ownership."""

from typing import Any

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tests.rows import REQUEST, run_cached
from tinydec.errors import InputError
from tinydec.model.cache import KVCache, LayerCache, SlotTag
from tinydec.model.config import ModelConfig
from tinydec.model.guards import ContextOverflowError, StaleCacheError

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
FROZEN_SIZES = random_checkpoint(ModelConfig(8, 4, 4, 2, 2, 8, attention_bias=False), 7, "float32")


def test_one_k_and_one_v_per_layer_with_axes_b_h_t_dh() -> None:
    cache = KVCache(CHECKPOINT, REQUEST, batch=2)
    assert [layer.layer for layer in cache.layers] == [0, 1, 2]
    assert {layer.keys.shape for layer in cache.layers} == {(2, 3, 11, 5)}
    assert {layer.values.shape for layer in cache.layers} == {(2, 3, 11, 5)}
    assert not np.shares_memory(cache.layers[0].keys, cache.layers[0].values)
    assert (cache.batch, cache.capacity, cache.length) == (2, 11, 0)
    assert cache.token_ids().shape == (2, 0)
    assert cache.layers[0].valid()[0].shape == (2, 3, 0, 5)


def test_owner_is_the_digest_and_the_request() -> None:
    assert KVCache(CHECKPOINT, "r7").owner == (CHECKPOINT.digest, "r7")


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_valid_bytes_of_the_frozen_sizes_are_64_t(length: int) -> None:
    # 2 layers x (K and V) x 2 heads x width 2 x 4 bytes = 64 for each consumed token.
    cache, _ = run_cached(FROZEN_SIZES, [[0] * length], (0,) * length)
    assert cache.valid_nbytes() == 64 * length
    assert cache.allocated_nbytes() == 256


def test_bytes_grow_with_batch_capacity_and_dtype() -> None:
    assert KVCache(FROZEN_SIZES, REQUEST, batch=3).allocated_nbytes() == 3 * 256
    assert KVCache(FROZEN_SIZES, REQUEST, capacity=7).allocated_nbytes() == 64 * 7
    assert KVCache(FROZEN_SIZES.cast("float64"), REQUEST).allocated_nbytes() == 512
    assert KVCache(FROZEN_SIZES.cast("float16"), REQUEST).allocated_nbytes() == 128


def test_append_writes_behind_the_valid_rows() -> None:
    cache = LayerCache(0, (1, 2, 5, 3), "float64")
    first, second = np.full((1, 2, 2, 3), 1.0), np.full((1, 2, 1, 3), 2.0)
    tags = [SlotTag(REQUEST, order) for order in range(3)]
    cache.append(first, -first, tags[:2])
    cache.append(second, -second, tags[2:])
    assert cache.tags == tags
    keys, values = cache.valid()
    assert keys[0, 1, :, 0].tolist() == [1.0, 1.0, 2.0]
    assert np.array_equal(values, -keys)
    assert cache.keys[0, 0, :, 0].tolist() == [1.0, 1.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["batch", "capacity"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "2"])
def test_sizes_that_are_no_positive_integers_are_refused(name: str, value: Any) -> None:
    with pytest.raises(
        InputError, match=f"cache {name}: expected an integer >= 1, found {value!r}"
    ):
        KVCache(CHECKPOINT, REQUEST, **{name: value})


def filled(length: int) -> KVCache:
    cache, _ = run_cached(FROZEN_SIZES, [[0] * length], (0,) * length)
    return cache


def test_truncate_forgets_the_inputs_from_a_length_on_and_clears_them() -> None:
    cache, whole = filled(3), filled(3).export()
    cache.truncate(1)
    assert cache.length == 1
    for layer, keys, values in zip(cache.layers, whole.keys, whole.values, strict=True):
        assert layer.length == len(layer.tags) == 1
        assert np.array_equal(layer.keys[:, :, :1], keys[:, :, :1])
        assert np.array_equal(layer.values[:, :, :1], values[:, :, :1])
        assert not layer.keys[:, :, 1:].any()
        assert not layer.values[:, :, 1:].any()


@pytest.mark.parametrize("length", [-1, 4, 1.0, True])
def test_truncate_refuses_a_length_that_the_cache_has_not(length: Any) -> None:
    cache = filled(3)
    with pytest.raises(InputError, match=f"truncate: expected 0 to 3, found {length!r}"):
        cache.truncate(length)
    assert cache.length == 3


def test_reset_empties_every_layer_and_changes_the_owner() -> None:
    cache = filled(3)
    cache.reset(FROZEN_SIZES, "next")
    assert cache.length == 0
    assert cache.owner == (FROZEN_SIZES.digest, "next")
    for layer in cache.layers:
        assert (layer.length, layer.tags) == (0, [])
        assert not layer.keys.any()
        assert not layer.values.any()


def test_reset_with_the_fault_leaves_the_layers_lengths() -> None:
    cache = filled(3)
    cache.reset(FROZEN_SIZES, "next", keep_length=True)
    assert cache.length == 0
    assert [layer.length for layer in cache.layers] == [3, 3]
    assert cache.layers[0].tags == [None] * 3


def test_reset_refuses_a_checkpoint_of_other_sizes() -> None:
    with pytest.raises(StaleCacheError, match="layers"):
        filled(2).reset(CHECKPOINT, "next")


def test_export_is_a_copy_of_the_valid_part() -> None:
    cache = filled(3)
    found = cache.export()
    assert found.token_ids == [[0, 0, 0]]
    assert [keys.shape for keys in found.keys] == [(1, 2, 3, 2)] * 2
    before = [array.copy() for array in found.keys + found.values]
    cache.reset(FROZEN_SIZES, "next")
    for array, copy in zip(found.keys + found.values, before, strict=True):
        assert np.array_equal(array, copy)
        assert not array.flags.writeable


def test_append_beyond_the_last_slot_is_refused_and_writes_nothing() -> None:
    cache = LayerCache(0, (1, 2, 3, 5), "float64")
    rows = np.ones((1, 2, 2, 5))
    tags = [SlotTag(REQUEST, order) for order in range(2)]
    cache.append(rows, rows, tags)
    with pytest.raises(ContextOverflowError, match="expected at most 3 slots, found 4"):
        cache.append(rows, rows, tags)
    assert cache.length == len(cache.tags) == 2
    assert not cache.keys[:, :, 2:].any()


@pytest.mark.parametrize("number", [10**12, 10**19, 2**31, 10**500])
@pytest.mark.parametrize("name", ["batch", "capacity"])
def test_cache_that_no_machine_can_hold_is_refused(name: str, number: int) -> None:
    with pytest.raises(
        InputError, match=f"cache {name}: expected at most 2147483647, found"
    ) as info:
        KVCache(CHECKPOINT, REQUEST, **{name: number})
    assert len(str(info.value)) < 150


def test_cache_beyond_any_memory_is_refused() -> None:
    with pytest.raises(InputError, match="cache: expected slots that memory can hold, found"):
        KVCache(CHECKPOINT, REQUEST, batch=2**31 - 1, capacity=2**31 - 1)
