"""Shapes and work of prefill and decode agree with the tensors of real passes."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.strategies import checkpoints, prompts
from tinydec.errors import InputError
from tinydec.memory.measured import decoder_sizes
from tinydec.model.config import ModelConfig
from tinydec.verification.phases import (
    axes_of,
    pass_work,
    run_phases,
    shape_rows,
    split_phases,
)

# V = 13, context 11, d = 15, L = 3, h = 3, m = 23, so d_h = 5.
CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
IDS = (4, 0, 12, 7, 7, 3, 9)


@pytest.mark.parametrize(
    ("prompt", "returned", "context", "expected"),
    [
        ((5,), (1, 2, 3, 4), 4, ((5, 1, 2, 3), 1, True)),
        ((5, 6), (1,), 4, ((5, 6, 1), 2, True)),
        # The prompt fills the context: its last token becomes the decode step.
        ((5, 6, 7), (1,), 3, ((5, 6, 7), 2, False)),
        ((5, 6, 7), (), 9, ((5, 6, 7), 2, False)),
        ((5,), (1,), 1, ((5,), 1, True)),
    ],
)
def test_split_gives_both_phases_wherever_it_can(prompt, returned, context, expected):
    found = split_phases(prompt, returned, context)
    assert (found.token_ids, found.prefill_length, found.returned) == expected


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 9))
def test_split_never_exceeds_the_context_nor_drops_the_prompt(length, returned, context):
    if length > context:
        with pytest.raises(InputError, match=f"expected 1 to {context} tokens, found {length}"):
            split_phases(range(length), range(returned), context)
        return
    found = split_phases(range(length), range(returned), context)
    assert len(found.token_ids) == min(context, length + returned)
    assert found.decode_steps == len(found.token_ids) - found.prefill_length
    assert (found.decode_steps > 0) == (len(found.token_ids) > 1)


def test_empty_prompt_is_refused():
    with pytest.raises(InputError, match="found 0"):
        split_phases((), (1,), 4)


@settings(max_examples=25)
@given(st.data(), checkpoints())
def test_axes_with_their_numbers_are_the_shapes(data, checkpoint):
    config = checkpoint.config
    (ids,) = data.draw(prompts(config, min_size=2))
    length = data.draw(st.integers(1, len(ids) - 1))
    first, *later = run_phases(checkpoint, split_phases(ids[:length], ids[length:], len(ids)))
    symbols = {
        "1": 1, "B": 1, "h": config.n_head, "d_h": config.d_h, "d": config.n_embd,
        "m": config.n_inner, "V": config.vocab_size,
    }  # fmt: skip
    for found in later:
        for row in shape_rows(first.activations, found.activations):
            names = re.findall(r"\w+", row.axes)
            assert row.first == tuple((symbols | {"P": length, "t": length})[n] for n in names)
            assert row.later == tuple((symbols | {"P": 1, "t": found.start + 1})[n] for n in names)
            assert row.first_scalars == np.prod(row.first)
            assert row.later_scalars == np.prod(row.later)


def test_every_tensor_has_a_row_and_no_second_pass_leaves_it_empty():
    (only,) = run_phases(CHECKPOINT, split_phases(IDS[:1], (), 1))
    rows = shape_rows(only.activations, None)
    assert [row.tensor for row in rows] == [name for name, _ in only.activations.named()]
    assert all(row.later is None for row in rows)
    assert all(row.later_scalars is None for row in rows)


@pytest.mark.parametrize(
    ("tensor", "axes"),
    [
        ("position_embedding", "(1, P, d)"),
        ("h.1.q", "(B, h, P, d_h)"),
        ("h.0.keys", "(B, h, t, d_h)"),
        ("h.0.attention", "(B, h, P, t)"),
        ("h.2.mlp_hidden", "(B, P, m)"),
        ("logits", "(B, P, V)"),
    ],
)
def test_axes_are_named_as_in_the_formulas(tensor, axes):
    assert axes_of(tensor) == axes


def test_prefill_sees_a_triangle_and_each_decode_step_a_longer_row():
    prefill, *steps = run_phases(CHECKPOINT, split_phases(IDS[:4], IDS[4:], 11))
    assert np.array_equal(prefill.visible(), np.tri(4, dtype=bool))
    assert (prefill.phase, prefill.start, prefill.rows, prefill.keys) == ("prefill", 0, 4, 4)
    assert [step.phase for step in steps] == ["decode"] * 3
    assert [step.visible().tolist() for step in steps] == [[[True] * n] for n in (5, 6, 7)]
    assert [step.token_ids for step in steps] == [(7,), (3,), (9,)]


def test_without_a_cache_every_pass_computes_the_whole_prefix():
    passes = run_phases(CHECKPOINT, split_phases(IDS[:4], IDS[4:], 11), use_cache=False)
    assert [(p.phase, p.start, p.rows) for p in passes] == [("full", 0, n) for n in (4, 5, 6, 7)]
    assert [p.token_ids for p in passes] == [IDS[:n] for n in (4, 5, 6, 7)]
    cached = run_phases(CHECKPOINT, split_phases(IDS[:4], IDS[4:], 11))
    for full, step in zip(passes, cached, strict=True):
        error = full.activations.last_logits - step.activations.last_logits
        assert np.abs(error).max() < 1e-12


@pytest.mark.parametrize("use_cache", [True, False])
def test_work_counts_the_pairs_that_the_pass_shows(use_cache):
    config = CHECKPOINT.config
    for found in run_phases(CHECKPOINT, split_phases(IDS[:4], IDS[4:], 11), use_cache):
        work = pass_work(config, found)
        scores = found.activations.blocks[0].scores
        # One pair of a query and a key costs d_h multiply-adds in each layer and head.
        assert work.visible.scores == int(found.visible().sum()) * 3 * 3 * 5
        assert work.dense.scores == scores.size * 3 * 5
        assert work.head_rows == found.rows == found.activations.logits.shape[1]


def test_sizes_are_those_of_the_config():
    sizes = decoder_sizes(CHECKPOINT.config)
    assert (sizes.layers, sizes.width, sizes.heads, sizes.head_dim) == (3, 15, 3, 5)
    assert (sizes.mlp_width, sizes.vocabulary, sizes.context) == (23, 13, 11)
