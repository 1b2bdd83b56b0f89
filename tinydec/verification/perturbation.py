"""What the next logits row depends on: past keys and values move it, past queries cannot.

A decode step never sees a past query. To put that to the test, the step is computed once more
with a query row for every position, past ones included, and the past ones are then changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.activations import Activations
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.inputs import checked_ids
from tinydec.model.operations import layer_norm, linear, mlp
from tinydec.model.prefill import prefill
from tinydec.model.weights import BlockWeights
from tinydec.verification.compare import absolute_difference

Array = NDArray[Any]

_REQUEST = "perturbation"


class PastMove(NamedTuple):
    """What adding one amount to a past position's query, key or value changes.

    ``query_scores`` is the largest change of the past query's own scores, which shows that the
    amount arrived; the other three are the largest change of the new logits row.
    """

    position: int
    query_scores: float
    query_logits: float
    key_logits: float
    value_logits: float


@dataclass(frozen=True)
class Perturbation:
    """One decode step, repeated with one past row changed at a time.

    Attributes:
        position: of the decode step's own token.
        amount: added to every number of a row, in every layer and head.
        moves: one for each past position.
        recompute_error: largest difference between the logits of the decode step and those of
            the recomputation with all query rows.
    """

    position: int
    amount: float
    moves: tuple[PastMove, ...]
    recompute_error: float

    @property
    def largest_query_move(self) -> float:
        """Largest change of the logits by any past query."""
        return max(move.query_logits for move in self.moves)


class AllQueries(NamedTuple):
    """A decode step with a query row for every position."""

    scores: tuple[Array, ...]  # one (h, t + 1, t + 1) for each layer
    logits: Array  # (V,), of the last position


def perturb_past(checkpoint: Checkpoint, token_ids: Sequence[int], amount: float) -> Perturbation:
    """Read all tokens but the last, then decode the last with each past row changed in turn.

    Args:
        checkpoint: the decoder.
        token_ids: at least two ids, at most the context.
        amount: what is added; finite.

    Raises:
        InputError: fewer than two tokens, too many, an unknown id, or no finite amount.
    """
    ids = checked_ids(checkpoint, token_ids)[0].tolist()
    if len(ids) < 2:
        raise InputError(f"perturbation: expected at least 2 tokens, found {len(ids)}")
    if not math.isfinite(amount):
        raise InputError(f"perturbation: expected a finite amount, found {amount!r}")
    past, _ = _filled(checkpoint, ids)
    plain = _decode(checkpoint, ids, None, 0, 0.0)
    whole = decode_with_all_queries(checkpoint, past, ids[-1])
    moves = []
    for position in range(len(ids) - 1):
        changed = decode_with_all_queries(checkpoint, past, ids[-1], position, amount)
        moves.append(
            PastMove(
                position,
                max(
                    _largest(a[:, position, : position + 1], b[:, position, : position + 1])
                    for a, b in zip(whole.scores, changed.scores, strict=True)
                ),
                _largest(whole.logits, changed.logits),
                _largest(plain, _decode(checkpoint, ids, "keys", position, amount)),
                _largest(plain, _decode(checkpoint, ids, "values", position, amount)),
            )
        )
    return Perturbation(len(ids) - 1, amount, tuple(moves), _largest(plain, whole.logits))


def decode_with_all_queries(
    checkpoint: Checkpoint,
    past: Activations,
    token_id: int,
    position: int | None = None,
    amount: float = 0.0,
) -> AllQueries:
    """Compute one decode step with the queries of all t + 1 positions, causally masked.

    Args:
        checkpoint: the decoder.
        past: a pass over the t positions before, B = 1; supplies their q, k and v.
        token_id: the new input.
        position: the past query to change, in every layer and head; None changes none.
        amount: what is added to it.
    """
    weights, t = checkpoint.weights, len(past.positions)
    rows = weights.wte[token_id : token_id + 1] + weights.wpe[t : t + 1]  # (1, d)
    every_score = []
    for block, before in zip(weights.blocks, past.blocks, strict=True):
        queries = before.q[0].copy()  # (h, t, d_h)
        if position is not None:
            queries[:, position] += np.asarray(amount, queries.dtype)
        ln_1 = layer_norm(rows, block.ln_1)
        qkv = linear(ln_1, block.c_attn_weight, block.c_attn_bias)  # (1, 3d)
        scores, mix = _attend(qkv, queries, before.k[0], before.v[0])
        every_score.append(scores)
        rows = _rest_of_block(rows, mix, block, checkpoint.config.activation_function)
    logits = layer_norm(rows, weights.ln_f).dot(weights.head)[0]  # (1, V) -> (V,)
    return AllQueries(tuple(every_score), logits)


def _attend(qkv: Array, queries: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """Return scores (h, t + 1, t + 1) and the last position's mix (1, d)."""
    heads, _, d_h = queries.shape
    new = qkv.reshape(3, heads, 1, d_h)  # (1, 3d) -> (3, h, 1, d_h)
    q, k, v = (
        np.concatenate((old, row), axis=1)  # (h, t + 1, d_h)
        for old, row in zip((queries, keys, values), new, strict=True)
    )
    scores = np.matmul(q, k.swapaxes(1, 2)) / math.sqrt(d_h)  # (h, t + 1, t + 1)
    hidden = np.triu(np.ones(scores.shape[1:], bool), 1)
    masked = np.where(hidden, -np.inf, scores)
    exponentials = np.exp(masked - masked.max(axis=2, keepdims=True))
    attention = exponentials / exponentials.sum(axis=2, keepdims=True)
    mix = np.matmul(attention, v)[:, -1:]  # (h, t + 1, d_h) -> (h, 1, d_h)
    return scores, mix.reshape(1, -1).astype(qkv.dtype)  # (h, 1, d_h) -> (1, d)


def _rest_of_block(rows: Array, mix: Array, block: BlockWeights, activation: str) -> Array:
    residual = rows + linear(mix, block.attn_c_proj_weight, block.attn_c_proj_bias)
    return residual + mlp(layer_norm(residual, block.ln_2), block, activation)[2]


def _filled(checkpoint: Checkpoint, ids: Sequence[int]) -> tuple[Activations, KVCache]:
    """Read all tokens but the last into a cache of its own."""
    cache = KVCache(checkpoint, _REQUEST)
    return prefill(checkpoint, cache, [ids[:-1]], _REQUEST), cache


def _decode(
    checkpoint: Checkpoint, ids: Sequence[int], part: str | None, position: int, amount: float
) -> Array:
    """Return the last token's logits (V,) after a change to one past row of every layer."""
    _, cache = _filled(checkpoint, ids)
    for layer in cache.layers if part else ():
        stored: Array = getattr(layer, str(part))
        stored[:, :, position] += np.asarray(amount, stored.dtype)
    logits: Array = decode_step(checkpoint, cache, [ids[-1]], _REQUEST).last_logits[0]
    return logits


def _largest(one: Array, other: Array) -> float:
    return float(absolute_difference(one, other).max())
