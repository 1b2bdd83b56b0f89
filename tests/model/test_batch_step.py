"""Batched prefill and decode: each row computes what it would compute alone."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.batches import random_model
from tests.refusals import refusal
from tests.rows import distance, full_rows
from tinydec.model.batch_activations import BatchActivations
from tinydec.model.batch_cache import LAYOUTS, LEFT, RAGGED, RIGHT, BatchCache
from tinydec.model.batch_step import batch_decode_step, batch_prefill, pad_token
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.model.seams import BatchSeams
from tinydec.model.storage import load_checkpoint

FROZEN = load_checkpoint().cast("float64")
PROMPTS = [[0], [0, 2, 3], [0, 6]]
IDS = ["a", "b", "c"]


def prefilled(
    checkpoint: Checkpoint, layout: str, prompts: list[list[int]] = PROMPTS
) -> tuple[BatchCache, BatchActivations]:
    cache = BatchCache(checkpoint, layout)
    return cache, batch_prefill(checkpoint, cache, prompts, IDS[: len(prompts)])


def worst_row(
    checkpoint: Checkpoint, passes: list[BatchActivations], row: int, ids: list[int]
) -> float:
    """Return the largest distance of any tensor of a row from the full forward over its ids."""
    worst, start = 0.0, 0
    expected = dict(full_forward(checkpoint, ids).named())
    for found in passes:
        alone = found.row(row)
        end = start + len(alone.positions)
        assert alone.positions == tuple(range(start, end))
        for name, array in alone.named():
            worst = max(worst, distance(array, full_rows(name, expected[name], start, end)))
        start = end
    assert start == len(ids)
    return worst


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(10))
def test_every_intermediate_of_every_row_is_that_of_the_full_forward(
    seed: int, layout: str
) -> None:
    checkpoint = random_model(seed)
    rng = random.Random(seed)
    size, context = checkpoint.config.vocab_size, checkpoint.config.n_positions
    tokens = [[rng.randrange(size) for _ in range(rng.randint(3, context))] for _ in range(5)]
    cache = BatchCache(checkpoint, layout)
    names = [f"r{n}" for n in range(5)]
    lengths = [rng.randint(1, len(ids) - 2) for ids in tokens]
    prompts = [ids[:length] for ids, length in zip(tokens, lengths, strict=True)]
    passes = [batch_prefill(checkpoint, cache, prompts, names)]
    for step in range(2):
        counts = [length + step for length in lengths]
        column = [ids[count] for ids, count in zip(tokens, counts, strict=True)]
        passes.append(batch_decode_step(checkpoint, cache, column, names, counts))
    for row, ids in enumerate(tokens):
        assert worst_row(checkpoint, passes, row, ids[: lengths[row] + 2]) < 1e-12


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_join_later_are_computed_beside_those_that_run(layout: str) -> None:
    for later in ([[5]], [[5, 4, 3, 2], [6]]):  # shorter and longer than the slots in use
        checkpoint = random_model(4)
        cache, first = prefilled(checkpoint, layout, PROMPTS[:2])
        names = ["x", "y"][: len(later)]
        second = batch_prefill(checkpoint, cache, later, names)
        column = [2, 3, 4, 5][: cache.rows]
        counts = [len(prompt) for prompt in (*PROMPTS[:2], *later)]
        third = batch_decode_step(checkpoint, cache, column, [*IDS[:2], *names], counts)
        for row, prompt in enumerate(PROMPTS[:2]):
            assert worst_row(checkpoint, [first], row, prompt) < 1e-12
        for row, prompt in enumerate(later):
            assert worst_row(checkpoint, [second], row, prompt) < 1e-12
        for row, prompt in enumerate((*PROMPTS[:2], *later)):
            full = full_forward(checkpoint, [*prompt, column[row]]).last_logits
            assert distance(third.row(row).last_logits, full) < 1e-12
            assert third.row(row).positions == (len(prompt),)
            assert distance(third.last_logits[row], full[0]) < 1e-12


# Padding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [LEFT, RIGHT])
def test_queries_of_padding_attend_to_nothing_and_hold_no_nan(layout: str) -> None:
    checkpoint = random_model(5, layers=3)
    cache, found = prefilled(checkpoint, layout)
    [group] = found.plan.groups
    assert (~group.real).sum() == 3
    for block in found.blocks:
        [heads] = block.heads
        padding = np.broadcast_to(~group.real[:, np.newaxis], heads.attention.shape[:3])
        assert (heads.attention[padding] == 0).all()
        assert (heads.mix[padding] == 0).all()
        assert (heads.scores[padding] == -np.inf).all()
        assert heads.attention[~padding].sum(axis=-1) == pytest.approx(1)
    batch_decode_step(checkpoint, cache, [2, 3, 4], IDS, [1, 3, 2])
    assert not [name for name, array in found.named() if np.isnan(array).any()]
    assert found.nan_counts() == ((0, 0),) * 3


def test_nan_is_counted_in_padding_and_in_real_rows() -> None:
    checkpoint = random_model(5, layers=3)
    cache = BatchCache(checkpoint, LEFT)
    found = batch_prefill(checkpoint, cache, PROMPTS, IDS, BatchSeams(plain_softmax=True))
    width = checkpoint.config.n_embd
    # Three pads; from the second layer on also the three real tokens of the two padded rows.
    assert found.nan_counts() == ((3 * width, 0), (3 * width, 3 * width), (3 * width, 3 * width))


def test_what_stands_in_padding_never_reaches_a_real_row() -> None:
    checkpoint = random_model(7, layers=2)
    for layout in (LEFT, RIGHT):
        cache, _ = prefilled(checkpoint, layout)
        other, _ = prefilled(checkpoint, layout)
        padding = ~other.real
        other.keys[:, padding.nonzero()[0], :, padding.nonzero()[1]] = 3.5
        other.values[:, padding.nonzero()[0], :, padding.nonzero()[1]] = -2.5
        clean, spoilt = (
            batch_decode_step(checkpoint, each, [2, 3, 4], IDS, [1, 3, 2])
            for each in (cache, other)
        )
        assert np.array_equal(clean.last_logits, spoilt.last_logits)


def test_a_ragged_pass_computes_and_reads_real_tokens_alone() -> None:
    cache, found = prefilled(FROZEN, RAGGED)
    assert len(found.embedding) == 6  # 1 + 3 + 2
    assert [len(g.members) for g in found.plan.groups] == [1, 1, 1]
    assert [heads.scores.shape for heads in found.blocks[0].heads] == [
        (1, 2, 1, 1),
        (1, 2, 2, 2),
        (1, 2, 3, 3),
    ]
    assert not found.plan.pads.any()
    assert not found.plan.query_pads.any()
    unused = ~cache.real
    assert (cache.tags["request"][:, unused] == -1).all()  # nobody has written there
    step = batch_decode_step(FROZEN, cache, [2, 2, 2], IDS, [1, 3, 2])
    assert [heads.scores.shape[-1] for heads in step.blocks[1].heads] == [2, 3, 4]


def test_padding_is_filled_with_the_end_token_where_there_is_one() -> None:
    assert pad_token(FROZEN) == 1
    _, found = prefilled(FROZEN, LEFT)
    assert found.plan.token_ids.tolist() == [[1, 1, 0], [0, 2, 3], [1, 0, 6]]


# Geometry by hand ---------------------------------------------------------------------------------


def as_text(mask: NDArray[np.bool_]) -> list[str]:
    return ["".join("x" if seen else "." for seen in line) for line in mask]


def test_left_padding_by_hand() -> None:
    cache, found = prefilled(FROZEN, LEFT)
    plan = found.plan
    assert plan.positions.tolist() == [[-1, -1, 0], [0, 1, 2], [-1, 0, 1]]
    assert plan.query_slots.tolist() == [[0, 1, 2]] * 3
    assert as_text(plan.pads) == ["xx.", "...", "x.."]
    assert [as_text(mask) for mask in plan.mask] == [
        ["...", "...", "..x"],
        ["x..", "xx.", "xxx"],
        ["...", ".x.", ".xx"],
    ]
    plan = batch_decode_step(FROZEN, cache, [2, 3, 4], IDS, [1, 3, 2]).plan
    assert plan.positions.tolist() == [[1], [3], [2]]
    assert plan.query_slots.tolist() == [[3]] * 3
    assert [as_text(mask) for mask in plan.mask] == [["..xx"], ["xxxx"], [".xxx"]]
    assert (plan.lengths_before.tolist(), plan.lengths_after.tolist()) == ([1, 3, 2], [2, 4, 3])


@pytest.mark.parametrize("layout", [RIGHT, RAGGED])
def test_right_padding_and_no_padding_by_hand(layout: str) -> None:
    cache, found = prefilled(FROZEN, layout)
    plan = found.plan
    assert plan.positions.tolist() == [[0, -1, -1], [0, 1, 2], [0, 1, -1]]
    assert [as_text(mask) for mask in plan.mask] == [
        ["x..", "...", "..."],
        ["x..", "xx.", "xxx"],
        ["x..", "xx.", "..."],
    ]
    if layout == RIGHT:
        assert as_text(plan.pads) == [".xx", "...", "..x"]
    plan = batch_decode_step(FROZEN, cache, [2, 3, 4], IDS, [1, 3, 2]).plan
    assert plan.positions.tolist() == [[1], [3], [2]]
    assert plan.query_slots.tolist() == [[1], [3], [2]]
    assert [as_text(mask) for mask in plan.mask] == [["xx.."], ["xxxx"], ["xxx."]]


# Wrong input --------------------------------------------------------------------------------------


def test_wrong_input_is_refused_in_one_line() -> None:
    cache, _ = prefilled(FROZEN, LEFT)
    new = BatchCache(FROZEN, LEFT)
    assert "at least one, found none" in refusal(batch_prefill, FROZEN, new, [], [])
    assert "at least one token" in refusal(batch_prefill, FROZEN, new, [[]], ["a"])
    assert "at most 4 tokens" in refusal(batch_prefill, FROZEN, new, [[0] * 5], ["a"])
    assert "expected 0 to 7, found 8" in refusal(batch_prefill, FROZEN, new, [[8]], ["a"])
    assert "found float" in refusal(batch_prefill, FROZEN, new, [[1.0]], ["a"])
    assert "sequence of ids" in refusal(batch_prefill, FROZEN, new, [3], ["a"])
    assert "expected 1, one a row, found 2" in refusal(
        batch_prefill, FROZEN, new, [[0]], ["a", "b"]
    )
    assert "expected 3, one a row" in refusal(batch_decode_step, FROZEN, cache, [2], IDS, [1, 3, 2])
    assert "expected 0 to 7, found -1" in refusal(
        batch_decode_step, FROZEN, cache, [2, -1, 2], IDS, [1, 3, 2]
    )
    assert "at least one row" in refusal(batch_decode_step, FROZEN, new, [], [], [])
    assert "left, right, ragged" in refusal(BatchCache, FROZEN, "middle")
    assert (new.rows, cache.slots) == (0, 3)
