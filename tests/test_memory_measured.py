"""Bytes read off real arrays, against the formula and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.memory.measured import (
    decoder_sizes,
    measure_footprint,
    measure_payload,
    temporaries,
)
from tinydec.memory.payload import cache_bytes, cache_scalars
from tinydec.model import cache as cache_module
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.model.storage import load_checkpoint

FROZEN = load_checkpoint()
OTHER = random_checkpoint(ModelConfig(7, 11, 15, 3, 5, 13), 2, "float32")


def test_frozen_model_takes_64_bytes_for_each_token() -> None:
    found = measure_payload(FROZEN, range(5))
    assert [m.valid_bytes for m in found] == [0, 64, 128, 192, 256]
    assert {m.allocated_bytes for m in found} == {256}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_bytes_are_those_of_the_formula(dtype: str, batch: int) -> None:
    config = OTHER.config
    for measure in measure_payload(OTHER.cast(dtype), [0, 1, 2, 5, 11], batch):
        scalars = cache_scalars(
            layers=config.n_layer, batch=batch, kv_heads=config.n_head, tokens=measure.tokens,
            head_dim=config.d_h,
        )  # fmt: skip
        assert measure.valid_bytes == cache_bytes(scalars, dtype)
        assert measure.allocated_bytes * measure.tokens == measure.valid_bytes * 11


def test_a_cache_that_keeps_values_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self):
        return sum(layer.valid()[1].nbytes for layer in self.layers)

    monkeypatch.setattr(cache_module.KVCache, "valid_nbytes", half)
    assert measure_payload(FROZEN, [4])[0].valid_bytes != 256


@pytest.mark.parametrize("lengths", [[2, 1], [0, 5], [-1]])
def test_lengths_that_no_cache_has_are_refused(lengths: list[int]) -> None:
    with pytest.raises(InputError, match="expected ascending numbers from 0 to 4"):
        measure_payload(FROZEN, lengths)


def test_footprint_of_the_frozen_model_by_hand() -> None:
    found = measure_footprint(FROZEN, 3)
    assert (found.payload, found.unused, found.weights) == (192, 64, 368 * 4)
    # One decode step at t = 3, in scalars, per layer: 7 rows of d = 4 (ln_1, attn_output,
    # residual_mid, ln_2, mlp_output, residual; the mix too), q k v of d, two score rows of
    # h x t = 6, two MLP rows of 8; around them 3 embeddings and ln_f of 4 and 8 logits.
    per_layer = 7 * 4 + 3 * 4 + 2 * 6 + 2 * 8
    assert found.decode == 4 * (2 * per_layer + 4 * 4 + 8)
    # Prefill of 3: the rows three times, scores h x 3 x 3 each.
    per_layer = 3 * (7 * 4 + 3 * 4 + 2 * 8) + 2 * 2 * 9
    assert found.prefill == 4 * (2 * per_layer + 3 * (4 * 4 + 8))


def test_records_grow_with_the_tokens_and_stay_beside_the_arrays() -> None:
    sizes = [measure_footprint(OTHER, tokens).records for tokens in (1, 2, 11)]
    assert sizes == sorted(set(sizes))
    small, large = (
        measure_footprint(OTHER.cast(dtype), 11).records for dtype in ("float16", "float64")
    )
    assert small == large


def test_a_batch_multiplies_payload_and_temporaries_but_not_weights() -> None:
    one, three = (measure_footprint(OTHER, 5, batch) for batch in (1, 3))
    assert three.payload == 3 * one.payload
    assert three.unused == 3 * one.unused
    assert three.weights == one.weights
    positions = 15 * 4  # the row of wpe is read once for the whole batch
    assert three.decode - positions == 3 * (one.decode - positions)


def test_tokens_outside_the_context_are_refused() -> None:
    for tokens in (0, 12):
        with pytest.raises(InputError, match="from 0 to 11"):
            measure_footprint(OTHER, tokens)


def test_temporaries_leave_out_what_the_cache_holds() -> None:
    found = full_forward(OTHER, [1, 2, 3])
    every = sum(array.nbytes for _, array in found.named())
    stored = sum(b.keys.nbytes + b.values.nbytes for b in found.blocks)
    assert temporaries(found) == every - stored > 0


def test_sizes_are_read_off_the_config() -> None:
    sizes = decoder_sizes(OTHER.config)
    assert (sizes.layers, sizes.width, sizes.heads, sizes.head_dim) == (3, 15, 5, 3)
    assert (sizes.mlp_width, sizes.vocabulary, sizes.context) == (13, 7, 11)
    assert np.prod([sizes.heads, sizes.head_dim]) == OTHER.config.n_embd
