"""Export, truncate, reset and the refusals of a cache, tried on a cache of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.cache import CacheExport, KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.guards import GuardError
from tinydec.model.inputs import checked_ids
from tinydec.model.prefill import prefill
from tinydec.verification.row_history import same_bytes

Array = NDArray[Any]

OWNER, STRANGER = "request-0", "request-1"


@dataclass(frozen=True)
class OperationResult:
    """What one operation left behind.

    Attributes:
        operation: what was called.
        length: consumed inputs that the cache holds afterwards.
        valid_bytes: bytes of its valid keys and values.
        owner: the request that it then belongs to.
        claim: what was checked.
        holds: whether it held.
        message: the refusal's own words; empty where nothing was refused.
    """

    operation: str
    length: int
    valid_bytes: int
    owner: str
    claim: str
    holds: bool
    message: str = ""


def try_operations(
    checkpoint: Checkpoint, token_ids: Sequence[int], keep: int
) -> tuple[OperationResult, ...]:
    """Fill a cache, then export, be refused twice, truncate to ``keep`` inputs and reset.

    Raises:
        InputError: an empty or too long prompt, an unknown id, ``keep`` outside 0 to its length.
    """
    ids = checked_ids(checkpoint, token_ids)
    if type(keep) is not int or not 0 <= keep <= ids.shape[1]:
        raise InputError(f"keep: expected 0 to {ids.shape[1]}, found {keep!r}")
    cache = KVCache(checkpoint, OWNER)
    prefill(checkpoint, cache, ids, OWNER)
    results = [_result(cache, "prefill", "one slot per input", cache.length == ids.shape[1])]
    copy = cache.export()
    claim = "the copy has the bits of the valid slots"
    results.append(_result(cache, "export()", claim, _matches(cache, copy, cache.length)))
    results.append(_stranger(checkpoint, cache))
    results.append(_stale(checkpoint, cache))
    cache.truncate(keep)
    holds = _matches(cache, copy, keep) and _zero_from(cache, keep)
    claim = f"the first {keep} kept their bits, the others are zero"
    results.append(_result(cache, f"truncate({keep})", claim, holds))
    before = [array.copy() for array in (*copy.keys, *copy.values)]
    cache.reset(checkpoint, STRANGER)
    unmoved = all(map(same_bytes, before, (*copy.keys, *copy.values)))
    claim = "every slot is zero, the exported copy kept its bits"
    results.append(_result(cache, "reset()", claim, _zero_from(cache, 0) and unmoved))
    return tuple(results)


def _stranger(checkpoint: Checkpoint, cache: KVCache) -> OperationResult:
    def append() -> None:
        decode_step(checkpoint, cache, [0], STRANGER)

    return _refusal(cache, "append by another request", append)


def _stale(checkpoint: Checkpoint, cache: KVCache) -> OperationResult:
    moved = dict(checkpoint.tensors)
    moved["ln_f.bias"] = moved["ln_f.bias"] + np.ones_like(moved["ln_f.bias"])
    other = checkpoint.with_tensors(moved)

    def append() -> None:
        decode_step(other, cache, [0], OWNER)

    return _refusal(cache, "append with changed weights", append)


def _refusal(cache: KVCache, operation: str, append: Callable[[], None]) -> OperationResult:
    """Try an append that must be refused and must leave the cache as it was."""
    before = cache.export()
    message = ""
    try:
        append()
    except GuardError as error:
        message = str(error)
    unmoved = cache.length == len(before.token_ids[0]) and _matches(cache, before, cache.length)
    claim = "refused, every slot as before"
    return _result(cache, operation, claim, bool(message) and unmoved, message)


def _result(
    cache: KVCache, operation: str, claim: str, holds: bool, message: str = ""
) -> OperationResult:
    owner = cache.owner.request_id
    return OperationResult(
        operation, cache.length, cache.valid_nbytes(), owner, claim, holds, message
    )


def _matches(cache: KVCache, copy: CacheExport, length: int) -> bool:
    """Whether the cache's first slots, and no others, are valid and have the copy's bits."""
    return all(
        layer.length == length
        and same_bytes(layer.keys[:, :, :length], keys[:, :, :length])
        and same_bytes(layer.values[:, :, :length], values[:, :, :length])
        for layer, keys, values in zip(cache.layers, copy.keys, copy.values, strict=True)
    )


def _zero_from(cache: KVCache, length: int) -> bool:
    return not any(
        part[:, :, length:].any() for layer in cache.layers for part in (layer.keys, layer.values)
    )
