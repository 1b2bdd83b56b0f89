"""Lay the steps of a cached run side by side with the full forward, tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import CACHE_TENSORS, HEAD_TENSORS, Activations
from tinydec.verification.compare import absolute_difference

Array = NDArray[Any]
Floats = NDArray[np.float64]

#: What a key that a step could not see yet is taken for: the value that the causal mask leaves.
_HIDDEN = {"scores": -np.inf, "attention": 0.0}


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
    names, whole = zip(*full.named(), strict=True)
    stepped = [[array for _, array in step.named()] for step in steps]
    errors = np.full((full.batch, len(names), len(full.positions)), np.inf)
    for kind, indices in _alike(names, whole).items():
        errors[:, indices] = _group_errors(
            kind, [whole[i] for i in indices], [[step[i] for i in indices] for step in stepped]
        )
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


def _alike(names: Sequence[str], arrays: Sequence[Array]) -> dict[tuple[Any, ...], list[int]]:
    """Group tensors of one kind and shape, so that each group is compared in one go."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, (name, array) in enumerate(zip(names, arrays, strict=True)):
        field = name.rpartition(".")[2]
        kind = field if field in _HIDDEN else field in CACHE_TENSORS
        groups.setdefault((kind, field in HEAD_TENSORS, array.shape), []).append(index)
    return groups


def _group_errors(kind: tuple[Any, ...], full: list[Array], steps: list[list[Array]]) -> Floats:
    """Return (B, n, T) errors of n tensors of one shape."""
    field, heads, _ = kind
    try:
        whole = np.stack(full, axis=1)  # n x (B, ...) -> (B, n, ...)
        stacked = [np.stack(step, axis=1) for step in steps]
        if field is True:
            return _cache_errors(whole, stacked)
        if field in _HIDDEN:
            stacked = [_widened(step, whole.shape[-1], _HIDDEN[field]) for step in stacked]
        cached = np.concatenate(stacked, axis=3 if heads else 2)
        if cached.shape != whole.shape:
            raise ValueError("another shape")
    except ValueError:
        if len(full) > 1:  # find the tensors whose shapes are wrong one by one
            singles = [
                _group_errors(kind, [full[i]], [[step[i]] for step in steps])
                for i in range(len(full))
            ]
            return np.concatenate(singles, axis=1)
        return np.full((len(full[0]), 1, full[0].shape[2 if heads else 1]), np.inf)
    difference = absolute_difference(whole, cached)
    # (B, n, T, width) or (B, n, h, T, width) -> (B, n, T)
    return np.asarray(np.maximum.reduce(difference, axis=(2, 4) if heads else 3))


def _widened(array: Array, width: int, fill: float) -> Array:
    """Fill the keys that a step could not see yet: (B, n, h, P, t) -> (B, n, h, P, T)."""
    wide = np.full((*array.shape[:-1], width), fill, array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide


def _cache_errors(full: Array, steps: list[Array]) -> Floats:
    """Compare what each step's attention read with the full K or V of that length.

    A prefill of P positions reads one (B, h, t, d_h) for all of them; each of its positions
    gets the error of the slots up to its own.

    Args:
        full: (B, n, h, T, d_h).
        steps: each (B, n, h, t, d_h), t growing up to T.
    """
    batch, count, _, total, _ = full.shape
    errors = np.full((batch, count, total), np.inf)
    start = 0
    for step in steps:
        end = step.shape[3]
        reference = full[:, :, :, :end]
        if step.shape != reference.shape:
            raise ValueError("another shape")
        slots = np.maximum.reduce(absolute_difference(reference, step), axis=(2, 4))
        errors[:, :, start:end] = np.maximum.accumulate(slots, axis=2)[:, :, start:]
        start = end
    return errors
