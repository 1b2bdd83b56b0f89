"""Row-wise operations, against hand computations and the standard library."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.operations import gelu, gelu_exact, gelu_tanh, layer_norm, linear, mlp
from tinydec.model.weights import NormWeights

CONFIG = ModelConfig(7, 5, 6, 2, 2, 11)
FLOATS = st.floats(-30, 30)


def norm_of(width: int, epsilon: float, weight: list[float], bias: list[float]) -> NormWeights:
    """The norm of a decoder of some width, its scale and shift replaced."""
    config = replace(CONFIG, n_embd=width, n_head=1, layer_norm_epsilon=epsilon)
    norm = random_checkpoint(config, 0).weights.ln_f
    return norm._replace(weight=np.array([weight]), bias=np.array([bias]))


# Layer norm -------------------------------------------------------------------------------------


def test_layer_norm_by_hand() -> None:
    # (1, 3, 8): mean 4, deviations (-3, -1, 4), variance 26/3; epsilon 1/3 makes it 9, root 3.
    norm = norm_of(3, 1 / 3, [1.0, 3.0, 6.0], [0.0, 0.5, -1.0])
    assert layer_norm(np.array([[1.0, 3.0, 8.0]]), norm)[0] == pytest.approx([-1.0, -0.5, 7.0])


@pytest.mark.parametrize("width", [31, 32, 33, 37])
def test_layer_norm_is_the_same_formula_below_and_above_the_width_that_repeats_means(
    width: int,
) -> None:
    rows = np.random.default_rng(width).normal(3, 2, (5, width))
    weight, bias = rows[0] + 1, rows[1] - 1
    found = layer_norm(rows, norm_of(width, 1e-5, list(weight), list(bias)))
    mean = rows.mean(axis=1, keepdims=True)
    expected = (rows - mean) / np.sqrt(rows.var(axis=1, keepdims=True) + 1e-5) * weight + bias
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-13)
    unbiased = (rows - mean) / rows.std(axis=1, keepdims=True, ddof=1) * weight + bias
    assert np.abs(found - unbiased).max() > 1e-3


def test_layer_norm_of_a_constant_row_is_the_bias() -> None:
    norm = norm_of(3, 1e-5, [2.0, 3.0, 5.0], [0.1, 0.2, 0.3])
    assert layer_norm(np.full((1, 3), 4.0), norm)[0] == pytest.approx([0.1, 0.2, 0.3], abs=1e-12)


def test_rows_do_not_see_each_other() -> None:
    norm = random_checkpoint(CONFIG, 1).weights.ln_f
    rows = np.random.default_rng(1).normal(size=(3, 6))
    changed = rows.copy()
    changed[1] += np.arange(6)
    same = layer_norm(rows, norm) == layer_norm(changed, norm)
    assert same[[0, 2]].all()
    assert not same[1].any()


# GELU -------------------------------------------------------------------------------------------


@given(st.lists(FLOATS, min_size=1))
def test_gelu_tanh_is_the_formula_with_math_tanh(xs: list[float]) -> None:
    expected = [
        0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) for x in xs
    ]
    assert gelu_tanh(np.array([xs]))[0] == pytest.approx(expected, rel=1e-12, abs=1e-13)


@given(st.lists(FLOATS, min_size=1))
def test_gelu_exact_is_the_formula_with_math_erf(xs: list[float]) -> None:
    expected = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in xs]
    assert gelu_exact(np.array([xs]))[0] == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_gelu_by_hand() -> None:
    # Tables of the normal distribution: Phi(1) = 0.8413447, Phi(2) = 0.9772499.
    assert gelu_exact(np.array([[1.0, 2.0, -1.0]]))[0] == pytest.approx(
        [0.8413447, 1.9544998, -0.1586553], abs=1e-7
    )
    # The tanh form is near but not equal.
    assert gelu_tanh(np.array([[1.0]]))[0, 0] == pytest.approx(0.8411920, abs=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_config_name_selects_the_form_and_dtype_is_kept(dtype: str) -> None:
    x = np.array([[0.5, -2.5]], dtype)
    assert np.array_equal(gelu(x, "gelu_new"), gelu_tanh(x))
    assert np.array_equal(gelu(x, "gelu"), gelu_exact(x))
    assert not np.array_equal(gelu_tanh(x), gelu_exact(x))
    assert gelu_tanh(x).dtype == gelu_exact(x).dtype == dtype


# Linear and MLP ---------------------------------------------------------------------------------


def test_linear_by_hand() -> None:
    weight = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, -1.0]])  # (in 2, out 3)
    assert linear(np.array([[5.0, 7.0]]), weight, None).tolist() == [[5.0, 21.0, 3.0]]
    bias = np.array([[1.0, 2.0, 3.0]])
    assert linear(np.array([[5.0, 7.0]]), weight, bias).tolist() == [[6.0, 23.0, 6.0]]


@pytest.mark.parametrize("activation", ["gelu_new", "gelu"])
def test_mlp_is_two_matrices_with_the_activation_between(activation: str) -> None:
    checkpoint = random_checkpoint(CONFIG, 5)
    x = np.random.default_rng(5).normal(size=(3, 6))
    hidden, activated, output = mlp(x, checkpoint.weights.blocks[1], activation)
    t = checkpoint.tensors
    expected = x @ t["h.1.mlp.c_fc.weight"] + t["h.1.mlp.c_fc.bias"]
    assert hidden == pytest.approx(expected, rel=1e-13)
    assert np.array_equal(activated, gelu(hidden, activation))
    expected = activated @ t["h.1.mlp.c_proj.weight"] + t["h.1.mlp.c_proj.bias"]
    assert output == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert (hidden.shape, output.shape) == ((3, 11), (3, 6))
