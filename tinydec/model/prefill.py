"""Prefill: P prompt positions at once, leaving one key and value per layer, head and position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.activations import Activations, BlockActivations
from tinydec.model.cache import KVCache, LayerCache, SlotTag, append_rows
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import GUARDS
from tinydec.model.inputs import checked_ids
from tinydec.model.operations import layer_norm, linear, mlp
from tinydec.model.seams import CORRECT, Seams, layer_sources, position_row
from tinydec.model.weights import BlockWeights

Array = NDArray[Any]


def prefill(
    checkpoint: Checkpoint,
    cache: KVCache,
    token_ids: Any,
    request_id: str,
    seams: Seams = CORRECT,
    guards: frozenset[str] = GUARDS,
) -> Activations:
    """Consume P tokens at once behind the t that the cache already holds.

    Args:
        checkpoint: the decoder.
        cache: appended to in place: length t becomes t + P.
        token_ids: (B, P) integers, or (P,) when B = 1.
        request_id: the caller, who must own the cache.
        seams: interventions; none by default.
        guards: which refusals are on; all by default.

    Returns:
        Every intermediate of the P new positions; ``logits`` is (B, P, V).

    Raises:
        InputError: ids of a wrong shape or outside the vocabulary.
        GuardError: see :meth:`KVCache.check`; also a wrong position or layer. The cache is then
            as it was.
    """
    ids = checked_ids(checkpoint, token_ids)
    batch, count = ids.shape
    if batch != cache.batch:
        raise InputError(f"token ids: expected B = {cache.batch} sequences, found {batch}")
    cache.check(checkpoint, request_id, count, guards)
    weights = checkpoint.weights
    config = checkpoint.config
    sources = layer_sources(seams, cache.layer_tags(), guards)
    start = cache.length
    positions = tuple(
        position_row(seams, consumed, config.n_positions, guards)
        for consumed in range(start, start + count)
    )
    tags = [SlotTag(request_id, index) for index in range(start, start + count)]
    token = weights.wte[ids.reshape(-1)]  # (B, P) -> (B*P, d)
    position = weights.wpe.take(positions, 0)  # (P, d)
    rows = embedding = token + np.concatenate((position,) * batch)  # (B*P, d)
    cache.consumed.extend(map(tuple, ids.T.tolist()))
    blocks = []
    for block, own, source in zip(weights.blocks, cache.layers, sources, strict=True):
        activations = _block(rows, block, own, cache.layers[source], tags, checkpoint, seams)
        rows = activations.residual
        blocks.append(activations)
    ln_f = layer_norm(rows, weights.ln_f)
    logits = ln_f.dot(weights.head)  # (B*P, d) -> (B*P, V)
    return Activations(batch, positions, token, position, embedding, tuple(blocks), ln_f, logits)


def _block(
    rows: Array,
    block: BlockWeights,
    own: LayerCache,
    read: LayerCache,
    tags: list[SlotTag],
    checkpoint: Checkpoint,
    seams: Seams,
) -> BlockActivations:
    config = checkpoint.config
    batch, heads, d_h = own.keys.shape[0], config.n_head, config.d_h
    count = len(rows) // batch
    ln_1 = layer_norm(rows, block.ln_1)
    qkv = linear(ln_1, block.c_attn_weight, block.c_attn_bias)  # (B*P, d) -> (B*P, 3d)
    # (B*P, 3d) -> (B, P, 3, h, d_h) -> (B, h, 3, P, d_h)
    split = qkv.reshape(batch, count, 3, heads, d_h).swapaxes(1, 3)
    q, k, v = split[:, :, 0], split[:, :, 1], split[:, :, 2]  # 3 x (B, h, P, d_h)
    append_rows(own, k, v, tags, seams)
    keys, values = read.valid(seams.read_beyond)  # (B, h, t + P, d_h)
    scores = np.matmul(q, np.swapaxes(keys, 2, 3)) * (1 / math.sqrt(d_h))  # (B, h, P, t + P)
    scores = np.where(_visible(read, tags, keys.shape[2], seams), scores, -np.inf)
    peak = np.maximum.reduce(scores, axis=3, keepdims=True)
    attention = np.exp(scores - peak)
    attention /= np.add.reduce(attention, axis=3, keepdims=True)
    mix = np.matmul(attention, values)  # (B, h, P, d_h)
    merged = np.swapaxes(mix, 1, 2).reshape(rows.shape)  # (B, h, P, d_h) -> (B*P, d)
    attn_output = linear(merged, block.attn_c_proj_weight, block.attn_c_proj_bias)
    residual_mid = rows + attn_output
    ln_2 = layer_norm(residual_mid, block.ln_2)
    hidden, activated, mlp_output = mlp(ln_2, block, config.activation_function)
    return BlockActivations(
        ln_1=ln_1,
        q=q,
        k=k,
        v=v,
        keys=keys,
        values=values,
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


def _visible(read: LayerCache, tags: list[SlotTag], total: int, seams: Seams) -> Array:
    """Return the causal mask (P, t + P): a query sees the slots of inputs up to its own."""
    queries = np.array([tag.order for tag in tags])
    # A slot that nobody wrote, or that was read past the end, hides behind no query.
    orders = [0 if tag is None else tag.order for tag in read.tags]
    slots = np.array(orders + [0] * (total - len(orders)))
    visible: Array = slots[np.newaxis, :] <= queries[:, np.newaxis]
    return visible if seams.visible is None else seams.visible(visible)
