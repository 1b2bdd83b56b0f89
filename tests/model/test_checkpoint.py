"""A checkpoint: its digest, and that nothing in it changes."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_checkpoint, random_tensors
from tests.strategies import checkpoints
from tinydec.errors import InputError
from tinydec.model.checkpoint import DTYPES, Checkpoint, canonical_json
from tinydec.model.config import ModelConfig
from tinydec.model.storage import checkpoint_bytes, load_checkpoint, save_checkpoint
from tinydec.model.vocabulary import Vocabulary

CONFIG = ModelConfig(7, 5, 6, 2, 2, 11, tie_word_embeddings=False)
CHECKPOINT = random_checkpoint(CONFIG, 3)


# Digest -----------------------------------------------------------------------------------------


@given(st.data())
def test_digest_changes_with_any_single_element(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CHECKPOINT.tensors)))
    tensors = {key: array.copy() for key, array in CHECKPOINT.tensors.items()}
    flat = tensors[name].reshape(-1)
    place = data.draw(st.integers(0, flat.size - 1))
    flat[place] = np.nextafter(flat[place], np.inf)
    changed = CHECKPOINT.with_tensors(tensors)
    assert changed.digest != CHECKPOINT.digest
    assert changed != CHECKPOINT


@pytest.mark.parametrize(
    ("name", "value"),
    [("layer_norm_epsilon", 1e-6), ("activation_function", "gelu"), ("n_head", 3)],
)
def test_digest_changes_with_the_config(name: str, value: object) -> None:
    config = ModelConfig.from_dict({**CONFIG.to_dict(), name: value})
    other = Checkpoint.build(config, CHECKPOINT.vocabulary, CHECKPOINT.tensors)
    assert other.digest != CHECKPOINT.digest


@pytest.mark.parametrize(
    "vocabulary",
    [
        Vocabulary(("t0", "t1", "t2", "t3", "t4", "t5", "u")),
        Vocabulary(("t1", "t0", "t2", "t3", "t4", "t5", "t6")),
        Vocabulary(("t0", "t1", "t2", "t3", "t4", "t5", "t6"), eos="t1"),
        Vocabulary(("t0", "t1", "t2", "t3", "t4", "t5", "t6"), bos="t1"),
    ],
)
def test_digest_changes_with_the_vocabulary(vocabulary: Vocabulary) -> None:
    other = Checkpoint.build(CONFIG, vocabulary, CHECKPOINT.tensors)
    assert other.digest != CHECKPOINT.digest


def test_digest_changes_with_the_dtype() -> None:
    zeros = CHECKPOINT.with_tensors({n: np.zeros_like(a) for n, a in CHECKPOINT.tensors.items()})
    assert len({zeros.cast(dtype).digest for dtype in DTYPES}) == len(DTYPES)


def test_digest_ignores_provenance_order_and_memory_layout() -> None:
    tensors = {n: np.asfortranarray(a) for n, a in reversed(list(CHECKPOINT.tensors.items()))}
    other = Checkpoint.build(CONFIG, CHECKPOINT.vocabulary, tensors, {"seed": 5})
    assert other.digest == CHECKPOINT.digest
    assert other == CHECKPOINT
    assert hash(other) == hash(CHECKPOINT)


def test_foreign_byte_order_becomes_native_with_the_same_digest_and_bytes() -> None:
    tensors = {n: a.astype(a.dtype.newbyteorder(">")) for n, a in CHECKPOINT.tensors.items()}
    other = CHECKPOINT.with_tensors(tensors)
    assert other.digest == CHECKPOINT.digest
    assert other.dtype.isnative
    assert checkpoint_bytes(other) == checkpoint_bytes(CHECKPOINT)


@given(checkpoints(), st.sampled_from(DTYPES))
def test_digest_and_values_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, checkpoint: Checkpoint, dtype: str
) -> None:
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    saved = checkpoint.cast(dtype)
    save_checkpoint(saved, path)
    loaded = load_checkpoint(path)
    assert (loaded.digest, loaded.config, loaded.vocabulary, loaded.mode) == (
        saved.digest,
        saved.config,
        saved.vocabulary,
        "evaluation",
    )
    assert all(np.array_equal(loaded.tensors[name], saved.tensors[name]) for name in saved.tensors)
    assert path.read_bytes() == checkpoint_bytes(loaded) == checkpoint_bytes(saved)


def test_provenance_survives_a_file(tmp_path) -> None:
    provenance = {"seed": 103, "settings": {"decay": 0.03}, "note": "Größe"}
    built = Checkpoint.build(CONFIG, CHECKPOINT.vocabulary, CHECKPOINT.tensors, provenance)
    save_checkpoint(built, tmp_path / "a.safetensors")
    assert dict(load_checkpoint(tmp_path / "a.safetensors").provenance) == provenance


# Nothing mutates --------------------------------------------------------------------------------


def test_arrays_refuse_writing() -> None:
    for array in CHECKPOINT.tensors.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(TypeError):
        CHECKPOINT.tensors["wte.weight"] = np.zeros((7, 6))  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        CHECKPOINT.digest = "0"  # type: ignore[misc]


def test_working_views_refuse_writing() -> None:
    weights = CHECKPOINT.weights
    norms = [weights.ln_f, *(block.ln_1 for block in weights.blocks)]
    blocks = [array for block in weights.blocks for array in block[1:5] if array is not None]
    for array in [weights.wte, weights.wpe, weights.head, *blocks, *(a for n in norms for a in n)]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_build_copies_so_that_the_giver_cannot_write() -> None:
    tensors = random_tensors(CONFIG, 3)
    built = Checkpoint.build(CONFIG, CHECKPOINT.vocabulary, tensors)
    tensors["wte.weight"][0, 0] += 1
    tensors["ln_f.bias"][:] = 9
    assert np.array_equal(built.tensors["wte.weight"], CHECKPOINT.tensors["wte.weight"])
    assert np.array_equal(built.tensors["ln_f.bias"], CHECKPOINT.tensors["ln_f.bias"])
    assert not any(np.shares_memory(built.tensors[name], tensors[name]) for name in tensors)


def test_mode_is_evaluation_and_another_mode_is_another_object() -> None:
    training = CHECKPOINT.in_mode("training")
    assert (CHECKPOINT.mode, training.mode) == ("evaluation", "training")
    assert training.digest == CHECKPOINT.digest


# Number formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_cast_changes_every_tensor(dtype: str) -> None:
    other = CHECKPOINT.cast(dtype)
    assert {array.dtype.name for array in other.tensors.values()} == {dtype}
    assert other.cast(dtype) is other


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "", "float128", None, 4])
def test_unknown_dtype_is_refused(dtype) -> None:
    with pytest.raises(InputError, match="dtype: expected one of float16, float32, float64, found"):
        CHECKPOINT.cast(dtype)


def test_cast_that_overflows_is_refused() -> None:
    tensors = {**CHECKPOINT.tensors, "ln_f.bias": np.full(6, 1e5)}
    with pytest.raises(InputError, match=r"ln_f.bias: expected finite values, found inf at \[0\]"):
        CHECKPOINT.with_tensors(tensors).cast("float16")


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("wte.weight", np.zeros((7, 5)), r"wte.weight: expected shape \(7, 6\), found \(7, 5\)"),
        ("h.1.ln_2.bias", np.zeros((6, 1)), r"h.1.ln_2.bias: expected shape \(6,\)"),
        ("ln_f.bias", np.zeros(6, "float32"), "ln_f.bias: expected dtype float64, found float32"),
        ("ln_f.bias", np.zeros(6, int), "ln_f.bias: expected dtype float64, found int64"),
        ("wte.weight", np.zeros((7, 6), int), "expected dtype float16 or float32 or float64"),
        ("ln_f.bias", np.full(6, np.nan), r"ln_f.bias: expected finite values, found nan at \[0\]"),
        ("ln_f.bias", np.full(6, -np.inf), "found -inf"),
        ("h.2.ln_1.bias", np.zeros(6), "found 1 more: 'h.2.ln_1.bias'"),
        ("a\nb", np.zeros(6), r"found 1 more: 'a\\nb'"),
    ],
)
def test_wrong_tensor_is_refused(name: str, array: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message) as info:
        CHECKPOINT.with_tensors({**CHECKPOINT.tensors, name: array})
    assert len(str(info.value).splitlines()) == 1


@pytest.mark.parametrize("name", sorted(CONFIG.tensor_shapes()))
def test_each_missing_tensor_is_refused(name: str) -> None:
    rest = {key: array for key, array in CHECKPOINT.tensors.items() if key != name}
    with pytest.raises(InputError, match=f"1 of them missing: {name}$"):
        CHECKPOINT.with_tensors(rest)


def test_vocabulary_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="expected vocab_size = 7 tokens, found 8"):
        Checkpoint.build(CONFIG, Vocabulary.numbered(8), CHECKPOINT.tensors)


def test_a_billion_layers_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="n_layer = 1000000000 layers, found 29 in all"):
        Checkpoint.build(replace(CONFIG, n_layer=10**9), CHECKPOINT.vocabulary, CHECKPOINT.tensors)


def test_canonical_json_depends_on_values_alone() -> None:
    assert canonical_json({"b": [1, 0.1], "a": "ß"}) == '{"a":"ß","b":[1,0.1]}'
    assert canonical_json({"a": "ß", "b": [1, 0.1]}) == '{"a":"ß","b":[1,0.1]}'
