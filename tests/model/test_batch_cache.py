"""The cache of a batch: tags travel with their rows, and padding comes and goes."""

import numpy as np
import pytest

from tests.batches import random_model
from tinydec.model.batch_cache import LAYOUTS, LEFT, RIGHT, BatchCache, BatchTag
from tinydec.model.batch_step import batch_decode_step, batch_prefill

MODEL = random_model(2, layers=2)
DIGEST = MODEL.digest


def batch(layout: str, lengths: tuple[int, ...] = (1, 3, 2)) -> BatchCache:
    cache = BatchCache(MODEL, layout)
    names = [f"r{n}" for n in range(len(lengths))]
    prompts = [[(3 * n + i) % 7 for i in range(length)] for n, length in enumerate(lengths)]
    batch_prefill(MODEL, cache, prompts, names)
    return cache


def contents(cache: BatchCache, row: int) -> list[tuple[object, ...]]:
    """Return each real slot of a row: its tags in both layers and the bytes of its K and V."""
    tags = cache.snapshot_tags()
    return [
        (
            *(tags.at(layer, row, slot) for layer in range(2)),
            cache.keys[:, row, :, slot].tobytes(),
            cache.values[:, row, :, slot].tobytes(),
        )
        for slot in cache.real[row].nonzero()[0].tolist()
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_slot_tells_who_wrote_it_for_which_position_and_layer(layout: str) -> None:
    cache = batch(layout)
    for row, length in enumerate((1, 3, 2)):
        for position, (first, second, *_) in enumerate(contents(cache, row)):
            assert first == BatchTag(f"r{row}", position, 0, DIGEST, position)
            assert second == BatchTag(f"r{row}", position, 1, DIGEST, position)
        assert len(contents(cache, row)) == length


def test_padding_is_tagged_by_the_prefill_that_wrote_it_and_a_shift_leaves_it_blank() -> None:
    cache = batch(LEFT, (1, 2))
    tag = cache.snapshot_tags().at(0, 0, 0)
    assert tag is not None
    assert (tag.request_id, tag.position) == ("r0", None)
    batch_prefill(MODEL, cache, [[1, 2, 3, 4]], ["long"])
    tags = cache.snapshot_tags()
    assert cache.slots == 4
    assert tags.at(0, 0, 0) is tags.at(0, 1, 1) is None  # shifted by two
    assert tags.at(1, 1, 2) == BatchTag("r1", 0, 1, DIGEST, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tags_and_values_travel_when_rows_join_leave_and_shift(layout: str) -> None:
    cache = batch(layout)
    before = [contents(cache, row) for row in range(3)]
    batch_prefill(MODEL, cache, [[1, 2, 3, 4, 5]], ["long"])
    assert [contents(cache, row) for row in range(3)] == before
    long = contents(cache, 3)
    cache.keep_rows([3, 0])
    assert [contents(cache, row) for row in range(2)] == [long, before[0]]
    cache.keep_rows([1])
    assert contents(cache, 0) == before[0]
    assert cache.lengths.tolist() == [1]
    batch_decode_step(MODEL, cache, [2], ["r0"], [1])
    assert contents(cache, 0)[:1] == before[0]
    assert contents(cache, 0)[1][0] == BatchTag("r0", 1, 0, DIGEST, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slots_that_are_padding_in_every_row_are_dropped(layout: str) -> None:
    cache = batch(layout, (1, 5, 2))
    assert cache.slots == 5
    cache.keep_rows([0, 2])
    assert cache.slots == 2
    assert cache.real[:, :2].tolist() == (
        [[False, True], [True, True]] if layout == LEFT else [[True, False], [True, True]]
    )
    cache.keep_rows([])
    assert (cache.rows, cache.slots) == (0, 0)
    batch_prefill(MODEL, cache, [[1, 2]], ["new"])
    assert (cache.rows, cache.slots) == (1, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slots_grow_beyond_the_context_when_padding_needs_them(layout: str) -> None:
    context = MODEL.config.n_positions
    cache = batch(layout, (1, context - 1))
    batch_decode_step(MODEL, cache, [2, 2], ["r0", "r1"], [1, context - 1])
    cache.keep_rows([0])
    batch_prefill(MODEL, cache, [list(range(context))], ["long"])
    assert cache.slots == context
    cache.keep_rows([0])
    for count in range(2, context):
        batch_decode_step(MODEL, cache, [2], ["r0"], [count])
    assert cache.lengths.tolist() == [context]
    assert cache.slots == context  # common padding has gone
    assert cache.capacity >= context


def test_bytes_are_counted_for_real_tokens_and_for_all_slots() -> None:
    cache = batch(RIGHT)
    heads, d_h = MODEL.config.n_head, MODEL.config.d_h
    assert cache.real_nbytes() == 2 * 2 * heads * d_h * 6 * 8  # K and V, 2 layers, 6 tokens
    assert cache.allocated_nbytes() == cache.keys.nbytes * 2
    assert cache.allocated_nbytes() == 2 * 2 * heads * d_h * 3 * cache.capacity * 8


def test_a_snapshot_of_the_tags_does_not_change_later() -> None:
    cache = batch(LEFT)
    tags = cache.snapshot_tags()
    kept = tags.entries.copy()
    batch_decode_step(MODEL, cache, [2, 3, 4], ["r0", "r1", "r2"], [1, 3, 2])
    cache.keep_rows([2])
    assert np.array_equal(tags.entries, kept)
    with pytest.raises(ValueError, match="read-only"):
        tags.entries[...] = kept
