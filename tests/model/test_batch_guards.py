"""What a batched step refuses, and that the cache is then as it was."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.batches import random_model
from tinydec.model.batch_cache import LAYOUTS, LEFT, BatchCache
from tinydec.model.batch_step import batch_decode_step, batch_prefill
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import (
    GUARDS,
    ContextOverflowError,
    ForeignRequestError,
    GuardError,
    PositionError,
    StaleCacheError,
    WrongLayerError,
)
from tinydec.model.seams import BatchSeams
from tinydec.model.storage import load_checkpoint

FROZEN = load_checkpoint().cast("float64")
PROMPTS = [[0], [0, 2, 3], [0, 6]]
IDS = ["a", "b", "c"]


def prefilled(layout: str, prompts: list[list[int]] = PROMPTS) -> BatchCache:
    cache = BatchCache(FROZEN, layout)
    batch_prefill(FROZEN, cache, prompts, IDS[: len(prompts)])
    return cache


def refused(
    kind: type[GuardError],
    guard: str,
    cache: BatchCache,
    *,
    checkpoint: Checkpoint = FROZEN,
    ids: Sequence[str] = IDS,
    counts: Sequence[int] = (1, 3, 2),
) -> str:
    """Return a guard's message; the cache stays as it was, and without the guard it is silent."""
    before = (cache.keys.copy(), cache.tags.copy(), cache.lengths.copy(), cache.slots)
    with pytest.raises(kind) as caught:
        batch_decode_step(checkpoint, cache, [2, 3, 4], ids, counts)
    assert np.array_equal(before[0], cache.keys)
    assert np.array_equal(before[1], cache.tags)
    assert np.array_equal(before[2], cache.lengths)
    assert before[3] == cache.slots
    batch_decode_step(checkpoint, cache, [2, 3, 4], ids, counts, guards=GUARDS - {guard})
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stale_checkpoint_is_refused(layout: str) -> None:
    changed = {name: array * 1.5 for name, array in FROZEN.tensors.items()}
    other = FROZEN.with_tensors(changed)
    message = refused(StaleCacheError, "checkpoint", prefilled(layout), checkpoint=other)
    assert message == (
        f"checkpoint digest of the cache: expected {FROZEN.digest[:12]}, "
        f"found {other.digest[:12]} (row 0)"
    )
    with pytest.raises(StaleCacheError):
        batch_prefill(other, BatchCache(FROZEN, layout), [[0]], ["a"])
    with pytest.raises(StaleCacheError, match=r"expected 2 layers, 2 heads of width 2"):
        batch_prefill(random_model(1), BatchCache(FROZEN, layout), [[0]], ["a"], guards=frozenset())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_foreign_row_is_refused(layout: str) -> None:
    cache = prefilled(layout)
    message = refused(ForeignRequestError, "request", cache, ids=["a", "c", "b"])
    assert message == "request that owns the cache: expected b, found c (row 1, slot 0)"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_whose_layers_are_exchanged_is_refused(layout: str) -> None:
    cache = prefilled(layout)
    for arrays in (cache.keys, cache.values, cache.tags):
        arrays[:, 1] = arrays[::-1, 1].copy()
    message = refused(WrongLayerError, "layer", cache)
    assert message == "layer of the cache: expected 0, found 1 (row 1)"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_count_of_consumed_inputs_is_refused(layout: str) -> None:
    cache = prefilled(layout)
    message = refused(PositionError, "position", cache, counts=[1, 2, 2])
    assert message == "next position: expected 2, found 3 (row 1)"


def test_positions_from_slots_are_refused() -> None:
    seams = BatchSeams(positions_from_slots=True)
    cache = BatchCache(FROZEN, LEFT)
    with pytest.raises(PositionError, match=r"^next position: expected 0, found 2 \(row 0\)$"):
        batch_prefill(FROZEN, cache, PROMPTS, IDS, seams)
    assert (cache.rows, cache.slots) == (0, 0)
    found = batch_prefill(FROZEN, cache, PROMPTS, IDS, seams, frozenset())
    assert found.plan.positions.tolist() == [[-1, -1, 2], [0, 1, 2], [-1, 1, 2]]
    batch_decode_step(FROZEN, cache, [2, 3, 4], IDS, [1, 3, 2], seams, frozenset())
    with pytest.raises(PositionError, match=r"expected a row from 0 to 3, found 4$"):
        batch_decode_step(FROZEN, cache, [2, 3, 4], IDS, [2, 3, 3], seams, frozenset())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_input_beyond_the_context_is_refused_by_real_tokens_not_by_slots(layout: str) -> None:
    cache = prefilled(layout, [[0], [0, 2, 3, 4]])
    with pytest.raises(ContextOverflowError, match=r"expected at most 4, found 5 \(row 1\)$"):
        batch_decode_step(FROZEN, cache, [2, 3], IDS[:2], [1, 4])
    with pytest.raises(PositionError, match=r"expected a row from 0 to 3, found 4$"):
        batch_decode_step(FROZEN, cache, [2, 3], IDS[:2], [1, 4], guards=frozenset())
    # The short row alone goes on to its own fourth token, though left of it stand three pads.
    short = prefilled(layout, [[0], [0, 2, 3, 4]])
    short.keep_rows([0])
    for count in (1, 2, 3):
        batch_decode_step(FROZEN, short, [2], ["a"], [count])
    assert short.lengths.tolist() == [4]
