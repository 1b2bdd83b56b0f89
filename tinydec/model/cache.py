"""The KV cache: one K and one V per layer, appended once per consumed token, with an owner."""

from __future__ import annotations

from collections.abc import Sequence
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
from tinydec.model.seams import Seams
from tinydec.runspec import check_integer, shown

Array = NDArray[Any]


#: Most slots of a layer, and most sequences side by side.
_MOST_SLOTS = 2**31 - 1


class CacheOwner(NamedTuple):
    """Whose keys and values a cache holds."""

    checkpoint_digest: str
    request_id: str


class CacheExport(NamedTuple):
    """The valid part of a cache, copied out."""

    owner: CacheOwner
    token_ids: list[list[int]]  # B lists of t ids
    keys: tuple[Array, ...]  # one (B, h, t, d_h) for each layer
    values: tuple[Array, ...]


class SlotTag(NamedTuple):
    """Who wrote a slot, and which of its inputs the slot stands for."""

    request_id: str
    order: int  # inputs that the request had consumed before this one


class LayerCache:
    """Keys and values of one layer, preallocated with axes (B, h, capacity, d_h).

    ``tags`` says for each slot who wrote it; only :meth:`append` writes tags, and a slot that
    was counted but never written has none.
    """

    __slots__ = ("_read_only", "keys", "layer", "length", "tags", "values")

    def __init__(self, layer: int, shape: tuple[int, int, int, int], dtype: Any) -> None:
        self.layer = layer
        self.length = 0
        self.tags: list[SlotTag | None] = []
        self.keys: Array = np.zeros(shape, dtype)  # (B, h, capacity, d_h)
        self.values: Array = np.zeros(shape, dtype)  # (B, h, capacity, d_h)
        # What a forward pass reads and hands out: nobody can write to the cache through it.
        self._read_only = _read_only(self.keys), _read_only(self.values)

    def append(self, k: Array, v: Array, tags: Sequence[SlotTag]) -> None:
        """Write the P new rows ``k`` and ``v`` (B, h, P, d_h) and their P tags behind the rest.

        Raises:
            ContextOverflowError: there are not P free slots; nothing is written then.
        """
        start = self.length
        end = start + k.shape[2]
        if end > self.keys.shape[2]:
            raise ContextOverflowError(f"at most {self.keys.shape[2]} slots", end)
        self.length = end
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.tags += tags

    def skip(self, count: int) -> None:
        """Move the counter on without writing: what a correct cache never does."""
        self.length += count
        self.tags += [None] * count

    def valid(self, beyond: int = 0) -> tuple[Array, Array]:
        """Return read-only views of the valid K and V, each (B, h, length, d_h).

        A correct reader asks for no slot ``beyond`` the valid ones.
        """
        length = self.length + beyond
        keys, values = self._read_only
        return keys[:, :, :length], values[:, :, :length]

    def truncate(self, length: int) -> None:
        """Forget the slots from ``length`` on and clear them."""
        self.keys[:, :, length:] = 0
        self.values[:, :, length:] = 0
        self.length = min(self.length, length)
        del self.tags[length:]


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
            InputError: batch or capacity that is no integer from 1 to 2^31 - 1, or a cache that
                memory cannot hold.
        """
        config = checkpoint.config
        slots = config.n_positions if capacity is None else capacity
        for name, number in (("batch", batch), ("capacity", slots)):
            check_integer(f"cache {name}", number, 1)
            if number > _MOST_SLOTS:
                raise InputError(
                    f"cache {name}: expected at most {_MOST_SLOTS}, found {shown(number)}"
                )
        shape = (batch, config.n_head, slots, config.d_h)
        try:
            self.layers = tuple(
                LayerCache(layer, shape, checkpoint.dtype) for layer in range(config.n_layer)
            )
        except (MemoryError, ValueError):  # the latter where the bytes are beyond any address
            raise InputError(
                f"cache: expected slots that memory can hold, found {batch} x {slots}"
            ) from None
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

    def layer_tags(self) -> list[int]:
        """Return the layer that each cache says it belongs to, in the order they stand."""
        return [layer.layer for layer in self.layers]

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

    def truncate(self, length: int) -> None:
        """Forget every consumed input from ``length`` on, in every layer.

        Raises:
            InputError: ``length`` is no integer from 0 to the present length.
        """
        if type(length) is not int or not 0 <= length <= self.length:
            raise InputError(f"truncate: expected 0 to {self.length}, found {length!r}")
        for layer in self.layers:
            layer.truncate(length)
        del self.consumed[length:]

    def slide(self) -> None:
        """Drop the oldest input from every layer and move the others one slot down.

        The keys that stay were made at their old positions: naive sliding, which is no longer
        the run that a full forward over the remaining inputs would make.
        """
        for layer in self.layers:
            for part in (layer.keys, layer.values):
                part[:, :, :-1] = part[:, :, 1:].copy()
                part[:, :, layer.length - 1 :] = 0
            layer.length -= 1
            del layer.tags[0]
        del self.consumed[0]

    def reset(self, checkpoint: Checkpoint, request_id: str, keep_length: bool = False) -> None:
        """Clear the cache and hand it to another request, so that its memory is used again.

        Args:
            checkpoint: of the sizes that the cache was made for; its digest becomes the owner's.
            request_id: the request that will fill it.
            keep_length: the fault of clearing the arrays and leaving the layers' lengths.

        Raises:
            StaleCacheError: the checkpoint has other sizes.
        """
        self._check_stale(checkpoint, frozenset())
        for layer in self.layers:
            length = layer.length
            layer.truncate(0)
            if keep_length:
                layer.skip(length)
        self.consumed.clear()
        self.owner = CacheOwner(checkpoint.digest, request_id)

    def export(self) -> CacheExport:
        """Return a copy of the valid keys and values that nothing later can change."""
        parts = [layer.valid() for layer in self.layers]
        return CacheExport(
            self.owner,
            self.token_ids().tolist(),
            tuple(_read_only(keys.copy()) for keys, _ in parts),
            tuple(_read_only(values.copy()) for _, values in parts),
        )

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


def append_rows(
    cache: LayerCache, k: Array, v: Array, tags: Sequence[SlotTag], seams: Seams
) -> None:
    """Append P new rows once each, or as the seams say.

    Args:
        cache: the layer's own.
        k: (B, h, P, d_h) new keys.
        v: (B, h, P, d_h) new values.
        tags: one for each of the P rows.
        seams: interventions; appending twice puts the copies side by side.
    """
    if seams.stored is not None:
        k, v = seams.stored(k, v)
    if seams.appends is None:
        cache.append(k, v, tags)
        return
    for row, tag in enumerate(tags):
        times = seams.appends(tag.order)
        if not times:
            cache.skip(1)
        for _ in range(times):
            cache.append(k[:, :, row : row + 1], v[:, :, row : row + 1], [tag])


def _read_only(array: Array) -> Array:
    view = array.view()
    view.setflags(write=False)
    return view
