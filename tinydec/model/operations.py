"""Row-wise operations: each output row depends on its own input row alone.

The full forward, prefill and the decode step share these. Attention mixes rows and is written
separately in each of them, so that a mistake in one cannot hide in the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.model.weights import BlockWeights, NormWeights

Array = NDArray[Any]

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715 * _TANH_SCALE
_erf = np.frompyfunc(math.erf, 1, 1)


def layer_norm(x: Array, norm: NormWeights) -> Array:
    """Return ``(x - mean) / sqrt(variance + epsilon) * weight + bias`` of each row.

    Args:
        x: (R, d).
        norm: weight and bias; the variance is the biased one, as in Ba et al. 2016.

    Returns:
        (R, d).
    """
    centred = x - x.dot(norm.average)  # (R, d) minus the means, (R, 1) or (R, d)
    variance = (centred * centred).dot(norm.average)  # (R, 1) or (R, d)
    result: Array = centred / np.sqrt(variance + norm.epsilon) * norm.weight + norm.bias
    return result


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return ``x @ weight + bias``: (R, in) times (in, out) -> (R, out)."""
    product: Array = x.dot(weight)
    return product if bias is None else product + bias


def gelu_tanh(x: Array) -> Array:
    """Return ``x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`` (Hendrycks and Gimpel 2016)."""
    inner = (x * x * _TANH_CUBIC + _TANH_SCALE) * x
    return (np.tanh(inner) + 1) * (x * 0.5)


def gelu_exact(x: Array) -> Array:
    """Return ``x/2 (1 + erf(x / sqrt(2)))``, with erf in double precision."""
    erf: Array = np.asarray(_erf(x.astype(np.float64) * math.sqrt(0.5)), np.float64)
    result: Array = ((erf + 1) * x * 0.5).astype(x.dtype)
    return result


def gelu(x: Array, name: str) -> Array:
    """Return the activation that a config names: ``gelu_new`` (tanh form) or ``gelu`` (exact)."""
    return gelu_tanh(x) if name == "gelu_new" else gelu_exact(x)


def mlp(x: Array, block: BlockWeights, activation: str) -> tuple[Array, Array, Array]:
    """Return the MLP's hidden rows, activated rows and output rows.

    Args:
        x: (R, d), the normed residual.
        block: supplies ``c_fc`` (d, m) and ``c_proj`` (m, d).
        activation: ``gelu_new`` or ``gelu``.

    Returns:
        (R, m), (R, m) and (R, d).
    """
    hidden = x.dot(block.c_fc_weight) + block.c_fc_bias
    activated = gelu(hidden, activation)
    return hidden, activated, activated.dot(block.mlp_c_proj_weight) + block.mlp_c_proj_bias
