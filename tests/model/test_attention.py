"""What attention must do in each of the three places where it is written."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tests.rows import REQUEST, distance
from tinydec.model.activations import Activations
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.prefill import prefill
from tinydec.verification.scalar_loop import scalar_forward

CONFIG = ModelConfig(13, 11, 15, 2, 3, 23)
IDS = [3, 1, 4, 1, 5]


def full(checkpoint: Checkpoint) -> Activations:
    return full_forward(checkpoint, IDS)


def prefilled(checkpoint: Checkpoint) -> Activations:
    return prefill(checkpoint, KVCache(checkpoint, REQUEST), IDS, REQUEST)


def decoded(checkpoint: Checkpoint) -> Activations:
    cache = KVCache(checkpoint, REQUEST)
    return [decode_step(checkpoint, cache, [token_id], REQUEST) for token_id in IDS][-1]


PATHS = pytest.mark.parametrize("path", [full, prefilled, decoded])


def with_scaled_queries(factor: float) -> Checkpoint:
    """A decoder whose scores are ``factor`` times as large as usual."""
    checkpoint = random_checkpoint(CONFIG, 7)
    tensors = {name: array.copy() for name, array in checkpoint.tensors.items()}
    for layer in range(CONFIG.n_layer):
        tensors[f"h.{layer}.attn.c_attn.weight"][:, : CONFIG.n_embd] *= factor
        tensors[f"h.{layer}.attn.c_attn.bias"][: CONFIG.n_embd] *= factor
    return checkpoint.with_tensors(tensors)


@PATHS
def test_scores_whose_exponential_overflows_still_give_probabilities(
    path: Callable[[Checkpoint], Activations],
) -> None:
    checkpoint = with_scaled_queries(2000.0)
    found, expected = path(checkpoint), scalar_forward(checkpoint, IDS)
    for layer, block in enumerate(found.blocks):
        scores = block.scores[np.isfinite(block.scores)]
        assert np.abs(scores).max() > 710  # exp(710) is the end of float64
        assert block.attention.sum(axis=-1) == pytest.approx(1)
        assert (
            distance(block.attention[:, :, -1], expected[f"h.{layer}.attention"][:, :, -1]) < 1e-9
        )


@PATHS
def test_equal_scores_give_equal_weights_to_the_visible_keys(
    path: Callable[[Checkpoint], Activations],
) -> None:
    for block in path(with_scaled_queries(0.0)).blocks:
        assert (block.scores[:, :, -1] == 0).all()
        assert block.attention[:, :, -1] == pytest.approx(1 / len(IDS))
        mean = block.values.mean(axis=2)  # (B, h, t, d_h) -> (B, h, d_h)
        assert block.mix[:, :, -1] == pytest.approx(mean)


@PATHS
def test_scores_are_scaled_by_the_root_of_the_head_width(
    path: Callable[[Checkpoint], Activations],
) -> None:
    block = path(random_checkpoint(CONFIG, 7)).blocks[1]
    by_hand = sum(block.q[0, 2, -1, i] * block.keys[0, 2, 3, i] for i in range(5)) / 5**0.5
    assert block.scores[0, 2, -1, 3] == pytest.approx(by_hand, rel=1e-12)
