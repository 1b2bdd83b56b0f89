"""Tensors in the form that the forward passes use: short names, rows and columns ready made.

Every vector is kept as one row (1, n): adding it to a (1, n) activation then needs no
broadcasting, which is a third of the time of such small operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.model.config import ModelConfig

Array = NDArray[Any]

#: Norms up to this width compute their means with a (d, d) product.
_REPEATED_WIDTH = 32


class NormWeights(NamedTuple):
    """A layer norm over rows of width d."""

    weight: Array  # (1, d)
    bias: Array  # (1, d)
    average: Array  # (d, 1) or (d, d), each 1/d: a row times this is the row's mean
    epsilon: Array  # (1, 1) or (1, d)


class BlockWeights(NamedTuple):
    """Tensors of one layer; matrices are (in, out), attention biases None where absent."""

    ln_1: NormWeights
    c_attn_weight: Array  # (d, 3d)
    c_attn_bias: Array | None  # (1, 3d)
    attn_c_proj_weight: Array  # (d, d)
    attn_c_proj_bias: Array | None  # (1, d)
    ln_2: NormWeights
    c_fc_weight: Array  # (d, m)
    c_fc_bias: Array  # (1, m)
    mlp_c_proj_weight: Array  # (m, d)
    mlp_c_proj_bias: Array  # (1, d)


class Weights(NamedTuple):
    """All tensors of a decoder."""

    wte: Array  # (V, d)
    wpe: Array  # (n_positions, d)
    blocks: tuple[BlockWeights, ...]
    ln_f: NormWeights
    head: Array  # (d, V)


def build_weights(config: ModelConfig, tensors: Mapping[str, Array]) -> Weights:
    """Return views of a checkpoint's tensors; nothing is copied but the constant columns."""
    tied = config.tie_word_embeddings
    head = tensors["wte.weight" if tied else "lm_head.weight"].T  # (V, d) -> (d, V)
    blocks = tuple(_block(config, tensors, f"h.{layer}.") for layer in range(config.n_layer))
    ln_f = _norm(config, tensors, "ln_f.")
    return Weights(tensors["wte.weight"], tensors["wpe.weight"], blocks, ln_f, head)


def _block(config: ModelConfig, tensors: Mapping[str, Array], prefix: str) -> BlockWeights:
    biased = config.attention_bias
    return BlockWeights(
        ln_1=_norm(config, tensors, f"{prefix}ln_1."),
        c_attn_weight=tensors[f"{prefix}attn.c_attn.weight"],
        c_attn_bias=_row(tensors[f"{prefix}attn.c_attn.bias"]) if biased else None,
        attn_c_proj_weight=tensors[f"{prefix}attn.c_proj.weight"],
        attn_c_proj_bias=_row(tensors[f"{prefix}attn.c_proj.bias"]) if biased else None,
        ln_2=_norm(config, tensors, f"{prefix}ln_2."),
        c_fc_weight=tensors[f"{prefix}mlp.c_fc.weight"],
        c_fc_bias=_row(tensors[f"{prefix}mlp.c_fc.bias"]),
        mlp_c_proj_weight=tensors[f"{prefix}mlp.c_proj.weight"],
        mlp_c_proj_bias=_row(tensors[f"{prefix}mlp.c_proj.bias"]),
    )


def _norm(config: ModelConfig, tensors: Mapping[str, Array], prefix: str) -> NormWeights:
    weight, width = tensors[f"{prefix}weight"], config.n_embd
    # A small norm repeats the mean in every column, so that nothing has to be broadcast.
    columns = width if width <= _REPEATED_WIDTH else 1
    average = np.full((width, columns), 1 / width, weight.dtype)
    epsilon = np.full((1, columns), config.layer_norm_epsilon, weight.dtype)
    for constant in (average, epsilon):
        constant.setflags(write=False)
    bias = _row(tensors[f"{prefix}bias"])
    return NormWeights(_row(weight), bias, average, epsilon)


def _row(vector: Array) -> Array:
    return vector[np.newaxis, :]  # (n,) -> (1, n)
