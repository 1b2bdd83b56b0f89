"""Files as transformers writes them, and what is refused among them."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tests.golden_files import GOLDEN, SAVED, read_golden
from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.full import full_forward
from tinydec.model.storage import load_checkpoint, save_checkpoint


def saved_copy(folder: Path, name: str = "tied_head") -> Path:
    """Copy a folder that `save_pretrained` wrote; return its model file."""
    shutil.copytree(GOLDEN / "hugging_face" / name, folder, dirs_exist_ok=True)
    return folder / "model.safetensors"


def change_config(file: Path, **changes: Any) -> None:
    path = file.with_name("config.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, **changes}), encoding="utf-8")


def change_tensors(file: Path, change) -> None:
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def refusal(file: Path) -> str:
    with pytest.raises(InputError) as info:
        load_checkpoint(file)
    assert len(str(info.value).splitlines()) == 1
    assert "expected" in str(info.value)
    assert "found" in str(info.value)
    return str(info.value)


# What save_pretrained writes --------------------------------------------------------------------


@pytest.mark.parametrize("name", SAVED)
def test_saved_model_gives_its_golden_logits(name: str) -> None:
    checkpoint = load_checkpoint(GOLDEN / "hugging_face" / name / "model.safetensors")
    golden = read_golden(f"hugging_face/{name}/logits.json")
    assert checkpoint.digest == golden["checkpoint_digest"]
    logits = full_forward(checkpoint.cast("float64"), golden["token_ids"]).logits[0]
    assert np.abs(logits - np.array(golden["float64"])).max() < 1e-12
    single = full_forward(checkpoint, golden["token_ids"]).logits[0]
    assert np.abs(single - np.array(golden["float64"])).max() < 1e-5


@pytest.mark.parametrize("name", SAVED)
def test_saved_tensors_are_the_weights_that_were_put_in(name: str) -> None:
    checkpoint = load_checkpoint(GOLDEN / "hugging_face" / name / "model.safetensors")
    seed = read_golden(f"hugging_face/{name}/logits.json")["seed"]
    assert random_checkpoint(checkpoint.config, seed, "float32").digest == checkpoint.digest
    assert checkpoint.config.tie_word_embeddings == (name == "tied_head")


def test_saved_again_in_the_own_format_it_is_the_same_checkpoint(tmp_path: Path) -> None:
    checkpoint = load_checkpoint(saved_copy(tmp_path))
    save_checkpoint(checkpoint, tmp_path / "own.safetensors")
    assert load_checkpoint(tmp_path / "own.safetensors") == checkpoint


# Variants of such files -------------------------------------------------------------------------


def test_mask_buffers_and_a_second_copy_of_the_tied_head_are_dropped(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)
    expected = load_checkpoint(file)

    def add(tensors: dict) -> None:
        tensors["transformer.h.0.attn.bias"] = np.tril(np.ones((1, 1, 7, 7), np.uint8))
        tensors["transformer.h.0.attn.masked_bias"] = np.array([-1e4], np.float32)
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"].copy()

    change_tensors(file, add)
    assert load_checkpoint(file) == expected


def test_tied_head_with_other_values_is_refused(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)

    def add(tensors: dict) -> None:
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"] + np.float32(1)

    change_tensors(file, add)
    assert "lm_head.weight: expected the values of wte.weight" in refusal(file)


def test_names_without_prefix_and_absent_attention_biases_load(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)

    def strip(tensors: dict) -> None:
        for name in list(tensors):
            array = tensors.pop(name)
            if not name.endswith(("c_attn.bias", "attn.c_proj.bias")):
                tensors[name.removeprefix("transformer.")] = array

    change_tensors(file, strip)
    assert not load_checkpoint(file).config.attention_bias


def test_inner_width_is_four_times_the_width_unless_given(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)
    change_config(file, n_inner=None)
    assert "expected shape (6, 24), found (6, 13)" in refusal(file)


def test_vocabulary_file_names_the_tokens(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)
    words = {f"w{token_id}": token_id for token_id in reversed(range(11))}
    (tmp_path / "vocab.json").write_text(json.dumps(words), encoding="utf-8")
    change_config(file, bos_token_id=0, eos_token_id=10)
    vocabulary = load_checkpoint(file).vocabulary
    assert vocabulary.tokens == tuple(f"w{token_id}" for token_id in range(11))
    assert (vocabulary.bos_id, vocabulary.eos_id) == (0, 10)


@pytest.mark.parametrize("token_id", [-1, 11, 50256, True, "0", None, [0]])
def test_special_id_that_is_none_of_the_vocabulary_is_left_out(
    tmp_path: Path, token_id: Any
) -> None:
    file = saved_copy(tmp_path)
    words = {f"w{n}": n for n in range(11)}
    (tmp_path / "vocab.json").write_text(json.dumps(words), encoding="utf-8")
    change_config(file, bos_token_id=token_id, eos_token_id=token_id)
    vocabulary = load_checkpoint(file).vocabulary
    assert (vocabulary.bos_id, vocabulary.eos_id) == (None, None)


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        {f"w{n}": n for n in range(10)},
        {f"w{n}": n + 1 for n in range(11)},
        {f"w{n}": str(n) for n in range(11)},
        {f"w{n}": n or "0" for n in range(11)},
        {f"w{n}": float(n) for n in range(11)},
        {f"w{n}": [n] for n in range(11)},
        {f"w {n}": n for n in range(11)},
        [],
    ],
)
def test_malformed_vocabulary_file_is_refused(tmp_path: Path, words: Any) -> None:
    file = saved_copy(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps(words), encoding="utf-8")
    assert "vocab" in refusal(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "model_type: expected 'gpt2', found 'llama'"),
        ({"model_type": None}, "model_type: expected 'gpt2', found None"),
        ({"scale_attn_weights": False}, "scale_attn_weights: expected True, found False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "expected False, found True"),
        ({"add_cross_attention": True}, "add_cross_attention: expected False, found True"),
        ({"n_embd": "6"}, "n_embd: expected an integer"),
        ({"n_embd": None, "n_inner": None}, "n_embd: expected an integer"),
        ({"n_head": 4}, "expected a multiple of n_head = 4"),
        ({"n_layer": 3}, "missing: h.2.ln_1.weight"),
        ({"n_layer": 10**9}, "n_layer = 1000000000 layers"),
        ({"vocab_size": 10**9}, "vocab_size = 1000000000 rows, found shape (11, 6)"),
        ({"vocab_size": 1}, "vocab_size = 1 rows, found shape (11, 6)"),
        ({"activation_function": "relu"}, "expected one of gelu_new, gelu, found 'relu'"),
        ({"tie_word_embeddings": False}, "missing: lm_head.weight"),
        ({"tie_word_embeddings": "yes"}, "expected true or false, found 'yes'"),
        ({"layer_norm_epsilon": "small"}, "expected a finite float > 0, found 'small'"),
    ],
)
def test_config_of_another_decoder_is_refused(tmp_path: Path, changes: dict, message: str) -> None:
    file = saved_copy(tmp_path)
    change_config(file, **changes)
    assert message in refusal(file)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000, "\xff", '{"n_embd": 6}'])
def test_config_file_that_is_no_gpt2_config_is_refused(tmp_path: Path, text: str) -> None:
    file = saved_copy(tmp_path)
    file.with_name("config.json").write_bytes(text.encode("latin-1"))
    assert "config.json" in refusal(file)


def test_missing_config_file_is_refused(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)
    file.with_name("config.json").unlink()
    assert "a config.json beside the file, found neither" in refusal(file)


def test_tensor_with_and_without_prefix_is_refused(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)
    change_tensors(file, lambda t: t.update({"ln_f.bias": t["transformer.ln_f.bias"]}))
    assert "expected 'ln_f.bias' once" in refusal(file)


def test_missing_token_embedding_is_refused(tmp_path: Path) -> None:
    file = saved_copy(tmp_path)
    change_tensors(file, lambda tensors: tensors.pop("transformer.wte.weight"))
    assert "wte.weight: expected vocab_size = 11 rows, found no such tensor" in refusal(file)


@settings(max_examples=200)
@given(data=st.data())
def test_any_setting_replaced_by_anything_loads_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = saved_copy(tmp_path_factory.getbasetemp() / "fuzz-hugging-face")
    settings_ = json.loads(file.with_name("config.json").read_text(encoding="utf-8"))
    name = data.draw(st.sampled_from(sorted(settings_)))
    simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
    value = data.draw(simple | st.lists(simple, max_size=2))
    change_config(file, **{name: value})
    try:
        loaded = load_checkpoint(file)
    except InputError as error:
        message = str(error)
    else:
        message = "loaded"
        assert loaded.config.n_embd == 6
    assert len(message.splitlines()) == 1
