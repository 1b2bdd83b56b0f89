"""The KV cache: one K and one V per layer, appended once per consumed token, with an owner."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import (
    ContextOverflowError,
    ForeignRequestError,
    StaleCacheError,
)

Array = NDArray[Any]


class CacheOwner(NamedTuple):
    """Whose keys and values a cache holds."""

    checkpoint_digest: str
    request_id: str


class LayerCache:
    """Keys and values of one layer, preallocated with axes (B, h, capacity, d_h)."""

    __slots__ = ("_read_only", "keys", "layer", "length", "values")

    def __init__(self, layer: int, shape: tuple[int, int, int, int], dtype: Any) -> None:
        self.layer = layer
        self.length = 0
        self.keys: Array = np.zeros(shape, dtype)  # (B, h, capacity, d_h)
        self.values: Array = np.zeros(shape, dtype)  # (B, h, capacity, d_h)
        # What a forward pass reads and hands out: nobody can write to the cache through it.
        self._read_only = _read_only(self.keys), _read_only(self.values)

    def append(self, k: Array, v: Array) -> None:
        """Write the P new rows ``k`` and ``v`` (B, h, P, d_h) behind the valid ones."""
        start = self.length
        end = self.length = start + k.shape[2]
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v

    def valid(self) -> tuple[Array, Array]:
        """Return read-only views of the valid K and V, each (B, h, length, d_h)."""
        length = self.length
        keys, values = self._read_only
        return keys[:, :, :length], values[:, :, :length]


class KVCache:
    """The caches of all layers, the token ids they stand for, and their owner.

    A request owns its cache and is the only one to append to it. ``consumed`` holds, for each
    consumed position, the B token ids.
    """

    __slots__ = ("capacity", "consumed", "layers", "owner")

    def __init__(
        self, checkpoint: Checkpoint, request_id: str, batch: int = 1, capacity: int | None = None
    ) -> None:
        """Allocate an empty cache.

        Args:
            checkpoint: decides layers, heads, head width, dtype and the digest of the owner.
            request_id: the request that will fill it.
            batch: B, the sequences that run side by side.
            capacity: slots per layer; the model's context unless given.

        Raises:
            InputError: batch or capacity that is no integer >= 1.
        """
        config = checkpoint.config
        slots = config.n_positions if capacity is None else capacity
        for name, number in (("batch", batch), ("capacity", slots)):
            if type(number) is not int or number < 1:
                raise InputError(f"cache {name}: expected an integer >= 1, found {number!r}")
        shape = (batch, config.n_head, slots, config.d_h)
        self.layers = tuple(
            LayerCache(layer, shape, checkpoint.dtype) for layer in range(config.n_layer)
        )
        self.owner = CacheOwner(checkpoint.digest, request_id)
        self.capacity = slots
        self.consumed: list[tuple[int, ...]] = []

    @property
    def batch(self) -> int:
        """B, the sequences that run side by side."""
        return int(self.layers[0].keys.shape[0])

    @property
    def length(self) -> int:
        """Number of consumed inputs, which is the next position."""
        return len(self.consumed)

    def token_ids(self) -> Array:
        """Return the consumed token ids, (B, length)."""
        ids = np.array(self.consumed, dtype=np.int64).reshape(self.length, self.batch)
        return ids.T  # (length, B) -> (B, length)

    def valid_nbytes(self) -> int:
        """Bytes of the valid keys and values, read off the arrays (64 T in the frozen model)."""
        return sum(part.nbytes for layer in self.layers for part in layer.valid())

    def allocated_nbytes(self) -> int:
        """Bytes of the preallocated keys and values, read off the arrays."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.layers)

    def check(
        self, checkpoint: Checkpoint, request_id: str, count: int, guards: frozenset[str]
    ) -> None:
        """Refuse a stale checkpoint, a foreign request or ``count`` tokens too many.

        Raises:
            StaleCacheError, ForeignRequestError, ContextOverflowError: in this order, each
                when its guard is in ``guards``. Without the guard there is still no reading a
                cache of other sizes and no writing behind the last slot.
        """
        owner = self.owner
        if owner.checkpoint_digest != checkpoint.digest:
            self._check_stale(checkpoint, guards)
        if owner.request_id != request_id and "request" in guards:
            raise ForeignRequestError(owner.request_id, request_id)
        total, context = len(self.consumed) + count, checkpoint.config.n_positions
        if total > self.capacity or (total > context and "overflow" in guards):
            raise ContextOverflowError(f"at most {min(context, self.capacity)}", total)

    def _check_stale(self, checkpoint: Checkpoint, guards: frozenset[str]) -> None:
        if "checkpoint" in guards:
            raise StaleCacheError(self.owner.checkpoint_digest[:12], checkpoint.digest[:12])
        config, (_, heads, _, d_h) = checkpoint.config, self.layers[0].keys.shape
        sizes = "{} layers, {} heads of width {}"
        own = (len(self.layers), heads, d_h)
        if own != (found := (config.n_layer, config.n_head, config.d_h)):
            raise StaleCacheError(sizes.format(*own), sizes.format(*found))


def _read_only(array: Array) -> Array:
    view = array.view()
    view.setflags(write=False)
    return view
