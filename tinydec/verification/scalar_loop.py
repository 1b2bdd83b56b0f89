"""A slow oracle: the GPT-2 decoder in plain Python numbers, one scalar at a time.

It shares no code with the forward passes that it judges and does no NumPy arithmetic: arrays
are turned into lists first, and lists into arrays last. Every number is a 64-bit float, whatever
the checkpoint's dtype. Formulas: Radford et al. 2019 (pre-norm GPT-2), Vaswani et al. 2017
(scaled dot-product attention), Ba et al. 2016 (layer norm), Hendrycks and Gimpel 2016 (GELU).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint

Array = NDArray[np.float64]
Vector = list[float]
Matrix = list[Vector]


def scalar_logits(checkpoint: Checkpoint, token_ids: Sequence[int]) -> Array:
    """Return the logits (T, V) of one sequence of T token ids, in float64.

    Raises:
        InputError: no token, more than ``n_positions``, or an id outside 0 to V - 1.
    """
    logits: Array = scalar_forward(checkpoint, token_ids)["logits"][0]  # (1, T, V) -> (T, V)
    return logits


def scalar_forward(checkpoint: Checkpoint, token_ids: Sequence[int]) -> dict[str, Array]:
    """Return every intermediate of one sequence, under the names of ``Activations.named()``.

    Args:
        checkpoint: the decoder.
        token_ids: T ids of one sequence; 1 <= T <= n_positions.

    Returns:
        float64 arrays with a batch axis of 1: rows as (1, T, n), heads as (1, h, T, d_h), scores
        and attention as (1, h, T, T), scores being -inf where a key lies behind its query.

    Raises:
        InputError: no token, more than ``n_positions``, or an id outside 0 to V - 1.
    """
    config = checkpoint.config
    ids = _checked(token_ids, config.n_positions, config.vocab_size)
    tensors = {name: array.tolist() for name, array in checkpoint.tensors.items()}
    trace: dict[str, Any] = {}
    trace["token_embedding"] = [tensors["wte.weight"][token_id] for token_id in ids]
    trace["position_embedding"] = [tensors["wpe.weight"][place] for place in range(len(ids))]
    rows = _add(trace["token_embedding"], trace["position_embedding"])
    trace["embedding"] = rows
    for layer in range(config.n_layer):
        rows = _layer(checkpoint, tensors, f"h.{layer}.", rows, trace)
    trace["ln_f"] = _norm(rows, tensors, "ln_f.", config.layer_norm_epsilon)
    head = tensors["wte.weight" if config.tie_word_embeddings else "lm_head.weight"]  # (V, d)
    trace["logits"] = [[_dot(row, token) for token in head] for row in trace["ln_f"]]
    return {name: np.array([value], np.float64) for name, value in trace.items()}


def _checked(token_ids: Sequence[int], context: int, size: int) -> list[int]:
    ids = list(token_ids)
    if not 1 <= len(ids) <= context:
        raise InputError(f"prompt: expected 1 to {context} tokens, found {len(ids)}")
    for token_id in ids:
        if isinstance(token_id, bool) or not isinstance(token_id, int | np.integer):
            raise InputError(f"token id: expected an integer, found {type(token_id).__name__}")
        if not 0 <= token_id < size:
            raise InputError(f"token id: expected 0 to {size - 1}, found {token_id}")
    return [int(token_id) for token_id in ids]


def _layer(
    checkpoint: Checkpoint, tensors: dict[str, Any], at: str, rows: Matrix, trace: dict[str, Any]
) -> Matrix:
    """Run one block on the rows (T, d), record its intermediates and return its output (T, d)."""
    config = checkpoint.config
    ln_1 = _norm(rows, tensors, f"{at}ln_1.", config.layer_norm_epsilon)
    qkv = _linear(ln_1, tensors, f"{at}attn.c_attn.")  # (T, 3d): all of q, then k, then v
    q, k, v = (_heads(qkv, part, config.n_head, config.d_h) for part in range(3))
    scores = [_scores(q[head], k[head]) for head in range(config.n_head)]
    attention = [[_softmax(row) for row in head] for head in scores]
    mix = [_mix(attention[head], v[head]) for head in range(config.n_head)]
    merged = [[x for head in mix for x in head[place]] for place in range(len(rows))]
    attn_output = _linear(merged, tensors, f"{at}attn.c_proj.")
    residual_mid = _add(rows, attn_output)
    ln_2 = _norm(residual_mid, tensors, f"{at}ln_2.", config.layer_norm_epsilon)
    hidden = _linear(ln_2, tensors, f"{at}mlp.c_fc.")
    gelu = _gelu_tanh if config.activation_function == "gelu_new" else _gelu_exact
    activation = [[gelu(x) for x in row] for row in hidden]
    mlp_output = _linear(activation, tensors, f"{at}mlp.c_proj.")
    residual = _add(residual_mid, mlp_output)
    computed = {
        "ln_1": ln_1, "q": q, "k": k, "v": v, "keys": k, "values": v, "scores": scores,
        "attention": attention, "mix": mix, "attn_output": attn_output,
        "residual_mid": residual_mid, "ln_2": ln_2, "mlp_hidden": hidden,
        "mlp_activation": activation, "mlp_output": mlp_output, "residual": residual,
    }  # fmt: skip
    trace.update({f"{at}{name}": value for name, value in computed.items()})
    return residual


def _dot(left: Vector, right: Vector) -> float:
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total


def _add(left: Matrix, right: Matrix) -> Matrix:
    pairs = zip(left, right, strict=True)
    return [[a + b for a, b in zip(one, other, strict=True)] for one, other in pairs]


def _linear(rows: Matrix, tensors: dict[str, Any], at: str) -> Matrix:
    """Rows (T, in) times ``weight`` (in, out) plus ``bias`` (out,) where there is one."""
    columns = [list(column) for column in zip(*tensors[f"{at}weight"], strict=True)]
    bias = tensors.get(f"{at}bias", [0.0] * len(columns))
    return [[_dot(row, c) + b for c, b in zip(columns, bias, strict=True)] for row in rows]


def _norm(rows: Matrix, tensors: dict[str, Any], at: str, epsilon: float) -> Matrix:
    normed = []
    for row in rows:
        mean = sum(row) / len(row)
        # A product overflows to infinity, where a power of a float raises.
        variance = sum((x - mean) * (x - mean) for x in row) / len(row)
        scale = 1.0 / math.sqrt(variance + epsilon)
        parts = zip(row, tensors[f"{at}weight"], tensors[f"{at}bias"], strict=True)
        normed.append([(x - mean) * scale * weight + bias for x, weight, bias in parts])
    return normed


def _heads(qkv: Matrix, part: int, heads: int, d_h: int) -> list[Matrix]:
    """Cut q (part 0), k (1) or v (2) out of rows (T, 3d), as h matrices (T, d_h)."""
    starts = [part * heads * d_h + head * d_h for head in range(heads)]
    return [[row[start : start + d_h] for row in qkv] for start in starts]


def _scores(q: Matrix, k: Matrix) -> Matrix:
    """Return q·k / sqrt(d_h) where key <= query, else -inf: (T, T)."""
    root = math.sqrt(len(q[0]))
    length = len(q)
    return [
        [_dot(q[i], k[j]) / root if j <= i else -math.inf for j in range(length)]
        for i in range(length)
    ]


def _softmax(scores: Vector) -> Vector:
    peak = max(scores)
    exponentials = [math.exp(score - peak) for score in scores]
    total = sum(exponentials)
    return [exponential / total for exponential in exponentials]


def _mix(attention: Matrix, v: Matrix) -> Matrix:
    """Attention (T, T) times values (T, d_h)."""
    columns = [list(column) for column in zip(*v, strict=True)]
    return [[_dot(row, column) for column in columns] for row in attention]


def _gelu_tanh(x: float) -> float:
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def _gelu_exact(x: float) -> float:
    return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))
