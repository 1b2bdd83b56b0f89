"""One layer's tensors under short names, so that a decode step looks nothing up by string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tinydec.model.config import ModelConfig

Array = NDArray[Any]


class BlockWeights(NamedTuple):
    """Tensors of one layer; matrices are (in, out), biases None where the config has none."""

    ln_1_weight: Array  # (d,)
    ln_1_bias: Array  # (d,)
    c_attn_weight: Array  # (d, 3d)
    c_attn_bias: Array | None  # (3d,)
    attn_c_proj_weight: Array  # (d, d)
    attn_c_proj_bias: Array | None  # (d,)
    ln_2_weight: Array  # (d,)
    ln_2_bias: Array  # (d,)
    c_fc_weight: Array  # (d, m)
    c_fc_bias: Array  # (m,)
    mlp_c_proj_weight: Array  # (m, d)
    mlp_c_proj_bias: Array  # (d,)


def block_weights(config: ModelConfig, tensors: Mapping[str, Array]) -> tuple[BlockWeights, ...]:
    """Return each layer's tensors, in layer order."""
    return tuple(
        BlockWeights(
            ln_1_weight=tensors[f"h.{layer}.ln_1.weight"],
            ln_1_bias=tensors[f"h.{layer}.ln_1.bias"],
            c_attn_weight=tensors[f"h.{layer}.attn.c_attn.weight"],
            c_attn_bias=tensors.get(f"h.{layer}.attn.c_attn.bias"),
            attn_c_proj_weight=tensors[f"h.{layer}.attn.c_proj.weight"],
            attn_c_proj_bias=tensors.get(f"h.{layer}.attn.c_proj.bias"),
            ln_2_weight=tensors[f"h.{layer}.ln_2.weight"],
            ln_2_bias=tensors[f"h.{layer}.ln_2.bias"],
            c_fc_weight=tensors[f"h.{layer}.mlp.c_fc.weight"],
            c_fc_bias=tensors[f"h.{layer}.mlp.c_fc.bias"],
            mlp_c_proj_weight=tensors[f"h.{layer}.mlp.c_proj.weight"],
            mlp_c_proj_bias=tensors[f"h.{layer}.mlp.c_proj.bias"],
        )
        for layer in range(config.n_layer)
    )
