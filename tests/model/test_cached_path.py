"""Prefill and decode steps together: equal to the full forward in every split."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.rows import REQUEST, consume, distances, run_cached, worst_distance
from tests.strategies import checkpoints, prompts, splits
from tinydec.model import decode as decode_module
from tinydec.model import prefill as prefill_module
from tinydec.model.activations import tensor_names
from tinydec.model.cache import KVCache, LayerCache
from tinydec.model.checkpoint import DTYPES
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.model.operations import layer_norm
from tinydec.verification.scalar_loop import scalar_logits

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
IDS = [[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]]

#: Ways to consume eight tokens: token by token, at once, in chunks, and mixed.
STEPS = (0,) * 8
WHOLE = (8,)
CHUNKS = (3, 5)
MIXED = (2, 0, 3, 0, 0)


# Equal to the full forward ----------------------------------------------------------------------


@given(st.data())
def test_cached_equals_full_in_every_tensor_for_any_split(data: st.DataObject) -> None:
    checkpoint = data.draw(checkpoints())
    ids = data.draw(prompts(checkpoint.config, batch=data.draw(st.integers(1, 3))))
    chunks = data.draw(splits(len(ids[0])))
    _, steps = run_cached(checkpoint, ids, chunks)
    worst = distances(steps, full_forward(checkpoint, ids))
    assert tuple(worst) == tensor_names(checkpoint.config.n_layer)
    assert {name: error for name, error in worst.items() if error > 1e-12} == {}


@given(st.data())
def test_cached_logits_are_those_of_the_scalar_loop(data: st.DataObject) -> None:
    checkpoint = data.draw(checkpoints(max_layers=2))
    [ids] = data.draw(prompts(checkpoint.config))
    _, steps = run_cached(checkpoint, [ids], data.draw(splits(len(ids))))
    logits = np.concatenate([step.logits[0] for step in steps])
    expected = scalar_logits(checkpoint, ids)
    assert np.abs(logits - expected).max() < 1e-12 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("chunks", [STEPS, WHOLE, CHUNKS, MIXED])
def test_capacity_beyond_the_context_changes_nothing(chunks: tuple[int, ...]) -> None:
    assert worst_distance(CHECKPOINT, IDS, chunks, capacity=29) < 1e-12
    assert worst_distance(CHECKPOINT, IDS, chunks, capacity=8) < 1e-12


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunks", [STEPS, CHUNKS])
def test_every_intermediate_has_the_dtype_of_the_checkpoint(
    dtype: str, chunks: tuple[int, ...]
) -> None:
    cache, steps = run_cached(CHECKPOINT.cast(dtype), IDS, chunks)
    assert {array.dtype.name for step in steps for _, array in step.named()} == {dtype}
    assert {layer.keys.dtype.name for layer in cache.layers} == {dtype}


# The cache after each consumed token ------------------------------------------------------------


@given(st.data())
def test_cache_grows_by_what_is_consumed_and_earlier_rows_never_change(
    data: st.DataObject,
) -> None:
    checkpoint = data.draw(checkpoints())
    config = checkpoint.config
    batch = data.draw(st.integers(1, 3))
    ids = np.array(data.draw(prompts(config, batch=batch)))
    cache = KVCache(checkpoint, REQUEST, batch)
    earlier: list[tuple[Any, Any]] = [layer.valid() for layer in cache.layers]
    for chunk in data.draw(splits(ids.shape[1])):
        before = cache.length
        snapshot = [(keys.copy(), values.copy()) for keys, values in earlier]
        step = consume(checkpoint, cache, ids, chunk)
        after = before + (chunk or 1)
        assert cache.length == after
        assert step.positions == tuple(range(before, after))
        assert np.array_equal(cache.token_ids(), ids[:, :after])
        for layer, block in zip(cache.layers, step.blocks, strict=True):
            keys, values = layer.valid()
            assert layer.length == after
            assert keys.shape == values.shape == (batch, config.n_head, after, config.d_h)
            assert np.array_equal(keys[:, :, before:], block.k)
            assert np.array_equal(values[:, :, before:], block.v)
            assert not layer.keys[:, :, after:].any()
            assert not layer.values[:, :, after:].any()
        for (keys, values), (old_keys, old_values) in zip(earlier, snapshot, strict=True):
            assert np.array_equal(keys, old_keys)
            assert np.array_equal(values, old_values)
        earlier = [layer.valid() for layer in cache.layers]


def test_results_cannot_write_to_the_cache() -> None:
    for chunks in (STEPS, WHOLE):
        cache, steps = run_cached(CHECKPOINT, IDS, chunks)
        for array in (steps[-1].blocks[0].keys, steps[-1].blocks[0].values):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        # What is writable in a result is nobody else's memory.
        for name, array in steps[-1].named():
            for layer in cache.layers:
                shared = np.shares_memory(array, layer.keys) or np.shares_memory(
                    array, layer.values
                )
                assert not (shared and array.flags.writeable), name


# Break it and see -------------------------------------------------------------------------------


def break_prefill_mask(patch: pytest.MonkeyPatch) -> None:
    def visible(_read: Any, tags: Any, total: int, _seams: Any) -> Any:
        return np.ones((len(tags), total), bool)

    patch.setattr(prefill_module, "_visible", visible)


def break_prefill_mask_by_one(patch: pytest.MonkeyPatch) -> None:
    def visible(_read: Any, tags: Any, total: int, _seams: Any) -> Any:
        return np.arange(total)[None, :] <= np.arange(total - len(tags), total)[:, None] + 1

    patch.setattr(prefill_module, "_visible", visible)


def break_mask_of_later_chunks(patch: pytest.MonkeyPatch) -> None:
    def visible(_read: Any, tags: Any, total: int, _seams: Any) -> Any:
        # forgets the tokens before the chunk
        return np.arange(total)[None, :] <= np.arange(len(tags))[:, None]

    patch.setattr(prefill_module, "_visible", visible)


def break_prefill_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prefill_module, "math", SimpleNamespace(sqrt=lambda width: width))


def break_decode_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decode_module, "math", SimpleNamespace(sqrt=lambda width: width))


def break_decode_norm(patch: pytest.MonkeyPatch) -> None:
    right = layer_norm
    patch.setattr(decode_module, "layer_norm", lambda x, norm: right(x, norm) - norm.bias)


def break_prefill_norm(patch: pytest.MonkeyPatch) -> None:
    right = layer_norm
    patch.setattr(prefill_module, "layer_norm", lambda x, norm: right(x, norm) - norm.bias)


def with_append(change: Callable[..., None]) -> Callable[[pytest.MonkeyPatch], None]:
    right = LayerCache.append

    def break_append(patch: pytest.MonkeyPatch) -> None:
        def append(self: LayerCache, k: Any, v: Any, tags: Any) -> None:
            change(lambda cache, k, v: right(cache, k, v, tags), self, k, v)

        patch.setattr(LayerCache, "append", append)

    return break_append


def append_twice(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    right(cache, k, v)
    right(cache, k, v)


def append_swapped(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    right(cache, v, k)


def append_heads_reversed(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    right(cache, k[:, ::-1], v)


def append_batch_reversed(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    right(cache, k, v[::-1])


def append_length_alone(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    cache.length += k.shape[2]


def append_over_the_last(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    start = max(cache.length - 1, 0)
    cache.keys[:, :, start : start + k.shape[2]] = k
    cache.values[:, :, start : start + k.shape[2]] = v
    cache.length += k.shape[2]


def append_positions_reversed(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    right(cache, k[:, :, ::-1], v[:, :, ::-1])


def append_axes_mistaken(right: Any, cache: LayerCache, k: Any, v: Any) -> None:
    # Rows read as (B, P, h, d_h) instead of (B, h, P, d_h): same count of numbers, other order.
    right(cache, np.swapaxes(k, 1, 2).reshape(k.shape), np.swapaxes(v, 1, 2).reshape(v.shape))


@pytest.mark.parametrize(
    ("breaking", "chunks"),
    [
        (break_prefill_mask, WHOLE),
        (break_prefill_mask, CHUNKS),
        (break_prefill_mask_by_one, WHOLE),
        (break_mask_of_later_chunks, CHUNKS),
        (break_prefill_scale, WHOLE),
        (break_decode_scale, STEPS),
        (break_prefill_norm, WHOLE),
        (break_decode_norm, STEPS),
        (with_append(append_twice), STEPS),
        (with_append(append_twice), CHUNKS),
        (with_append(append_swapped), STEPS),
        (with_append(append_swapped), WHOLE),
        (with_append(append_heads_reversed), STEPS),
        (with_append(append_heads_reversed), WHOLE),
        (with_append(append_batch_reversed), STEPS),
        (with_append(append_batch_reversed), MIXED),
        (with_append(append_length_alone), STEPS),
        (with_append(append_length_alone), WHOLE),
        (with_append(append_over_the_last), STEPS),
        (with_append(append_over_the_last), CHUNKS),
        (with_append(append_positions_reversed), WHOLE),
        (with_append(append_axes_mistaken), WHOLE),
    ],
)
def test_a_broken_cached_path_differs_from_the_full_forward(
    breaking: Callable[[pytest.MonkeyPatch], None],
    chunks: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert worst_distance(CHECKPOINT, IDS, chunks, capacity=29) < 1e-12
    breaking(monkeypatch)
    assert worst_distance(CHECKPOINT, IDS, chunks, capacity=29) > 1e-3


@pytest.mark.parametrize(
    ("breaking", "chunks"),
    [(break_prefill_mask, STEPS), (break_mask_of_later_chunks, WHOLE), (break_decode_scale, WHOLE)],
)
def test_a_break_that_a_split_does_not_reach_changes_nothing(
    breaking: Callable[[pytest.MonkeyPatch], None],
    chunks: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaking(monkeypatch)
    assert worst_distance(CHECKPOINT, IDS, chunks) < 1e-12
