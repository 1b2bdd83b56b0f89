"""Loss of a GPT-2-architecture decoder and its hand-written gradients.

Every operation returns its output and a function from the output's gradient to the gradients of
its inputs (reverse-mode differentiation; the function holds the activations it needs).

Products are ``numpy.einsum`` and not ``@``: einsum sums in NumPy's own loops, in one order, while
``@`` calls a BLAS whose kernel, and so whose rounding, differs from machine to machine. Training
would amplify that rounding to other weights within some hundred steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tinydec.model.config import ModelConfig

Array = NDArray[np.float64]
Tensors = Mapping[str, Array]
Ids = NDArray[np.int64]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def loss_and_gradients(
    config: ModelConfig, tensors: Tensors, inputs: Ids, targets: Ids
) -> tuple[float, dict[str, Array]]:
    """Return the mean cross-entropy of next-token prediction and its gradients.

    Args:
        config: sizes, activation, biases, tied or separate output head.
        tensors: every tensor of ``config.tensor_shapes()``, float64.
        inputs: token ids (B, P) with P at most ``config.n_positions``.
        targets: the token id (B, P) that follows each input.

    Returns:
        The loss in nats per token, and one gradient per tensor, of its shape.
    """
    p = inputs.shape[1]
    x = tensors["wte.weight"][inputs] + tensors["wpe.weight"][:p]  # (B, P) -> (B, P, d)
    backward_blocks = []
    for layer in range(config.n_layer):
        x, backward = _block(config, tensors, f"h.{layer}.", x)
        backward_blocks.append(backward)
    x, backward_norm = layer_norm(
        x, tensors["ln_f.weight"], tensors["ln_f.bias"], config.layer_norm_epsilon
    )
    head = "wte.weight" if config.tie_word_embeddings else "lm_head.weight"
    logits = np.einsum("bpd,vd->bpv", x, tensors[head])  # (B, P, d) -> (B, P, V)
    loss, d_logits = cross_entropy(logits, targets)

    gradients = {name: np.zeros(shape) for name, shape in config.tensor_shapes().items()}
    gradients[head] += np.einsum("bpv,bpd->vd", d_logits, x)
    d_x = np.einsum("bpv,vd->bpd", d_logits, tensors[head])
    d_x, gradients["ln_f.weight"], gradients["ln_f.bias"] = backward_norm(d_x)
    for backward in reversed(backward_blocks):
        d_x, block_gradients = backward(d_x)
        gradients |= block_gradients
    np.add.at(gradients["wte.weight"], inputs, d_x)  # a repeated token adds up
    gradients["wpe.weight"][:p] = d_x.sum(axis=0)
    return loss, gradients


def cross_entropy(logits: Array, targets: Ids) -> tuple[float, Array]:
    """Return the mean of ``-log softmax(logits)[target]`` (nats) and its gradient (B, P, V)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    at_target = targets[..., np.newaxis]
    loss = -float(np.take_along_axis(log_probabilities, at_target, axis=-1).mean())
    one_hot = np.arange(logits.shape[-1]) == at_target  # (B, P, 1) -> (B, P, V)
    return loss, (np.exp(log_probabilities) - one_hot) / targets.size


def layer_norm(
    x: Array, weight: Array, bias: Array, epsilon: float
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Return ``weight * (x - mean) / sqrt(variance + epsilon) + bias`` over the last axis.

    The backward function gives the gradients of x, weight and bias (Ba et al. 2016).
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1.0 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    normalised = centred * inverse

    def backward(d_y: Array) -> tuple[Array, Array, Array]:
        d_n = d_y * weight
        along = (d_n * normalised).mean(axis=-1, keepdims=True)
        d_x = inverse * (d_n - d_n.mean(axis=-1, keepdims=True) - normalised * along)
        rows = tuple(range(x.ndim - 1))
        return d_x, (d_y * normalised).sum(axis=rows), d_y.sum(axis=rows)

    return normalised * weight + bias, backward


def linear(
    x: Array, weight: Array, bias: Array | None
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Return ``x @ weight + bias`` for x (B, P, i) and weight (i, o).

    The backward function gives the gradients of x, weight and bias (also when there is none).
    """
    y = np.einsum("bpi,io->bpo", x, weight)  # (B, P, i) -> (B, P, o)

    def backward(d_y: Array) -> tuple[Array, Array, Array]:
        d_x = np.einsum("bpo,io->bpi", d_y, weight)
        return d_x, np.einsum("bpi,bpo->io", x, d_y), d_y.sum(axis=(0, 1))

    return y if bias is None else y + bias, backward


def gelu(x: Array, activation: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return GELU in its tanh form (``gelu_new``) or exact form (``gelu``), with its backward.

    Hendrycks & Gimpel 2016: ``x * Phi(x)``, Phi the normal distribution function; the tanh form
    has ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2`` in place of Phi.
    """
    if activation == "gelu_new":
        scale = math.sqrt(2.0 / math.pi)
        tanh = np.tanh(scale * (x + 0.044715 * x * x * x))
        phi = 0.5 * (1.0 + tanh)
        d_phi = 0.5 * (1.0 - tanh * tanh) * scale * (1.0 + 3 * 0.044715 * x * x)
    else:
        phi = 0.5 * (1.0 + _erf(x / math.sqrt(2.0)))
        d_phi = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return x * phi, lambda d_y: d_y * (phi + x * d_phi)


def attention(
    q: Array, k: Array, v: Array
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Return causal scaled dot-product attention over q, k, v (B, h, P, d_h) (Vaswani et al. 2017).

    The backward function gives the gradients of q, k and v.
    """
    p, d_h = q.shape[-2:]
    scale = 1.0 / math.sqrt(d_h)
    scores = np.einsum("bhqc,bhkc->bhqk", q, k) * scale  # (B, h, P, d_h) -> (B, h, P, P)
    scores = np.where(np.tri(p, dtype=bool), scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)

    def backward(d_y: Array) -> tuple[Array, Array, Array]:
        d_weights = np.einsum("bhqc,bhkc->bhqk", d_y, v)
        along = (d_weights * weights).sum(axis=-1, keepdims=True)
        d_scores = weights * (d_weights - along) * scale  # 0 where masked: the weight is 0
        return (
            np.einsum("bhqk,bhkc->bhqc", d_scores, k),
            np.einsum("bhqk,bhqc->bhkc", d_scores, q),
            np.einsum("bhqk,bhqc->bhkc", weights, d_y),
        )

    return np.einsum("bhqk,bhkc->bhqc", weights, v), backward


def _block(
    config: ModelConfig, tensors: Tensors, prefix: str, x: Array
) -> tuple[Array, Callable[[Array], tuple[Array, dict[str, Array]]]]:
    """One pre-norm layer: ``x + attention(norm(x))``, then ``x + MLP(norm(x))`` of that."""
    block = {n.removeprefix(prefix): a for n, a in tensors.items() if n.startswith(prefix)}
    epsilon = config.layer_norm_epsilon
    normed, backward_ln_1 = layer_norm(x, block["ln_1.weight"], block["ln_1.bias"], epsilon)
    attended, backward_attn = _self_attention(config, block, normed)
    middle = x + attended
    normed, backward_ln_2 = layer_norm(middle, block["ln_2.weight"], block["ln_2.bias"], epsilon)
    hidden, backward_fc = linear(normed, block["mlp.c_fc.weight"], block["mlp.c_fc.bias"])
    active, backward_gelu = gelu(hidden, config.activation_function)
    out, backward_proj = linear(active, block["mlp.c_proj.weight"], block["mlp.c_proj.bias"])

    def backward(d_y: Array) -> tuple[Array, dict[str, Array]]:
        g: dict[str, Array] = {}
        d, g["mlp.c_proj.weight"], g["mlp.c_proj.bias"] = backward_proj(d_y)
        d, g["mlp.c_fc.weight"], g["mlp.c_fc.bias"] = backward_fc(backward_gelu(d))
        d, g["ln_2.weight"], g["ln_2.bias"] = backward_ln_2(d)
        d_middle = d_y + d
        d, attention_gradients = backward_attn(d_middle)
        d, g["ln_1.weight"], g["ln_1.bias"] = backward_ln_1(d)
        return d_middle + d, {prefix + name: a for name, a in (g | attention_gradients).items()}

    return middle + out, backward


def _self_attention(
    config: ModelConfig, block: Tensors, x: Array
) -> tuple[Array, Callable[[Array], tuple[Array, dict[str, Array]]]]:
    """Project x (B, P, d) to queries, keys and values, attend per head, merge and project."""
    b, p, d = x.shape
    qkv, backward_in = linear(x, block["attn.c_attn.weight"], block.get("attn.c_attn.bias"))
    # (B, P, 3d) -> (B, P, 3, h, d_h) -> (3, B, h, P, d_h)
    q, k, v = qkv.reshape(b, p, 3, config.n_head, config.d_h).transpose(2, 0, 3, 1, 4)
    context, backward_heads = attention(q, k, v)
    merged = context.transpose(0, 2, 1, 3).reshape(b, p, d)  # (B, h, P, d_h) -> (B, P, d)
    out, backward_out = linear(merged, block["attn.c_proj.weight"], block.get("attn.c_proj.bias"))

    def backward(d_y: Array) -> tuple[Array, dict[str, Array]]:
        g: dict[str, Array] = {}
        d_merged, g["attn.c_proj.weight"], g["attn.c_proj.bias"] = backward_out(d_y)
        # (B, P, d) -> (B, h, P, d_h)
        d_context = d_merged.reshape(b, p, config.n_head, config.d_h).transpose(0, 2, 1, 3)
        d_split = np.stack(backward_heads(d_context))  # (3, B, h, P, d_h)
        d_qkv = d_split.transpose(1, 3, 0, 2, 4).reshape(b, p, 3 * d)  # -> (B, P, 3d)
        d_x, g["attn.c_attn.weight"], g["attn.c_attn.bias"] = backward_in(d_qkv)
        return d_x, {name: gradient for name, gradient in g.items() if name in block}

    return out, backward
