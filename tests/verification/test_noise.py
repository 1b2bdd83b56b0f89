"""Noise of random models: drawn from a seed, measured between the two correct paths."""

from __future__ import annotations

import numpy as np
import pytest

from tinydec.model import decode
from tinydec.model.full import full_forward
from tinydec.runspec import DTYPES
from tinydec.training import FROZEN_CONFIG
from tinydec.verification import noise
from tinydec.verification.equivalence import verify_prefixes
from tinydec.verification.noise import (
    LEAST_WIDTH,
    draw_checkpoint,
    draw_config,
    measure_noise,
    path_difference,
)
from tinydec.verification.prefixes import PrefixCase
from tinydec.verification.scalar_loop import scalar_logits


def drawn(index: int):
    generator = np.random.default_rng([5, index])
    checkpoint = draw_checkpoint(draw_config(generator), generator)
    ids = generator.integers(checkpoint.config.vocab_size, size=(2, checkpoint.config.n_positions))
    return checkpoint, ids


def test_same_seed_same_models_and_another_seed_others() -> None:
    assert measure_noise(3, seed=7) == measure_noise(3, seed=7)
    assert measure_noise(3, seed=7) == measure_noise(5, seed=7)[:3]
    assert measure_noise(3, seed=7) != measure_noise(3, seed=8)


def test_sizes_vary_and_every_model_is_wide_enough() -> None:
    configs = [model.config for model in measure_noise(30, dtypes=("float64",))]
    for name in ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size", "n_inner"):
        assert len({getattr(config, name) for config in configs}) >= 3
    assert min(config.n_embd for config in configs) >= LEAST_WIDTH


def test_given_sizes_are_those_of_every_model() -> None:
    models = measure_noise(3, seed=7, dtypes=("float32",), sizes=FROZEN_CONFIG)
    assert {model.config for model in models} == {FROZEN_CONFIG}
    assert len({model.errors["float32"] for model in models}) > 1


def test_noise_shrinks_with_the_precision_of_the_number_format() -> None:
    models = measure_noise(12)
    medians = {dtype: np.median([m.errors[dtype] for m in models]) for dtype in DTYPES}
    assert 0 < medians["float64"] < 1e-12 < 1e-7 < medians["float32"] < 1e-4
    assert medians["float32"] < max(m.errors["float16"] for m in models) < 0.1


@pytest.mark.parametrize("index", range(4))
def test_difference_is_that_of_the_equivalence_in_the_same_split(index: int) -> None:
    checkpoint, ids = drawn(index)
    half = (ids.shape[1] + 1) // 2
    # The report holds B = 1 and the noise B = 2: a sum may be taken in another order there.
    alone = [path_difference(checkpoint, ids[row : row + 1]) for row in range(2)]
    cases = [PrefixCase("drawn", len(row), tuple(row), "") for row in ids.tolist()]
    report = verify_prefixes(checkpoint, dtype="float64", cases=cases)
    for found, prefix in zip(alone, report.prefixes, strict=True):
        split = next(s for s in prefix.splits if s.prefill_length == half)
        assert found == split.errors[-1].max()


def test_reference_is_that_of_the_scalar_loop() -> None:
    checkpoint, ids = drawn(2)
    logits = full_forward(checkpoint, ids).last_logits
    for row, prompt in zip(logits, ids.tolist(), strict=True):
        assert np.abs(row - scalar_logits(checkpoint, prompt)[-1]).max() < 1e-11


def test_a_fault_in_the_cached_path_shows_in_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = measure_noise(6, dtypes=("float64",))
    right = decode.decode_step

    def without_the_last_token(checkpoint, cache, ids, request):
        return right(checkpoint, cache, [0] * len(ids), request)

    monkeypatch.setattr(noise, "decode_step", without_the_last_token)
    after = measure_noise(6, dtypes=("float64",))
    assert max(m.errors["float64"] for m in before) < 1e-12
    assert min(m.errors["float64"] for m in after) > 1e-3
