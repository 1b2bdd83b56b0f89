"""Run the cached path in chunks and compare it with the full forward, row by row."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import CACHE_TENSORS, HEAD_TENSORS, SCORE_TENSORS, Activations
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.prefill import prefill

Array = NDArray[Any]
REQUEST = "request 1"


def consume(checkpoint: Checkpoint, cache: KVCache, ids: Array, chunk: int) -> Activations:
    """Consume the next tokens of ids (B, T): a prefill of ``chunk``, or a decode step when 0."""
    start = cache.length
    if chunk == 0:
        return decode_step(checkpoint, cache, ids[:, start].tolist(), REQUEST)
    return prefill(checkpoint, cache, ids[:, start : start + chunk], REQUEST)


def run_cached(
    checkpoint: Checkpoint, token_ids: Any, chunks: Iterable[int], capacity: int | None = None
) -> tuple[KVCache, list[Activations]]:
    """Consume ids (B, T) in chunks (see :func:`tests.strategies.splits`)."""
    ids = np.array(token_ids)
    cache = KVCache(checkpoint, REQUEST, len(ids), capacity)
    return cache, [consume(checkpoint, cache, ids, chunk) for chunk in chunks]


def full_rows(name: str, array: Array, start: int, end: int) -> Array:
    """Cut out of a full forward's tensor what positions ``start`` to ``end - 1`` compute."""
    field = name.rsplit(".", 1)[-1]
    if field in CACHE_TENSORS:
        return array[:, :, :end]  # (B, h, T, d_h) -> (B, h, t, d_h)
    if field in SCORE_TENSORS:
        return array[:, :, start:end, :end]  # (B, h, T, T) -> (B, h, P, t)
    return array[:, :, start:end] if field in HEAD_TENSORS else array[:, start:end]


def distance(found: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest number if that is above 1."""
    if found.shape != expected.shape:
        return float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite]):
        return float("inf")
    scale = max(1.0, float(np.abs(expected[finite]).max()))
    error = float(np.abs(found[finite] - expected[finite]).max()) / scale
    return float("inf") if np.isnan(error) else error


def distances(steps: Sequence[Activations], full: Activations) -> dict[str, float]:
    """Return, for every named tensor, its largest distance from the full forward's rows."""
    worst: dict[str, float] = {}
    expected = dict(full.named())
    start = 0
    for step in steps:
        end = start + len(step.positions)
        for name, array in step.named():
            error = distance(array, full_rows(name, expected[name], start, end))
            worst[name] = max(worst.get(name, 0.0), error)
        start = end
    return worst


def worst_distance(
    checkpoint: Checkpoint, token_ids: Any, chunks: Iterable[int], capacity: int | None = None
) -> float:
    """Return the largest distance of any tensor between the cached path and the full forward."""
    _, steps = run_cached(checkpoint, token_ids, chunks, capacity)
    return max(distances(steps, full_forward(checkpoint, token_ids)).values())
