"""Files of checkpoints: whatever is wrong with one is said in one line."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import (
    FROZEN_PATH,
    METADATA_KEY,
    checkpoint_bytes,
    load_checkpoint,
    save_checkpoint,
)

CONFIG = ModelConfig(7, 5, 6, 2, 2, 11, attention_bias=False)
CHECKPOINT = random_checkpoint(CONFIG, 3, "float32")
VALID = checkpoint_bytes(CHECKPOINT)
HEADER_END = 8 + struct.unpack("<Q", VALID[:8])[0]


def header() -> dict[str, Any]:
    """The JSON under the file's one metadata key."""
    text = json.loads(VALID[8:HEADER_END])["__metadata__"][METADATA_KEY]
    values: dict[str, Any] = json.loads(text)
    return values


def file_of(
    tensors: dict[str, np.ndarray] | None = None,
    metadata: str | None = None,
    change: Callable[[dict[str, Any]], Any] | None = None,
) -> bytes:
    """A file whose tensors, metadata text or metadata values are changed."""
    values = header()
    if change is not None:
        change(values)
    text = json.dumps(values) if metadata is None else metadata
    return save({**CHECKPOINT.tensors, **(tensors or {})}, metadata={METADATA_KEY: text})


def refusal(path: Path, data: bytes) -> str:
    """The one line with which a file is refused."""
    path.write_bytes(data)
    with pytest.raises(InputError) as info:
        load_checkpoint(path)
    message = str(info.value)
    assert len(message.splitlines()) == 1
    assert "expected" in message
    assert "found" in message
    return message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


# Good files -------------------------------------------------------------------------------------


def test_the_unchanged_helper_file_loads(path: Path) -> None:
    path.write_bytes(file_of())
    assert load_checkpoint(path) == CHECKPOINT
    assert load_checkpoint(str(path)) == CHECKPOINT


def test_bytes_are_the_same_each_time_and_in_any_order_of_tensors() -> None:
    again = Checkpoint.build(
        CONFIG, CHECKPOINT.vocabulary, dict(reversed(list(CHECKPOINT.tensors.items())))
    )
    assert checkpoint_bytes(again) == VALID == checkpoint_bytes(CHECKPOINT)


def test_the_file_has_one_metadata_key() -> None:
    assert list(json.loads(VALID[8:HEADER_END])["__metadata__"]) == [METADATA_KEY]


def test_the_shipped_checkpoint_has_the_frozen_sizes() -> None:
    shipped = load_checkpoint()
    assert shipped.config == ModelConfig(8, 4, 4, 2, 2, 8, attention_bias=False)
    assert shipped.config.parameter_count() == 368
    assert shipped.dtype == np.float32
    assert checkpoint_bytes(shipped) == FROZEN_PATH.read_bytes()


def test_saving_replaces_a_file_and_leaves_nothing_else(path: Path) -> None:
    path.write_bytes(b"old")
    save_checkpoint(CHECKPOINT, path)
    assert path.read_bytes() == VALID
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


# Bad files --------------------------------------------------------------------------------------


def test_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a safetensors file, found none$"):
        load_checkpoint(path)


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a safetensors file, found a directory$"):
        load_checkpoint(tmp_path)


def test_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a safetensors file, found"):
        load_checkpoint(tmp_path / ("a" * 5000))
    with pytest.raises(InputError, match="expected a safetensors file, found"):
        load_checkpoint("a\0b")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"PK\x03\x04 a zip", b"\0" * 64, b"\xff" * 64, b"hello\n" * 100]
)
def test_file_that_is_not_safetensors_is_refused(path: Path, data: bytes) -> None:
    assert "expected a whole safetensors file" in refusal(path, data)


@pytest.mark.parametrize("length", [1, 7, 8, 9, HEADER_END - 1, HEADER_END, HEADER_END + 1, -1])
def test_truncated_file_is_refused(path: Path, length: int) -> None:
    assert "expected a whole safetensors file" in refusal(path, VALID[:length])


def test_trailing_bytes_are_refused(path: Path) -> None:
    assert "expected a whole safetensors file" in refusal(path, VALID + b"\0")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"wpe.weight": np.zeros((4, 6), "f4")}, "wpe.weight: expected shape (5, 6), found (4, 6)"),
        ({"h.0.attn.c_attn.weight": np.zeros((18, 6), "f4")}, "expected shape (6, 18)"),
        ({"ln_f.bias": np.zeros((1, 6), "f4")}, "ln_f.bias: expected shape (6,), found (1, 6)"),
        ({"h.0.attn.c_attn.bias": np.zeros(18, "f4")}, "found 1 more: 'h.0.attn.c_attn.bias'"),
        ({"lm_head.weight": np.zeros((7, 6), "f4")}, "found 1 more: 'lm_head.weight'"),
        ({"x\ny": np.zeros(1, "f4")}, "found 1 more: 'x\\ny'"),
        ({"ln_f.bias": np.array([0, 0, np.nan, 0, 0, 0], "f4")}, "found nan at [2]"),
        ({"ln_f.bias": np.array([0, np.inf, 0, 0, 0, 0], "f4")}, "found inf at [1]"),
        ({"ln_f.bias": np.zeros(6, "f8")}, "expected dtype float32, found float64"),
        ({"ln_f.bias": np.zeros(6, "f2")}, "expected dtype float32, found float16"),
        ({"ln_f.bias": np.zeros(6, "i4")}, "expected dtype float32, found int32"),
        ({"wte.weight": np.zeros((7, 6), "i8")}, "expected dtype float16 or float32 or float64"),
    ],
)
def test_wrong_tensor_is_refused(path: Path, tensors: dict, message: str) -> None:
    assert message in refusal(path, file_of(tensors))


def test_missing_tensor_is_refused(path: Path) -> None:
    rest = {name: a for name, a in CHECKPOINT.tensors.items() if name != "h.1.ln_2.bias"}
    data = save(rest, metadata={METADATA_KEY: json.dumps(header())})
    assert "1 of them missing: h.1.ln_2.bias" in refusal(path, data)


def test_file_without_tensors_is_refused(path: Path) -> None:
    assert "found 0 in all" in refusal(
        path, save({}, metadata={METADATA_KEY: json.dumps(header())})
    )


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E5M2", "BOOL", "U8", "C64"])
def test_number_format_that_a_decoder_cannot_run_in_is_refused(path: Path, dtype: str) -> None:
    width = {"BF16": 2, "C64": 8}.get(dtype, 1)
    entries: dict[str, Any] = {"__metadata__": {METADATA_KEY: json.dumps(header())}}
    at = 0
    for name, array in CHECKPOINT.tensors.items():
        end = at + width * array.size
        entries[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    assert "float64" in refusal(path, struct.pack("<Q", len(text)) + text + b"\0" * at)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"config"',
        "[" * 100_000,
        '{"a":' * 50_000,
        "{}",
        "\ufeff{}",
        '{"config": {}}',
        '{"vocabulary": {}}',
        '{"config": 9' + "9" * 5000 + "}",
        "nan",
    ],
)
def test_metadata_that_is_not_the_expected_json_is_refused(path: Path, text: str) -> None:
    assert "expected JSON with config and vocabulary" in refusal(path, file_of(metadata=text))


@pytest.mark.parametrize("value", [0, 2, "1", None, [1], {}, 1.5])
def test_other_format_is_refused(path: Path, value: Any) -> None:
    data = file_of(change=lambda values: values.update(format=value))
    assert f"expected format 1, found {value!r}" in refusal(path, data)


@pytest.mark.parametrize("value", ["training", "", None, 0, ["evaluation"]])
def test_other_mode_is_refused(path: Path, value: Any) -> None:
    data = file_of(change=lambda values: values.update(mode=value))
    assert "model mode: expected 'evaluation', found " in refusal(path, data)


def test_checkpoint_saved_in_training_mode_is_refused(path: Path) -> None:
    data = checkpoint_bytes(CHECKPOINT.in_mode("training"))
    assert "model mode: expected 'evaluation', found 'training'" in refusal(path, data)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_embd", "6", "n_embd: expected an integer"),
        ("n_embd", 8, "wte.weight: expected shape (7, 8), found (7, 6)"),
        ("n_embd", 9 * 10**4200, "n_embd: expected an integer"),
        ("n_embd", 2**31 - 2, "expected shape (7, 2147483646)"),
        ("n_layer", 1, "expected the 14 names of the config, found 10 more"),
        ("n_layer", 3, "10 of them missing: h.2.ln_1.weight"),
        ("n_layer", 10**9, "n_layer = 1000000000 layers"),
        ("n_head", 4, "expected a multiple of n_head = 4"),
        ("n_inner", 12, "expected shape (6, 12), found (6, 11)"),
        ("n_positions", 6, "wpe.weight: expected shape (6, 6), found (5, 6)"),
        ("vocab_size", 8, "expected vocab_size = 8 tokens, found 7"),
        ("attention_bias", True, "missing: h.0.attn.c_attn.bias"),
        ("tie_word_embeddings", False, "missing: lm_head.weight"),
        ("tie_word_embeddings", "false", "expected true or false, found 'false'"),
        ("layer_norm_epsilon", "1e-5", "expected a finite float > 0, found '1e-5'"),
        ("activation_function", "silu", "expected one of gelu_new, gelu, found 'silu'"),
        ("n_ctx", 5, "found 'n_ctx'"),
    ],
)
def test_config_that_contradicts_is_refused(
    path: Path, name: str, value: Any, message: str
) -> None:
    data = file_of(change=lambda values: values["config"].update({name: value}))
    assert message in refusal(path, data)


@pytest.mark.parametrize("name", ["config", "vocabulary", "provenance"])
@pytest.mark.parametrize("value", [None, 3, "x", [], [{}], True])
def test_part_of_another_type_is_refused(path: Path, name: str, value: Any) -> None:
    assert name in refusal(path, file_of(change=lambda values: values.update({name: value})))


@pytest.mark.parametrize(
    "vocabulary",
    [
        {"tokens": [0, 1, 2, 3, 4, 5, 6]},
        {"tokens": [["a"]] * 7},
        {"tokens": ["a"] * 7},
        {"tokens": [*"abcdef", "\ud800"]},
        {"tokens": [*"abcdefg"], "eos": ["a"]},
        {"tokens": [*"abcdefg"], "bos": "h"},
    ],
)
def test_malformed_vocabulary_is_refused(path: Path, vocabulary: Any) -> None:
    data = file_of(change=lambda values: values.update(vocabulary=vocabulary))
    assert "vocabulary" in refusal(path, data)
