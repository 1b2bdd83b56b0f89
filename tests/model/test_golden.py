"""Golden logits of Hugging Face GPT-2: up to date, and met by both paths."""

from pathlib import Path

import numpy as np
import pytest

from tests.golden_files import random_cases, read_golden
from tests.random_models import random_checkpoint
from tinydec.corpus import training_sequences
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.prefill import prefill
from tinydec.model.storage import load_checkpoint

CASES = random_cases()
FROZEN = read_golden("frozen_logits.json")
TOLERANCES = {"float64": 1e-12, "float32": 1e-5}


def full(checkpoint: Checkpoint, ids: list[int]) -> np.ndarray:
    return full_forward(checkpoint, ids).logits[0]


def prefilled(checkpoint: Checkpoint, ids: list[int]) -> np.ndarray:
    return prefill(checkpoint, KVCache(checkpoint, "r"), ids, "r").logits[0]


def decoded(checkpoint: Checkpoint, ids: list[int]) -> np.ndarray:
    cache = KVCache(checkpoint, "r")
    return np.concatenate([decode_step(checkpoint, cache, [i], "r").logits[0] for i in ids])


PATHS = pytest.mark.parametrize("path", [full, prefilled, decoded])


def test_frozen_golden_logits_belong_to_the_shipped_checkpoint() -> None:
    """When this fails, make the file again: see tests/golden/make_logits.py."""
    assert FROZEN["checkpoint_digest"] == load_checkpoint().digest


def test_frozen_golden_logits_cover_the_16_prefixes() -> None:
    checkpoint = load_checkpoint()
    expected = [
        (" ".join(tokens[1:-1]), length, list(checkpoint.vocabulary.encode(tokens[:length])))
        for tokens in training_sequences()
        for length in range(1, 5)
    ]
    found = [(p["pattern"], p["length"], p["token_ids"]) for p in FROZEN["prefixes"]]
    assert found == expected
    assert len(found) == 16
    assert len({tuple(ids) for _, _, ids in found}) == 11


@pytest.mark.parametrize("name", ["frozen_logits.json", "random_logits.json"])
def test_golden_files_say_which_versions_made_them(name: str, repository: Path) -> None:
    golden = read_golden(name)
    pins = (repository / "benchmarks" / "requirements.txt").read_text(encoding="utf-8")
    for package in ("torch", "transformers"):
        assert f"{package}=={golden[package].split('+')[0]}\n" in pins + "\n"


@PATHS
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_frozen_logits_are_those_of_hugging_face(path, dtype: str) -> None:
    checkpoint = load_checkpoint().cast(dtype)
    for prefix in FROZEN["prefixes"]:
        logits = path(checkpoint, prefix["token_ids"])
        assert logits.dtype == dtype
        golden = np.array(prefix[dtype])
        assert golden.shape == logits.shape == (prefix["length"], 8)
        assert np.abs(logits - golden).max() <= TOLERANCES[dtype]


@PATHS
def test_another_checkpoint_misses_the_frozen_golden_logits(path) -> None:
    shipped = load_checkpoint()
    bias = shipped.tensors["h.0.mlp.c_fc.bias"] + np.float32(1e-3)
    changed = shipped.with_tensors({**shipped.tensors, "h.0.mlp.c_fc.bias": bias})
    worst = max(
        np.abs(path(changed, prefix["token_ids"]) - np.array(prefix["float32"])).max()
        for prefix in FROZEN["prefixes"]
    )
    assert worst > 10 * TOLERANCES["float32"]


@PATHS
@pytest.mark.parametrize("name", CASES)
def test_random_decoders_have_the_logits_of_hugging_face(path, name: str) -> None:
    checkpoint, ids, golden = CASES[name]
    assert len(ids) == checkpoint.config.n_positions
    logits = path(checkpoint, ids)
    assert logits.shape == golden.shape
    assert np.abs(logits - golden).max() <= 1e-12 * np.abs(golden).max()


@pytest.mark.parametrize("index", range(len(CASES)))
def test_random_weights_are_the_recorded_ones(index: int) -> None:
    case = read_golden("random_logits.json")["cases"][index]
    config = ModelConfig.from_dict(case["config"])
    assert random_checkpoint(config, case["seed"]).digest == case["checkpoint_digest"]
    assert random_checkpoint(config, case["seed"] + 1).digest != case["checkpoint_digest"]


def test_random_decoders_try_every_option() -> None:
    configs = [checkpoint.config for checkpoint, _, _ in CASES.values()]
    for name in ("attention_bias", "tie_word_embeddings", "activation_function"):
        assert len({getattr(config, name) for config in configs}) == 2
    # Norms of small and of large widths compute their means differently.
    averages = {c.weights.ln_f.average.shape[1] == 1 for c, _, _ in CASES.values()}
    assert averages == {True, False}
