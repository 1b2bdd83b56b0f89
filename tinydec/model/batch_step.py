"""Batched prefill and decode: many rows of unequal length in one pass.

This is a third path: its attention is its own, so that it can be held against the other two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.batch_activations import BatchActivations, BatchBlock, GroupHeads
from tinydec.model.batch_cache import BatchCache
from tinydec.model.batch_plan import Group, Plan, new_tags, plan_prompts, plan_step
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import GUARDS, PositionError, StaleCacheError
from tinydec.model.inputs import checked_prompt, integer_ids
from tinydec.model.operations import layer_norm, linear, mlp
from tinydec.model.seams import CORRECT_BATCH, BatchSeams
from tinydec.model.weights import BlockWeights

Array = NDArray[Any]
Ints = NDArray[np.intp]


def batch_prefill(
    checkpoint: Checkpoint,
    cache: BatchCache,
    prompts: Sequence[Sequence[int]],
    request_ids: Sequence[str],
    seams: BatchSeams = CORRECT_BATCH,
    guards: frozenset[str] = GUARDS,
) -> BatchActivations:
    """Add R rows to the cache and consume their prompts, all at once.

    Args:
        checkpoint: the decoder.
        cache: gets R rows behind those it has, in place.
        prompts: R sequences of ids, of any lengths from 1 to ``n_positions``.
        request_ids: who owns each row.
        seams: interventions; none by default.
        guards: which refusals are on; all by default.

    Returns:
        Every intermediate; row i of it is prompt i.

    Raises:
        InputError: no prompt, one that is empty, too long or holds an unknown id, or another
            number of request ids than prompts.
        GuardError: another checkpoint than the cache's, or a position that is not the number
            of real tokens before it. The cache is then as it was.
    """
    ids = [checked_prompt(checkpoint, prompt) for prompt in prompts]
    if not ids:
        raise InputError("prompts: expected at least one, found none")
    _check_count("request ids", len(request_ids), len(ids))
    cache.check_sizes(checkpoint)
    if cache.digest != checkpoint.digest and "checkpoint" in guards:
        raise StaleCacheError(cache.digest[:12], checkpoint.digest[:12])
    plan = plan_prompts(cache, ids, pad_token(checkpoint), seams)
    _check_positions(plan, checkpoint.config.n_positions, guards)
    cache.add_rows(plan.lengths_after)
    return _run(checkpoint, cache, plan, request_ids, seams)


def batch_decode_step(
    checkpoint: Checkpoint,
    cache: BatchCache,
    token_ids: Sequence[int],
    request_ids: Sequence[str],
    consumed: Sequence[int],
    seams: BatchSeams = CORRECT_BATCH,
    guards: frozenset[str] = GUARDS,
) -> BatchActivations:
    """Consume one token of every row, each at its own next position.

    Args:
        checkpoint: the decoder.
        cache: every row grows by one real token, in place.
        token_ids: R ids, one for each row.
        request_ids: for each of them the request that it comes from; it must own the row.
        consumed: for each of them how many inputs that request has consumed: its position.
        seams: interventions; none by default.
        guards: which refusals are on; all by default.

    Returns:
        Every intermediate of the R new positions.

    Raises:
        InputError: other numbers of ids, request ids or counts than rows, no row, an unknown id.
        GuardError: see :meth:`BatchCache.check`; also a position that is not ``consumed`` or
            has no row. The cache is then as it was.
    """
    rows = cache.rows
    for name, given in (
        ("token ids", token_ids),
        ("request ids", request_ids),
        ("consumed", consumed),
    ):
        _check_count(name, len(given), rows)
    if not rows:
        raise InputError("batch: expected at least one row, found none")
    ids = integer_ids(checkpoint, token_ids)
    counts = np.array(consumed, np.intp)
    cache.check(checkpoint, request_ids, counts, guards)
    plan = plan_step(cache, ids, counts, seams)
    _check_positions(plan, checkpoint.config.n_positions, guards, counts)
    cache.add_slot()
    return _run(checkpoint, cache, plan, request_ids, seams)


def pad_token(checkpoint: Checkpoint) -> int:
    """Return the id that stands in padded places: ``<eos>`` where there is one, else 0."""
    eos = checkpoint.vocabulary.eos_id
    return 0 if eos is None else eos


def _check_count(name: str, found: int, rows: int) -> None:
    if found != rows:
        raise InputError(f"{name}: expected {rows}, one a row, found {found}")


def _check_positions(
    plan: Plan, context: int, guards: frozenset[str], consumed: Ints | None = None
) -> None:
    for group in plan.groups:
        # Real queries come one after another, from the row's consumed inputs on.
        expected = group.real.cumsum(axis=1) - 1  # (G, P)
        if consumed is not None:
            expected = expected + consumed[group.members][:, np.newaxis]
        wrong = (group.positions != expected) & group.real
        if "position" in guards and wrong.any():
            member, query = np.argwhere(wrong)[0]
            raise PositionError(
                int(expected[member, query]),
                int(group.positions[member, query]),
                f" (row {group.members[member]})",
            )
        highest = int(group.positions.max())
        if highest >= context:
            raise PositionError(f"a row from 0 to {context - 1}", highest)


# The pass ---------------------------------------------------------------------------------------


def _run(
    checkpoint: Checkpoint,
    cache: BatchCache,
    plan: Plan,
    request_ids: Sequence[str],
    seams: BatchSeams,
) -> BatchActivations:
    weights = checkpoint.weights
    numbers = cache.numbers_of_requests(request_ids)
    digest = cache.number_of_digest(checkpoint.digest)
    tags = [new_tags(group, numbers, digest) for group in plan.groups]
    ids, positions = (
        np.concatenate([getattr(group, name).ravel() for group in plan.groups])
        for name in ("token_ids", "positions")
    )
    token = weights.wte.take(ids, 0)  # (N,) -> (N, d)
    position = weights.wpe.take(positions, 0)  # (N,) -> (N, d)
    rows = embedding = token + position
    blocks = []
    with np.errstate(invalid="ignore" if seams.plain_softmax else None):
        for layer, block in enumerate(weights.blocks):
            found = _block(rows, block, layer, cache, plan, tags, checkpoint, seams)
            rows = found.residual
            blocks.append(found)
        ln_f = layer_norm(rows, weights.ln_f)
        logits = ln_f.dot(weights.head)  # (N, d) -> (N, V)
    return BatchActivations(plan, token, position, embedding, tuple(blocks), ln_f, logits)


def _block(
    rows: Array,
    block: BlockWeights,
    layer: int,
    cache: BatchCache,
    plan: Plan,
    tags: list[Array],
    checkpoint: Checkpoint,
    seams: BatchSeams,
) -> BatchBlock:
    ln_1 = layer_norm(rows, block.ln_1)
    qkv = linear(ln_1, block.c_attn_weight, block.c_attn_bias)  # (N, d) -> (N, 3d)
    heads, merged, start = [], [], 0
    for group, new in zip(plan.groups, tags, strict=True):
        end = start + group.real.size
        new["layer"] = layer
        found = _attend(qkv[start:end], group, layer, cache, new, seams)
        heads.append(found)
        merged.append(found.mix.swapaxes(1, 2).reshape(end - start, -1))  # -> (G*P, d)
        start = end
    mixed = merged[0] if len(merged) == 1 else np.concatenate(merged)  # (N, d)
    attn_output = linear(mixed, block.attn_c_proj_weight, block.attn_c_proj_bias)
    residual_mid = rows + attn_output
    ln_2 = layer_norm(residual_mid, block.ln_2)
    hidden, activated, mlp_output = mlp(ln_2, block, checkpoint.config.activation_function)
    residual = residual_mid + mlp_output
    return BatchBlock(
        ln_1, tuple(heads), attn_output, residual_mid, ln_2, hidden, activated, mlp_output, residual
    )


def _attend(
    qkv: Array, group: Group, layer: int, cache: BatchCache, tags: Array, seams: BatchSeams
) -> GroupHeads:
    """Append a group's keys and values and attend over what its rows then hold.

    Args:
        qkv: (G*P, 3d).
        group: who, where and what is visible.
        layer: whose cache.
        cache: appended to in place.
        tags: (G, P) what the append writes beside the values.
        seams: interventions.
    """
    members, count = group.real.shape
    _, _, heads, _, d_h = cache.keys.shape
    split = qkv.reshape(members, count, 3, heads, d_h).swapaxes(1, 3)  # (G, h, 3, P, d_h)
    q, k, v = split[:, :, 0], split[:, :, 1], split[:, :, 2]  # 3 x (G, h, P, d_h)
    cache.append(layer, group.rows, group.slots, k, v, tags)
    keys = cache.keys[layer, group.rows, :, group.read]  # (G, h, S, d_h)
    values = cache.values[layer, group.rows, :, group.read]  # (G, h, S, d_h)
    scores = np.matmul(q, keys.swapaxes(2, 3)) * (1 / math.sqrt(d_h))  # (G, h, P, S)
    if group.visible is not None:
        scores = np.where(group.visible, scores, -np.inf)
    peak = np.maximum.reduce(scores, axis=3, keepdims=True)
    blind = None
    if group.visible is not None and not seams.plain_softmax:
        blind = peak == -np.inf  # a query that sees no key
        peak = np.where(blind, 0, peak)
    weights = np.exp(scores - peak)
    total = np.add.reduce(weights, axis=3, keepdims=True)
    if blind is not None:
        total = np.where(blind, 1, total)  # its weights are all zero, and stay so
    attention = weights / total
    return GroupHeads(q, k, v, keys, values, scores, attention, np.matmul(attention, values))
