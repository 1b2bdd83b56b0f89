"""The KV cache of a batch: rows of unequal length, each slot tagged with what was written there.

Layouts:

- ``left``: rows share slot numbers and end at the same slot; padding stands on the left.
- ``right``: every row starts at slot 0; padding stands on the right.
- ``ragged``: every row starts at slot 0 and nothing behind its own length is ever computed,
  written or read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.guards import (
    ContextOverflowError,
    ForeignRequestError,
    PositionError,
    StaleCacheError,
    WrongLayerError,
)

Array = NDArray[Any]

LEFT = "left"
RIGHT = "right"
RAGGED = "ragged"
LAYOUTS = (LEFT, RIGHT, RAGGED)

#: What a tag holds where there is nothing: no writer, or the position of padding.
NONE = -1

#: One slot's tag: indices into the cache's request ids and digests, a position, a layer, and
#: how many real tokens the row held before this one.
TAG = np.dtype(
    [(name, np.int32) for name in ("request", "position", "layer", "checkpoint", "order")]
)


class BatchTag(NamedTuple):
    """What an append wrote into a slot."""

    request_id: str
    position: int | None  # None where it is padding
    layer: int
    checkpoint_digest: str
    order: int  # real tokens that the row held before; of no meaning where it is padding


@dataclass(frozen=True, eq=False)
class CacheTags:
    """The tags of all slots at one moment, read-only.

    Attributes:
        entries: (L, R, S) of dtype :data:`TAG`; every field is -1 where nothing was written.
        request_ids: what ``entries["request"]`` counts.
        digests: what ``entries["checkpoint"]`` counts.
    """

    entries: Array
    request_ids: tuple[str, ...]
    digests: tuple[str, ...]

    def at(self, layer: int, row: int, slot: int) -> BatchTag | None:
        """Return one slot's tag, or None where no append has written."""
        request, position, own_layer, digest, order = self.entries[layer, row, slot].item()
        if request == NONE:
            return None
        held = None if position == NONE else position
        return BatchTag(self.request_ids[request], held, own_layer, self.digests[digest], order)


class BatchCache:
    """Keys and values of R rows in all layers, with axes (L, R, h, capacity, d_h).

    ``slots`` is S, the slots in use; ``real`` (R, capacity) is True where a slot holds a real
    token, ``lengths`` (R,) counts them. Tags are written by :meth:`append` alone and move with
    their slots when rows join, leave or shift.
    """

    __slots__ = (
        "_digest_numbers", "_request_numbers", "digest", "keys", "layout", "lengths", "real",
        "slots", "tags", "values",
    )  # fmt: skip

    def __init__(self, checkpoint: Checkpoint, layout: str) -> None:
        """Make a cache without rows.

        Raises:
            InputError: an unknown layout.
        """
        if layout not in LAYOUTS:
            raise InputError(f"layout: expected one of {', '.join(LAYOUTS)}, found {layout!r:.60}")
        config = checkpoint.config
        shape = (config.n_layer, 0, config.n_head, 0, config.d_h)
        self.layout = layout
        self.digest = checkpoint.digest
        self.keys: Array = np.zeros(shape, checkpoint.dtype)
        self.values: Array = np.zeros(shape, checkpoint.dtype)
        self.tags: Array = np.zeros((config.n_layer, 0, 0), TAG)
        self.real: NDArray[np.bool_] = np.zeros((0, 0), np.bool_)
        self.lengths: NDArray[np.intp] = np.zeros(0, np.intp)
        self.slots = 0
        self._request_numbers: dict[str, int] = {}
        self._digest_numbers: dict[str, int] = {}

    @property
    def rows(self) -> int:
        """R, the rows that run side by side."""
        return len(self.lengths)

    @property
    def capacity(self) -> int:
        """Allocated slots of each row."""
        columns: int = self.real.shape[1]
        return columns

    def real_nbytes(self) -> int:
        """Bytes of the keys and values of real tokens: the payload."""
        layers, _, heads, _, d_h = self.keys.shape
        return int(2 * layers * heads * d_h * self.keys.itemsize * self.lengths.sum())

    def allocated_nbytes(self) -> int:
        """Bytes of all slots, padding and room to grow included."""
        return self.keys.nbytes + self.values.nbytes

    def snapshot_tags(self) -> CacheTags:
        """Return the tags as they are now."""
        entries = self.tags[:, :, : self.slots].copy()
        entries.setflags(write=False)
        return CacheTags(entries, tuple(self._request_numbers), tuple(self._digest_numbers))

    def numbers_of_requests(self, request_ids: Sequence[str]) -> NDArray[np.intp]:
        """Return the numbers that stand for requests in the tags."""
        known = self._request_numbers
        return np.array([known.setdefault(name, len(known)) for name in request_ids])

    def number_of_digest(self, digest: str) -> int:
        """Return the number that stands for a checkpoint in the tags."""
        return self._digest_numbers.setdefault(digest, len(self._digest_numbers))

    # Rows that come, grow and go ----------------------------------------------------------------

    def add_rows(self, lengths: NDArray[np.intp]) -> slice:
        """Make room for rows that hold ``lengths`` tokens and return which rows they are.

        Their slots are zero and untagged until :meth:`append` fills them. In padded layouts the
        shorter rows get padding; the rows that were there shift when a new one is longer.
        """
        old, before = self.rows, self.slots
        slots = max(before, int(lengths.max()))
        rows = old + len(lengths)
        capacity = max(self.capacity, 2 * slots)
        self._move(rows, capacity, slots - before if self.layout == LEFT else 0)
        self.lengths = np.concatenate([self.lengths, lengths])
        self.slots = slots
        columns = np.arange(self.capacity)
        if self.layout == LEFT:
            real = (columns >= slots - lengths[:, np.newaxis]) & (columns < slots)
        else:
            real = columns < lengths[:, np.newaxis]
        self.real[old:] = real
        return slice(old, rows)

    def next_slots(self) -> NDArray[np.intp]:
        """Return the slots (R,) that one more token of each row would get."""
        return np.full(self.rows, self.slots) if self.layout == LEFT else self.lengths

    def add_slot(self) -> None:
        """Count one more real token in every row; :meth:`append` fills its slot."""
        taken = self.next_slots()
        slots = self.slots + 1
        if slots > self.capacity:
            self._move(self.rows, 2 * slots, 0)
        self.real[np.arange(self.rows), taken] = True
        self.lengths = self.lengths + 1
        self.slots = slots

    def _move(self, rows: int, capacity: int, shift: int) -> None:
        """Copy everything into larger arrays, ``shift`` slots further right."""
        layers, old, heads, _, d_h = self.keys.shape
        here, there = slice(self.slots), slice(shift, shift + self.slots)
        for name in ("keys", "values"):
            larger = np.zeros((layers, rows, heads, capacity, d_h), self.keys.dtype)
            larger[:, :old, :, there] = getattr(self, name)[:, :, :, here]
            setattr(self, name, larger)
        tags = np.full((layers, rows, capacity), NONE, TAG)
        tags[:, :old, there] = self.tags[:, :, here]
        real = np.zeros((rows, capacity), np.bool_)
        real[:old, there] = self.real[:, here]
        self.tags, self.real = tags, real

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order, and drop slots that are padding in all of them."""
        index = np.array(rows, np.intp)
        self.real, self.lengths = self.real[index], self.lengths[index]
        start = 0
        if self.layout == LEFT and len(index):
            start = int(self.real.any(axis=0).argmax())
            self.slots -= start
        else:
            self.slots = int(self.lengths.max(initial=0))
        self.keys = self.keys[:, index, :, start:]
        self.values = self.values[:, index, :, start:]
        self.tags = self.tags[:, index, start:]
        self.real = self.real[:, start:]

    def append(
        self, layer: int, rows: slice | Array, slots: slice | Array, k: Array, v: Array, tags: Array
    ) -> None:
        """Write keys, values and tags of one layer.

        Args:
            layer: whose arrays.
            rows: G rows.
            slots: a slice of P slots, the same for all rows, or one slot for each row (G,).
            k: (G, h, P, d_h); P is 1 where each row has its own slot.
            v: the same.
            tags: (G, P) of dtype :data:`TAG`.
        """
        if isinstance(slots, slice):
            self.keys[layer, rows, :, slots] = k
            self.values[layer, rows, :, slots] = v
            self.tags[layer, rows, slots] = tags
        else:
            self.keys[layer][rows, :, slots] = k[:, :, 0]
            self.values[layer][rows, :, slots] = v[:, :, 0]
            self.tags[layer][rows, slots] = tags[:, 0]

    # Guards -------------------------------------------------------------------------------------

    def check(
        self,
        checkpoint: Checkpoint,
        request_ids: Sequence[str],
        consumed: NDArray[np.intp],
        guards: frozenset[str],
    ) -> None:
        """Refuse a decode step on what the tags say is not the rows' own cache.

        Args:
            checkpoint: the one that would read.
            request_ids: for each row, the request that its token comes from.
            consumed: (R,) inputs that each of these requests has consumed.
            guards: which refusals are on.

        Raises:
            StaleCacheError, ForeignRequestError, WrongLayerError, PositionError,
            ContextOverflowError: in this order, each naming the row. A row whose cache is
            another request's is the request guard's business alone.
        """
        self.check_sizes(checkpoint)
        tags, real = self.tags[:, :, : self.slots], self.real[:, : self.slots]
        digest = self.number_of_digest(checkpoint.digest)
        numbers = self.numbers_of_requests(request_ids)
        stale = (tags["checkpoint"] != digest) & real  # (L, R, S)
        foreign = (tags["request"] != numbers[:, np.newaxis]) & real
        strange = (tags["layer"] != np.arange(len(tags))[:, np.newaxis, np.newaxis]) & real
        if "checkpoint" in guards and stale.any():
            layer, row, slot = np.argwhere(stale)[0]
            held = tuple(self._digest_numbers)[tags["checkpoint"][layer, row, slot]]
            raise StaleCacheError(held[:12], checkpoint.digest[:12], f" (row {row})")
        if "request" in guards and foreign.any():
            layer, row, slot = np.argwhere(foreign)[0]
            owner = tuple(self._request_numbers)[tags["request"][layer, row, slot]]
            raise ForeignRequestError(owner, request_ids[row], f" (row {row}, slot {slot})")
        if "layer" in guards and strange.any():
            layer, row, slot = np.argwhere(strange)[0]
            found = int(tags["layer"][layer, row, slot])
            raise WrongLayerError(int(layer), found, f" (row {row})")
        if "position" in guards:
            own = ~foreign.any(axis=(0, 2))
            for row in np.flatnonzero((self.lengths != consumed) & own):
                raise PositionError(int(consumed[row]), int(self.lengths[row]), f" (row {row})")
        context = checkpoint.config.n_positions
        if "overflow" in guards and (wrong := consumed >= context).any():
            row = int(wrong.argmax())
            raise ContextOverflowError(
                f"at most {context}", int(consumed[row]) + 1, f" (row {row})"
            )

    def check_sizes(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint of other sizes, whatever guards are on.

        Raises:
            StaleCacheError: its layers, heads or head width are not the cache's.
        """
        config, (layers, _, heads, _, d_h) = checkpoint.config, self.keys.shape
        own, found = (layers, heads, d_h), (config.n_layer, config.n_head, config.d_h)
        if own != found:
            sizes = "{} layers, {} heads of width {}"
            raise StaleCacheError(sizes.format(*own), sizes.format(*found))
