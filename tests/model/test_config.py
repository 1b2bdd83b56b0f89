"""Sizes of a decoder: what is accepted, and which tensors follow."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import configs
from tinydec.errors import InputError
from tinydec.model.config import ModelConfig

#: d = 15, h = 3, d_h = 5, m = 23, V = 13, context 11, 2 layers.
CONFIG = ModelConfig(13, 11, 15, 2, 3, 23)
FROZEN = ModelConfig(8, 4, 4, 2, 2, 8, attention_bias=False)


def test_frozen_sizes_have_368_parameters() -> None:
    # 8 x 4 tokens + 4 x 4 positions + 2 blocks of 156 + final norm of 8.
    # Block: two norms 16 + c_attn 48 + c_proj 16 + c_fc 32 + 8 + c_proj 32 + 4 = 156.
    assert FROZEN.parameter_count() == 32 + 16 + 2 * 156 + 8 == 368


def test_attention_biases_add_3d_plus_d_per_layer() -> None:
    biased = replace(FROZEN, attention_bias=True)
    assert biased.parameter_count() - FROZEN.parameter_count() == 2 * (3 * 4 + 4)


def test_separate_head_adds_one_tensor_of_v_times_d() -> None:
    separate = replace(CONFIG, tie_word_embeddings=False).tensor_shapes()
    assert set(separate) - set(CONFIG.tensor_shapes()) == {"lm_head.weight"}
    assert separate["lm_head.weight"] == (13, 15)


def test_tensor_shapes_by_hand() -> None:
    shapes = CONFIG.tensor_shapes()
    assert shapes["wte.weight"] == (13, 15)
    assert shapes["wpe.weight"] == (11, 15)
    assert shapes["h.1.attn.c_attn.weight"] == (15, 45)
    assert shapes["h.1.attn.c_attn.bias"] == (45,)
    assert shapes["h.1.attn.c_proj.weight"] == (15, 15)
    assert shapes["h.1.mlp.c_fc.weight"] == (15, 23)
    assert shapes["h.1.mlp.c_proj.weight"] == (23, 15)
    assert shapes["h.1.mlp.c_proj.bias"] == (15,)
    assert len(shapes) == 2 + 2 * 12 + 2
    assert CONFIG.d_h == 5


@given(configs())
def test_dict_round_trip(config: ModelConfig) -> None:
    assert ModelConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "name", ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"]
)
@pytest.mark.parametrize("value", [0, -1, "4", 4.0, True, None, [4], {}, 2**31, 10**4000])
def test_sizes_that_are_no_positive_integers_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^config {name}: expected an integer .*found ") as info:
        ModelConfig.from_dict({**CONFIG.to_dict(), name: value})
    assert len(str(info.value)) < 160


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer_norm_epsilon", 0.0),
        ("layer_norm_epsilon", -1e-5),
        ("layer_norm_epsilon", float("nan")),
        ("layer_norm_epsilon", float("inf")),
        ("layer_norm_epsilon", "1e-5"),
        ("layer_norm_epsilon", None),
        ("activation_function", "relu"),
        ("activation_function", ["gelu"]),
        ("activation_function", None),
        ("attention_bias", 1),
        ("attention_bias", "yes"),
        ("tie_word_embeddings", None),
        ("tie_word_embeddings", 0),
    ],
)
def test_value_outside_its_domain_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^config {name}: expected .*found "):
        ModelConfig.from_dict({**CONFIG.to_dict(), name: value})


def test_width_that_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(InputError, match="expected a multiple of n_head = 4, found 15"):
        replace(CONFIG, n_head=4)


def test_unknown_and_missing_fields_are_refused() -> None:
    with pytest.raises(InputError, match="found 'n_ctx'"):
        ModelConfig.from_dict({**CONFIG.to_dict(), "n_ctx": 4})
    values = CONFIG.to_dict()
    del values["n_inner"]
    with pytest.raises(InputError, match="expected the field 'n_inner', found none"):
        ModelConfig.from_dict(values)


@pytest.mark.parametrize("values", [None, [], "config", 3])
def test_config_that_is_no_object_is_refused(values: Any) -> None:
    with pytest.raises(InputError, match="config: expected a JSON object, found"):
        ModelConfig.from_dict(values)
