"""The full forward: the whole prefix at once, causal, without any cache.

It is the reference that the cached path is held against, and shares no attention with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.activations import Activations, BlockActivations
from tinydec.model.checkpoint import EVALUATION, Checkpoint
from tinydec.model.inputs import checked_ids
from tinydec.model.operations import layer_norm, linear, mlp
from tinydec.model.seams import CORRECT_REFERENCE, ReferenceSeams
from tinydec.model.weights import BlockWeights

Array = NDArray[Any]

#: GPT-2's dropout probability, used in training mode alone.
DROPOUT = 0.1


def full_forward(
    checkpoint: Checkpoint,
    token_ids: Any,
    seams: ReferenceSeams = CORRECT_REFERENCE,
    generator: np.random.Generator | None = None,
) -> Activations:
    """Run the causal decoder on complete prefixes (Radford et al. 2019, pre-norm GPT-2).

    Args:
        checkpoint: the decoder; its dtype is the dtype of all arithmetic.
        token_ids: (B, T) integers, or (T,) for one prefix; 1 <= T <= n_positions.
        seams: interventions; none by default.
        generator: draws the dropout masks that training mode wants; unused in evaluation.

    Returns:
        Every intermediate of all T positions; ``logits`` is (B, T, V).

    Raises:
        InputError: no token, more than ``n_positions``, an id outside the vocabulary, or
            training mode without a generator.
    """
    ids = checked_ids(checkpoint, token_ids)
    batch, length = ids.shape
    weights = checkpoint.weights
    token = weights.wte[ids.reshape(-1)]  # (B, T) -> (B*T, d)
    position = weights.wpe[:length]  # (T, d)
    if seams.position_rows is not None:
        position = seams.position_rows(position)
    dropout = _dropout(checkpoint.mode, generator)
    embedding = dropout((token.reshape(batch, length, -1) + position).reshape(token.shape))
    future = np.triu(np.ones((length, length), bool), 1)  # True where key > query
    if seams.future is not None:
        future = seams.future(future)
    rows = embedding
    blocks = []
    for block in weights.blocks:
        activations = _block(rows, block, future, batch, checkpoint, dropout)
        rows = activations.residual
        blocks.append(activations)
    ln_f = layer_norm(rows, weights.ln_f)
    logits = ln_f.dot(weights.head)  # (B*T, d) -> (B*T, V)
    positions = tuple(range(length))
    return Activations(batch, positions, token, position, embedding, tuple(blocks), ln_f, logits)


def _dropout(mode: str, generator: np.random.Generator | None) -> Callable[[Array], Array]:
    """Return what the mode does to embedding, attention and the blocks' outputs.

    In training mode each value is dropped with GPT-2's probability of 0.1 and the others are
    divided by 0.9; in evaluation nothing happens.
    """
    if mode == EVALUATION:
        return lambda values: values
    if generator is None:
        raise InputError(f"full forward in {mode} mode: expected a generator, found none")

    def drop(values: Array) -> Array:
        kept = generator.random(values.shape) >= DROPOUT
        return (values * kept / (1 - DROPOUT)).astype(values.dtype)

    return drop


def _block(
    rows: Array,
    block: BlockWeights,
    future: Array,
    batch: int,
    checkpoint: Checkpoint,
    dropout: Callable[[Array], Array],
) -> BlockActivations:
    config = checkpoint.config
    heads, d_h, length = config.n_head, config.d_h, len(future)
    ln_1 = layer_norm(rows, block.ln_1)
    qkv = linear(ln_1, block.c_attn_weight, block.c_attn_bias)  # (B*T, d) -> (B*T, 3d)
    split = qkv.reshape(batch, length, 3, heads, d_h).transpose(2, 0, 3, 1, 4)
    q, k, v = split[0], split[1], split[2]  # 3 x (B, h, T, d_h)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(d_h)  # (B, h, T, T)
    np.copyto(scores, -np.inf, where=future)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attention = dropout(exponentials / exponentials.sum(axis=-1, keepdims=True))
    mix = attention @ v  # (B, h, T, d_h)
    merged = mix.transpose(0, 2, 1, 3).reshape(rows.shape)  # (B, h, T, d_h) -> (B*T, d)
    attn_output = dropout(linear(merged, block.attn_c_proj_weight, block.attn_c_proj_bias))
    residual_mid = rows + attn_output
    ln_2 = layer_norm(residual_mid, block.ln_2)
    hidden, activated, output = mlp(ln_2, block, config.activation_function)
    mlp_output = dropout(output)
    return BlockActivations(
        ln_1=ln_1,
        q=q,
        k=k,
        v=v,
        keys=k,
        values=v,
        scores=scores,
        attention=attention,
        mix=mix,
        attn_output=attn_output,
        residual_mid=residual_mid,
        ln_2=ln_2,
        mlp_hidden=hidden,
        mlp_activation=activated,
        mlp_output=mlp_output,
        residual=residual_mid + mlp_output,
    )
