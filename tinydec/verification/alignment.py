"""Lay the steps of a cached run side by side with the full forward, tensor by tensor.

Tensors of one kind are joined before they are compared: with arrays this small, time goes into
the number of calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import (
    CACHE_TENSORS,
    HEAD_TENSORS,
    SCORE_TENSORS,
    Activations,
    BlockActivations,
)
from tinydec.verification.compare import absolute_difference

Array = NDArray[Any]
Floats = NDArray[np.float64]
Spans = list[tuple[int, int]]  # the positions from where to where each step consumed

#: What a key that a step could not see yet is taken for: the value that the causal mask leaves.
_HIDDEN = {"scores": -np.inf, "attention": 0.0}

_FIELDS = BlockActivations._fields
#: Fields of a layer by kind: rows, heads of P positions, scores, and what attention read.
_KINDS = (
    tuple(name for name in _FIELDS if name not in HEAD_TENSORS),
    tuple(name for name in _FIELDS if name in HEAD_TENSORS - CACHE_TENSORS - SCORE_TENSORS),
    tuple(_HIDDEN),
    tuple(name for name in _FIELDS if name in CACHE_TENSORS),
)
_PLACES = tuple([_FIELDS.index(name) for name in kind] for kind in _KINDS)
_GET = tuple(itemgetter(*places) for places in _PLACES)


class _Tensors(NamedTuple):
    """The tensors of one forward pass by kind, in the order of computation."""

    rows: list[Array]  # each (B*P, n)
    heads: list[Array]  # each (B, h, P, d_h)
    scores: list[Array]  # each (B, h, P, t)
    cache: list[Array]  # each (B, h, t, d_h)


def position_errors(full: Activations, steps: Sequence[Activations]) -> Floats:
    """Return the largest difference of every tensor at every position.

    Args:
        full: the full forward of B prefixes of length T.
        steps: the cached path's prefill and decode steps over the same prefixes, T positions
            in all.

    Returns:
        (B, N, T) for the N tensors of ``tensor_names``, in the order of computation. A
        tensor of another shape than the full one's counts as infinitely far away.
    """
    whole, parts = _by_kind(full), [_by_kind(step) for step in steps]
    spans = list(pairwise(accumulate((len(step.positions) for step in steps), initial=0)))
    found = (
        _row_errors(whole.rows, [part.rows for part in parts], full.batch),
        _head_errors(whole.heads, [part.heads for part in parts], spans),
        _score_errors(whole.scores, [part.scores for part in parts], spans),
        _cache_errors(whole.cache, [part.cache for part in parts], spans),
    )
    errors = np.empty((full.batch, sum(map(len, whole)), len(full.positions)))
    for places, kind in zip(_order(len(full.blocks)), found, strict=True):
        errors[:, places] = kind
    return errors


def first_difference(
    errors: Floats, names: Sequence[str], tolerance: float
) -> tuple[str, int] | None:
    """Return the first tensor that differs and its position, or None.

    Positions come in the order in which they were consumed; within one position, tensors come
    in the order of computation.

    Args:
        errors: (N, T), one prefix of :func:`position_errors`.
        names: the N tensor names.
        tolerance: largest accepted difference.
    """
    beyond = errors > tolerance
    if not beyond.any():
        return None
    position = int(beyond.any(axis=0).argmax())
    return names[int(beyond[:, position].argmax())], position


def join_heads(arrays: Iterable[Array], shape: tuple[int, ...]) -> Array:
    """Join n tensors of one shape along their heads: n x (B, h, P, w) -> (B, n*h, P, w).

    A tensor of another shape counts as NaN throughout, which is infinitely far from anything.
    """
    return np.concatenate([_fitted(array, shape) for array in arrays], axis=1)


def slot_errors(whole: Array, steps: Sequence[Sequence[Array]], lengths: Sequence[int]) -> Floats:
    """Return the largest difference in every slot of what steps held of n tensors.

    Args:
        whole: (B, n*h, T, d_h), the n full tensors from :func:`join_heads`.
        steps: for each step n tensors (B, h, t, d_h).
        lengths: for each step the t slots that it should have.

    Returns:
        (B, n, S) for the S slots of all steps, one step behind the other.
    """
    batch, rows, _, width = whole.shape
    count = len(steps[0])
    heads = rows // count
    held = [
        join_heads(step, (batch, heads, length, width))
        for step, length in zip(steps, lengths, strict=True)
    ]
    reference = [whole[:, :, :length] for length in lengths]
    difference = absolute_difference(np.concatenate(reference, 2), np.concatenate(held, 2))
    by_tensor = difference.reshape(batch, count, heads, -1, width)
    return np.asarray(np.maximum.reduce(by_tensor, axis=(2, 4)))


def _by_kind(found: Activations) -> _Tensors:
    batch = found.batch
    position = found.position_embedding  # (P, d) -> (B*P, d)
    repeated = position if batch == 1 else np.concatenate((position,) * batch)
    kinds = _Tensors([found.token_embedding, repeated, found.embedding], [], [], [])
    for block in found.blocks:
        for tensors, get in zip(kinds, _GET, strict=True):
            tensors += get(block)
    kinds.rows.extend((found.ln_f, found.logit_rows))
    return kinds


def _order(layers: int) -> list[list[int]]:
    """Return, for each kind, the places of its tensors in ``tensor_names``."""
    first, size = 3, len(_FIELDS)  # three embeddings come before the first layer
    end = first + layers * size
    order = [[s + i for s in range(first, end, size) for i in places] for places in _PLACES]
    order[0] = [*range(first), *order[0], end, end + 1]
    return order


def _fitted(array: Array, shape: tuple[int, ...]) -> Array:
    return array if array.shape == shape else np.full(shape, np.nan)


def _row_errors(full: list[Array], steps: list[list[Array]], batch: int) -> Floats:
    """Return (B, n, T) errors of n tensors that hold rows."""
    widths = [array.shape[1] for array in full]
    passes = []
    for arrays in (full, *steps):
        count = len(arrays[0])  # B*P
        fitted = [_fitted(a, (count, w)) for a, w in zip(arrays, widths, strict=True)]
        # n x (B*P, w) -> (B*P, W) -> (B, P, W)
        passes.append(np.concatenate(fitted, axis=1).reshape(batch, count // batch, -1))
    whole, *parts = passes
    difference = absolute_difference(whole, np.concatenate(parts, axis=1))  # (B, T, W)
    starts = list(accumulate(widths[:-1], initial=0))
    largest: Floats = np.maximum.reduceat(difference, starts, axis=2)  # (B, T, n)
    return largest.swapaxes(1, 2)


def _head_errors(full: list[Array], steps: list[list[Array]], spans: Spans) -> Floats:
    """Return (B, n, T) errors of n tensors with axes (B, h, T, d_h)."""
    batch, heads, total, width = full[0].shape
    whole = join_heads(full, full[0].shape)
    parts = [
        join_heads(step, (batch, heads, end - start, width))
        for step, (start, end) in zip(steps, spans, strict=True)
    ]
    difference = absolute_difference(whole, np.concatenate(parts, axis=2))
    by_tensor = difference.reshape(batch, len(full), heads, total, width)
    return np.asarray(np.maximum.reduce(by_tensor, axis=(2, 4)))


def _score_errors(full: list[Array], steps: list[list[Array]], spans: Spans) -> Floats:
    """Return (B, n, T) errors of n tensors with axes (B, h, T, T), hidden keys included."""
    batch, heads, total, _ = full[0].shape
    cached = np.empty((batch, len(full) // len(_HIDDEN), len(_HIDDEN), heads, total, total))
    for kind, value in enumerate(_HIDDEN.values()):
        cached[:, :, kind] = value
    by_head = cached.reshape(batch, -1, total, total)  # (B, n*h, T, T)
    for step, (start, end) in zip(steps, spans, strict=True):
        by_head[:, :, start:end, :end] = join_heads(step, (batch, heads, end - start, end))
    difference = absolute_difference(join_heads(full, full[0].shape), by_head)
    by_tensor = difference.reshape(batch, len(full), heads, total, total)
    return np.asarray(np.maximum.reduce(by_tensor, axis=(2, 4)))


def _cache_errors(full: list[Array], steps: list[list[Array]], spans: Spans) -> Floats:
    """Return (B, n, T) errors of n tensors that attention read, t growing up to T.

    A prefill of P positions reads one (B, h, t, d_h) for all of them; each of its positions
    gets the error of the slots up to its own.
    """
    whole = join_heads(full, full[0].shape)
    slots = slot_errors(whole, steps, [end for _, end in spans])  # (B, n, sum of all t)
    errors = np.empty((len(whole), len(full), full[0].shape[2]))
    offset = 0
    for start, end in spans:
        held = slots[:, :, offset : offset + end]
        errors[:, :, start:end] = np.maximum.accumulate(held, axis=2)[:, :, start:]
        offset += end
    return errors
