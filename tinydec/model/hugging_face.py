"""Checkpoints as Hugging Face's ``GPT2LMHeadModel.save_pretrained`` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

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
    named = _without_prefix(tensors)
    config = config_from_hugging_face(values, named)
    if config.tie_word_embeddings:
        _drop_tied_head(named)
    _check_rows(config.vocab_size, named)
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
            f"config.json model_type: expected 'gpt2', found {values.get('model_type')!r:.60}"
        )
    for name, expected in _FIXED.items():
        found = values.get(name, expected)
        if found != expected:
            raise InputError(f"config.json {name}: expected {expected}, found {found!r:.60}")
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
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path.name}: expected readable JSON, found: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path.name}: expected a JSON object, found {type(values).__name__}")
    return values


def _without_prefix(tensors: Mapping[str, Array]) -> dict[str, Array]:
    named: dict[str, Array] = {}
    for name, array in tensors.items():
        short = name.removeprefix(_PREFIX)
        if short in named:
            raise InputError(
                f"tensors: expected {short!r:.60} once, found it with and without prefix"
            )
        if not name.endswith(_BUFFERS):
            named[short] = array
    return named


def _check_rows(vocab_size: int, tensors: Mapping[str, Array]) -> None:
    """Compare sizes before a token is made for each of what may be a billion ids."""
    found = f"shape {tensors['wte.weight'].shape}" if "wte.weight" in tensors else "no such tensor"
    if not found.startswith(f"shape ({vocab_size},"):
        raise InputError(
            f"tensor wte.weight: expected vocab_size = {vocab_size} rows, found {found}"
        )


def _drop_tied_head(tensors: dict[str, Array]) -> None:
    """Drop the head of a decoder whose head is ``wte``: it is sometimes stored a second time."""
    head = tensors.pop("lm_head.weight", None)
    if head is not None and not np.array_equal(head, tensors.get("wte.weight", head)):
        raise InputError(
            "tensor lm_head.weight: expected the values of wte.weight (tie_word_embeddings is "
            "true), found others"
        )


def _vocabulary(path: Path, size: int, config: Mapping[str, Any]) -> Vocabulary:
    if not path.is_file():
        return Vocabulary.numbered(size)
    ids = _read_object(path)
    whole = all(type(token_id) is int for token_id in ids.values())
    if not whole or len(ids) != size or set(ids.values()) != set(range(size)):
        raise InputError(f"{path.name}: expected the ids 0 to {size - 1} once each, found others")
    tokens = tuple(sorted(ids, key=ids.__getitem__))
    special = {name: config.get(f"{name}_token_id") for name in ("bos", "eos")}
    names = {
        name: tokens[token_id] if type(token_id) is int and 0 <= token_id < size else None
        for name, token_id in special.items()
    }
    return Vocabulary(tokens, names["bos"], names["eos"])
