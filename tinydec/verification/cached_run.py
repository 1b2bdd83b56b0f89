"""One prefix through the cached path, with everything recorded on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tinydec.generation.trace import DECODE, PREFILL, snapshot
from tinydec.model.activations import Activations, freeze
from tinydec.model.cache import CacheOwner, KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.guards import GUARDS
from tinydec.model.prefill import prefill
from tinydec.model.seams import CORRECT, Seams

Array = NDArray[Any]

_REQUEST = "equivalence"


@dataclass(frozen=True, eq=False)
class StoredLayer:
    """What one layer's cache held after a step.

    Attributes:
        layer: the layer's own index, as the cache records it.
        keys: (B, h, t, d_h), a copy.
        values: (B, h, t, d_h), a copy.
        nbytes: bytes of the two, read off the arrays.
    """

    layer: int
    keys: Array
    values: Array
    nbytes: int

    def __post_init__(self) -> None:
        freeze(self.keys, self.values)


@dataclass(frozen=True, eq=False)
class CachedStep:
    """One prefill or decode step: its intermediates and what the cache held before and after."""

    phase: str
    consumed: tuple[tuple[int, ...], ...]  # P columns of B ids
    length_before: int
    length_after: int
    owner: CacheOwner
    stored: tuple[StoredLayer, ...]
    activations: Activations


def run_cached(
    checkpoint: Checkpoint,
    token_ids: NDArray[Any],
    prefill_length: int,
    seams: Seams = CORRECT,
    guards: frozenset[str] = GUARDS,
) -> tuple[CachedStep, ...]:
    """Prefill the first tokens of B prefixes of one length, decode the rest one by one.

    Args:
        checkpoint: the decoder.
        token_ids: (B, T) ids.
        prefill_length: P, 0 <= P <= T; with 0 every token is consumed by a decode step.
        seams: interventions.
        guards: which refusals are on.

    Raises:
        GuardError: a guard refused an input.
    """
    batch, length = token_ids.shape
    cache = KVCache(checkpoint, _REQUEST, batch)
    steps = []
    if prefill_length:
        prompt = token_ids[:, :prefill_length]
        found = prefill(checkpoint, cache, prompt, _REQUEST, seams, guards)
        steps.append(_record(PREFILL, cache, 0, found))
    for position in range(prefill_length, length):
        column = token_ids[:, position].tolist()  # (B, T) -> B ids
        found = decode_step(checkpoint, cache, column, _REQUEST, seams, guards)
        steps.append(_record(DECODE, cache, position, found))
    return tuple(steps)


def _record(phase: str, cache: KVCache, before: int, found: Activations) -> CachedStep:
    stored = []
    for layer in cache.layers:
        keys, values = layer.valid()
        stored.append(
            StoredLayer(layer.layer, keys.copy(), values.copy(), keys.nbytes + values.nbytes)
        )
    return CachedStep(
        phase,
        tuple(cache.consumed[before:]),
        before,
        cache.length,
        cache.owner,
        tuple(stored),
        snapshot(found),
    )
