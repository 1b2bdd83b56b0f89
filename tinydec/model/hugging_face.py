"""Checkpoints as Hugging Face's ``GPT2LMHeadModel.save_pretrained`` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinydec.errors import InputError
from tinydec.model.checkpoint import Array, Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.vocabulary import Vocabulary

#: Settings that change the arithmetic, with the value that this decoder implements.
_FIXED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
#: Buffers that older files carry: causal masks, not parameters.
_BUFFERS = (".attn.bias", ".attn.masked_bias")
_PREFIX = "transformer."


def read_hugging_face(file: Path, tensors: Mapping[str, Array]) -> Checkpoint:
    """Build a checkpoint from a file's tensors and the JSON files beside it.

    ``config.json`` is needed. ``vocab.json`` names the tokens where it stands; without it they
    are named ``t0``, ``t1`` …

    Raises:
        InputError: ``config.json`` is missing or describes another architecture; tensors and
            config disagree.
    """
    values = _read_object(file.with_name("config.json"))
    named = {
        name.removeprefix(_PREFIX): array
        for name, array in tensors.items()
        if not name.endswith(_BUFFERS)
    }
    config = config_from_hugging_face(values, named)
    if config.tie_word_embeddings:
        named.pop("lm_head.weight", None)  # a tied head is sometimes stored a second time
    vocabulary = _vocabulary(file.with_name("vocab.json"), config.vocab_size, values)
    return Checkpoint.build(config, vocabulary, named, {"source": "Hugging Face GPT-2"})


def config_from_hugging_face(
    values: Mapping[str, Any], tensors: Mapping[str, Array]
) -> ModelConfig:
    """Translate a Hugging Face GPT-2 config; ``tensors`` tell whether attention has biases.

    Raises:
        InputError: another ``model_type``, or a setting that this decoder does not implement.
    """
    if values.get("model_type") != "gpt2":
        raise InputError(
            f"config.json model_type: expected 'gpt2', found {values.get('model_type')!r}"
        )
    for name, expected in _FIXED.items():
        found = values.get(name, expected)
        if found != expected:
            raise InputError(f"config.json {name}: expected {expected}, found {found!r}")
    width = values.get("n_embd")
    inner = values.get("n_inner")
    return ModelConfig.from_dict(
        {
            "vocab_size": values.get("vocab_size"),
            "n_positions": values.get("n_positions"),
            "n_embd": width,
            "n_layer": values.get("n_layer"),
            "n_head": values.get("n_head"),
            "n_inner": 4 * width if inner is None and isinstance(width, int) else inner,
            "layer_norm_epsilon": values.get("layer_norm_epsilon", 1e-5),
            "activation_function": values.get("activation_function", "gelu_new"),
            "attention_bias": "h.0.attn.c_attn.bias" in tensors,
            "tie_word_embeddings": values.get("tie_word_embeddings", True),
        }
    )


def _read_object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(
            f"expected the metadata key 'tinydec' or a {path.name} beside the file, found neither"
        )
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path.name}: expected JSON, found: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path.name}: expected a JSON object, found {type(values).__name__}")
    return values


def _vocabulary(path: Path, size: int, config: Mapping[str, Any]) -> Vocabulary:
    if not path.is_file():
        return Vocabulary.numbered(size)
    ids = _read_object(path)
    if sorted(ids.values()) != list(range(size)):
        raise InputError(f"{path.name}: expected the ids 0 to {size - 1} once each")
    tokens = tuple(sorted(ids, key=lambda token: int(ids[token])))
    special = {name: config.get(f"{name}_token_id") for name in ("bos", "eos")}
    names = {
        name: tokens[token_id] if isinstance(token_id, int) and token_id < size else None
        for name, token_id in special.items()
    }
    return Vocabulary(tokens, names["bos"], names["eos"])
