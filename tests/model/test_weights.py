"""The working form of the tensors: views, not copies, under the right names."""

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig

CONFIG = ModelConfig(13, 11, 15, 2, 3, 23, 1e-3)
CHECKPOINT = random_checkpoint(CONFIG, 7)


def test_every_matrix_and_vector_is_a_view_of_its_tensor() -> None:
    t, weights = CHECKPOINT.tensors, CHECKPOINT.weights
    block = weights.blocks[1]
    pairs = {
        "wte.weight": weights.wte,
        "wpe.weight": weights.wpe,
        "ln_f.weight": weights.ln_f.weight,
        "ln_f.bias": weights.ln_f.bias,
        "h.1.ln_1.weight": block.ln_1.weight,
        "h.1.ln_1.bias": block.ln_1.bias,
        "h.1.attn.c_attn.weight": block.c_attn_weight,
        "h.1.attn.c_attn.bias": block.c_attn_bias,
        "h.1.attn.c_proj.weight": block.attn_c_proj_weight,
        "h.1.attn.c_proj.bias": block.attn_c_proj_bias,
        "h.1.ln_2.weight": block.ln_2.weight,
        "h.1.ln_2.bias": block.ln_2.bias,
        "h.1.mlp.c_fc.weight": block.c_fc_weight,
        "h.1.mlp.c_fc.bias": block.c_fc_bias,
        "h.1.mlp.c_proj.weight": block.mlp_c_proj_weight,
        "h.1.mlp.c_proj.bias": block.mlp_c_proj_bias,
    }
    for name, view in pairs.items():
        assert view is not None
        assert np.shares_memory(view, t[name]), name
        assert np.array_equal(view.reshape(t[name].shape), t[name]), name
    assert len(weights.blocks) == 2


@pytest.mark.parametrize(("tied", "name"), [(True, "wte.weight"), (False, "lm_head.weight")])
def test_the_head_is_the_transposed_tensor_that_the_config_names(tied: bool, name: str) -> None:
    config = ModelConfig(13, 11, 15, 1, 3, 23, tie_word_embeddings=tied)
    checkpoint = random_checkpoint(config, 7)
    assert checkpoint.weights.head.shape == (15, 13)
    assert np.array_equal(checkpoint.weights.head.T, checkpoint.tensors[name])


def test_absent_attention_biases_are_none() -> None:
    config = ModelConfig(13, 11, 15, 1, 3, 23, attention_bias=False)
    block = random_checkpoint(config, 7).weights.blocks[0]
    assert (block.c_attn_bias, block.attn_c_proj_bias) == (None, None)


@pytest.mark.parametrize(("width", "columns"), [(31, 31), (32, 32), (33, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_constants_of_a_norm_have_its_dtype_and_average_a_row(
    width: int, columns: int, dtype: str
) -> None:
    config = ModelConfig(7, 5, width, 1, 1, 11, 1e-3)
    norm = random_checkpoint(config, 7, dtype).weights.ln_f
    assert norm.average.shape == (width, columns)
    assert norm.epsilon.shape == (1, columns)
    assert norm.average.dtype == norm.epsilon.dtype == dtype
    row = np.arange(width, dtype=dtype)[None]
    assert (row @ norm.average)[0] == pytest.approx((width - 1) / 2, rel=2e-3)
    assert norm.epsilon[0] == pytest.approx(1e-3, rel=1e-3)
