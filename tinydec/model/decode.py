"""The decode step: one consumed token, one query, one new key and value per layer and head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.activations import Activations, BlockActivations
from tinydec.model.cache import KVCache, LayerCache, SlotTag, append_rows
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.guards import GUARDS
from tinydec.model.inputs import integer_ids
from tinydec.model.operations import layer_norm, mlp
from tinydec.model.seams import CORRECT, Seams, layer_sources, position_row
from tinydec.model.weights import BlockWeights

Array = NDArray[Any]


def decode_step(
    checkpoint: Checkpoint,
    cache: KVCache,
    token_ids: Sequence[int],
    request_id: str,
    seams: Seams = CORRECT,
    guards: frozenset[str] = GUARDS,
) -> Activations:
    """Consume one token of each of B sequences at the next position.

    Args:
        checkpoint: the decoder.
        cache: appended to in place: length t becomes t + 1.
        token_ids: B ids, one for each sequence.
        request_id: the caller, who must own the cache.
        seams: interventions; none by default.
        guards: which refusals are on; all by default.

    Returns:
        Every intermediate of the one new position; ``logits`` is (B, 1, V).

    Raises:
        InputError: another number of ids than B, or an id that is no integer from 0 to V - 1.
        GuardError: see :meth:`KVCache.check`; also a wrong position or layer. The cache is then
            as it was.
    """
    ids = _checked_step(checkpoint, cache, token_ids)
    rolls = seams.rolls_when_full and cache.length >= checkpoint.config.n_positions
    cache.check(checkpoint, request_id, 0 if rolls else 1, guards)
    if rolls:
        cache.slide()
    weights, config = checkpoint.weights, checkpoint.config
    sources = layer_sources(seams, cache.layer_tags(), guards)
    index = len(cache.consumed)
    position = position_row(seams, index, config.n_positions, guards)
    tags = [SlotTag(request_id, index)]
    token = weights.wte.take(ids, 0)  # (B,) -> (B, d)
    row = weights.wpe[position : position + 1]  # (1, d)
    rows = embedding = token + row
    cache.consumed.append(tuple(ids))
    blocks = []
    for block, own, source in zip(weights.blocks, cache.layers, sources, strict=True):
        activations = _block(rows, block, own, cache.layers[source], tags, config, seams)
        rows = activations.residual
        blocks.append(activations)
    ln_f = layer_norm(rows, weights.ln_f)
    logits = ln_f.dot(weights.head)  # (B, d) -> (B, V)
    return Activations(len(ids), (position,), token, row, embedding, tuple(blocks), ln_f, logits)


def _checked_step(checkpoint: Checkpoint, cache: KVCache, token_ids: Sequence[int]) -> list[int]:
    ids = integer_ids(checkpoint, token_ids)
    if len(ids) != cache.batch:
        raise InputError(f"token ids: expected B = {cache.batch} ids, found {len(ids)}")
    return ids


def _block(
    rows: Array,
    block: BlockWeights,
    own: LayerCache,
    read: LayerCache,
    tags: list[SlotTag],
    config: ModelConfig,
    seams: Seams,
) -> BlockActivations:
    heads, d_h = config.n_head, config.d_h
    ln_1 = layer_norm(rows, block.ln_1)
    qkv = ln_1.dot(block.c_attn_weight)  # (B, d) -> (B, 3d)
    if block.c_attn_bias is not None:
        qkv = qkv + block.c_attn_bias
    split = qkv.reshape(-1, 3, heads, 1, d_h)  # (B, 3d) -> (B, 3, h, 1, d_h)
    q, k, v = split[:, 0], split[:, 1], split[:, 2]  # 3 x (B, h, 1, d_h)
    append_rows(own, k, v, tags, seams)
    # (B, h, t + 1, d_h): the single query sees every valid slot
    keys, values = read.valid(seams.read_beyond)
    scores = np.matmul(q, keys.swapaxes(2, 3)) / math.sqrt(d_h)  # (B, h, 1, t + 1)
    if seams.visible is not None:
        visible = seams.visible(np.ones((1, keys.shape[2]), bool))
        scores = np.where(visible, scores, -np.inf)
    exponentials = np.exp(scores - np.maximum.reduce(scores, axis=3, keepdims=True))
    attention = exponentials / np.add.reduce(exponentials, axis=3, keepdims=True)
    mix = np.matmul(attention, values)  # (B, h, 1, d_h)
    attn_output = mix.reshape(rows.shape).dot(block.attn_c_proj_weight)  # (B, d)
    if block.attn_c_proj_bias is not None:
        attn_output = attn_output + block.attn_c_proj_bias
    residual_mid = rows + attn_output
    ln_2 = layer_norm(residual_mid, block.ln_2)
    hidden, activated, mlp_output = mlp(ln_2, block, config.activation_function)
    residual = residual_mid + mlp_output
    return BlockActivations(
        ln_1, q, k, v, keys, values, scores, attention, mix, attn_output, residual_mid, ln_2,
        hidden, activated, mlp_output, residual,
    )  # fmt: skip
