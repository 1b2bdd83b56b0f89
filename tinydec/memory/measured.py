"""Bytes read off real caches, and what lies beside the payload: weights, records, temporaries."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinydec.errors import InputError
from tinydec.memory.work import DecoderSizes
from tinydec.model.activations import Activations
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.prefill import prefill

_REQUEST = "memory"


@dataclass(frozen=True)
class MeasuredPayload:
    """Bytes of a real cache of B requests that hold ``tokens`` positions each."""

    tokens: int
    valid_bytes: int
    allocated_bytes: int


@dataclass(frozen=True)
class Footprint:
    """Bytes of everything that decoding holds, the payload and what it leaves out.

    Attributes:
        payload: valid keys and values.
        unused: slots that are set aside and not filled yet.
        records: what the cache knows besides: token ids, tags of slots, owner, array headers,
            as CPython counts its objects.
        weights: all tensors of the checkpoint.
        decode: every intermediate of one decode step.
        prefill: every intermediate of a prefill over the same tokens.
    """

    payload: int
    unused: int
    records: int
    weights: int
    decode: int
    prefill: int


def decoder_sizes(config: ModelConfig) -> DecoderSizes:
    """Return the sizes that the work of a checkpoint depends on."""
    return DecoderSizes(
        layers=config.n_layer,
        width=config.n_embd,
        heads=config.n_head,
        head_dim=config.d_h,
        mlp_width=config.n_inner,
        vocabulary=config.vocab_size,
        context=config.n_positions,
    )


def measure_payload(
    checkpoint: Checkpoint, lengths: Sequence[int], batch: int = 1
) -> tuple[MeasuredPayload, ...]:
    """Return the bytes of a cache after ``lengths`` consumed tokens, read off its arrays.

    Args:
        checkpoint: in the dtype of the cache.
        lengths: in ascending order, each at most the context.
        batch: B, requests side by side.

    Raises:
        InputError: lengths that do not ascend or exceed the context.
    """
    _check_lengths(lengths, checkpoint.config.n_positions)
    cache = KVCache(checkpoint, _REQUEST, batch)
    found = []
    for length in lengths:
        new = length - cache.length
        if new:
            prefill(checkpoint, cache, np.zeros((batch, new), np.int64), _REQUEST)
        found.append(MeasuredPayload(length, cache.valid_nbytes(), cache.allocated_nbytes()))
    return tuple(found)


def measure_footprint(checkpoint: Checkpoint, tokens: int, batch: int = 1) -> Footprint:
    """Return what a run of B requests holds after ``tokens`` consumed tokens each.

    Args:
        checkpoint: in the dtype of the arithmetic.
        tokens: T, from 1 to the context; the last one is consumed by a decode step.
        batch: B, requests side by side.

    Raises:
        InputError: ``tokens`` outside 1 to the context.
    """
    _check_lengths([1, tokens], checkpoint.config.n_positions)
    cache = KVCache(checkpoint, _REQUEST, batch)
    ids = np.zeros((batch, tokens), np.int64)
    if tokens > 1:
        prefill(checkpoint, cache, ids[:, :-1], _REQUEST)
    step = decode_step(checkpoint, cache, [0] * batch, _REQUEST)
    whole = prefill(checkpoint, KVCache(checkpoint, _REQUEST, batch), ids, _REQUEST)
    payload = cache.valid_nbytes()
    return Footprint(
        payload=payload,
        unused=cache.allocated_nbytes() - payload,
        records=_records(cache),
        weights=sum(array.nbytes for array in checkpoint.tensors.values()),
        decode=temporaries(step),
        prefill=temporaries(whole),
    )


def temporaries(found: Activations) -> int:
    """Return the bytes of every intermediate of a pass, without what the cache itself holds."""
    return sum(
        array.nbytes
        for name, array in found.named()
        if not name.endswith((".keys", ".values"))  # views of the cache
    )


def _records(cache: KVCache) -> int:
    """Return the bytes of a cache's Python objects, each counted once, without array data."""
    seen: set[int] = set()

    def size(value: Any) -> int:
        if id(value) in seen:
            return 0
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            return sys.getsizeof(value) - (value.nbytes if value.base is None else 0)
        return sys.getsizeof(value) + sum(size(part) for part in _parts(value))

    return size(cache)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    slots = getattr(type(value), "__slots__", ())
    held = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [*held, *vars(value).values()] if hasattr(value, "__dict__") else held


def _check_lengths(lengths: Sequence[int], context: int) -> None:
    if list(lengths) != sorted(lengths) or not all(0 <= length <= context for length in lengths):
        raise InputError(
            f"lengths: expected ascending numbers from 0 to {context} (the context), "
            f"found {list(lengths)!r:.60}"
        )
