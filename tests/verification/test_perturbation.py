"""Past queries move nothing; past keys and values do."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.rows import REQUEST
from tests.strategies import checkpoints, prompts
from tinydec.errors import InputError
from tinydec.model.cache import KVCache
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.model.prefill import prefill
from tinydec.model.storage import load_checkpoint
from tinydec.verification.perturbation import decode_with_all_queries, perturb_past

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
IDS = [4, 0, 12, 7, 9]


def past_of(checkpoint, ids):
    return prefill(checkpoint, KVCache(checkpoint, REQUEST), [ids], REQUEST)


@settings(max_examples=25)
@given(st.data(), checkpoints("float32"), st.sampled_from([-3.0, 0.01, 1.0, 10.0]))
def test_no_past_query_moves_a_single_logit(data, checkpoint, amount):
    (ids,) = data.draw(prompts(checkpoint.config, min_size=2))
    found = perturb_past(checkpoint, ids, amount)
    assert [move.position for move in found.moves] == list(range(len(ids) - 1))
    assert found.largest_query_move == 0.0
    assert all(move.query_scores > 0 for move in found.moves)  # the amount did arrive
    assert all(move.value_logits > 0 for move in found.moves)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_past_key_and_value_of_the_frozen_model_moves_the_logits(dtype):
    found = perturb_past(load_checkpoint().cast(dtype), (0, 2, 3, 5), 1.0)
    assert found.largest_query_move == 0.0
    assert min(min(m.key_logits, m.value_logits) for m in found.moves) > 0.05


def test_nothing_added_moves_nothing():
    for move in perturb_past(CHECKPOINT, IDS, 0.0).moves:
        assert move[1:] == (0.0, 0.0, 0.0, 0.0)


def test_recomputation_is_the_decode_step():
    found = perturb_past(CHECKPOINT, IDS, 1.0)
    assert found.recompute_error < 1e-12
    whole = decode_with_all_queries(CHECKPOINT, past_of(CHECKPOINT, IDS[:-1]), IDS[-1])
    reference = full_forward(CHECKPOINT, IDS).last_logits[0]
    assert np.abs(whole.logits - reference).max() < 1e-12


@pytest.mark.parametrize("position", [0, 2, 3])
@pytest.mark.parametrize(("tensor", "field"), [("k", "key_logits"), ("v", "value_logits")])
def test_effect_of_a_past_row_is_that_of_an_independent_computation(position, tensor, field):
    """The recomputation takes past keys and values from elsewhere than the cache."""
    past = past_of(CHECKPOINT, IDS[:-1])
    blocks = []
    for block in past.blocks:
        moved = getattr(block, tensor).copy()
        moved[:, :, position] += 0.5
        blocks.append(block._replace(**{tensor: moved}))
    plain = decode_with_all_queries(CHECKPOINT, past, IDS[-1]).logits
    moved = decode_with_all_queries(CHECKPOINT, past._replace(blocks=tuple(blocks)), IDS[-1])
    expected = np.abs(moved.logits - plain).max()
    assert expected > 1e-3
    found = perturb_past(CHECKPOINT, IDS, 0.5).moves[position]
    assert getattr(found, field) == pytest.approx(expected, abs=1e-12)


def test_its_own_query_does_move_the_logits(monkeypatch):
    """Negative: were the new query the one to change, the check would see it."""
    concatenate, calls = np.concatenate, itertools.count()

    def moved(parts, axis):
        old, new = parts
        if next(calls) % 3 == 0:  # queries come first of the three
            new = new + 1.0
        return concatenate((old, new), axis=axis)

    past = past_of(CHECKPOINT, IDS[:-1])
    plain = decode_with_all_queries(CHECKPOINT, past, IDS[-1]).logits
    monkeypatch.setattr(np, "concatenate", moved)
    assert np.abs(decode_with_all_queries(CHECKPOINT, past, IDS[-1]).logits - plain).max() > 1e-3


@pytest.mark.parametrize(
    ("ids", "amount", "message"),
    [
        ([4], 1.0, "expected at least 2 tokens, found 1"),
        ([4, 99], 1.0, "expected 0 to 12, found 99"),
        ([4] * 12, 1.0, "at most 11"),
        ([4, 0], float("nan"), "expected a finite amount, found nan"),
    ],
)
def test_wrong_input_is_refused(ids, amount, message):
    with pytest.raises(InputError, match=message):
        perturb_past(CHECKPOINT, ids, amount)
