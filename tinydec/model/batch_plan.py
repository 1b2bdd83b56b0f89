"""Where the queries of one batched pass stand: slots, positions, padding and masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.model.batch_cache import LEFT, NONE, RAGGED, TAG, BatchCache
from tinydec.model.seams import BatchSeams

Array = NDArray[Any]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


class Group(NamedTuple):
    """Rows whose attention is computed together: a whole padded batch, or rows of one length.

    G rows, P queries each, which read S slots.
    """

    members: Ints  # (G,) row numbers of the pass
    rows: slice | Ints  # the same rows, as an index into the cache
    slots: slice | Ints  # where the queries' keys and values go: P slots, or one for each row
    read: slice  # the S slots that attention reads
    token_ids: Ints  # (G, P)
    positions: Ints  # (G, P), rows of wpe that are read, padding included
    orders: Ints  # (G, P), real tokens that the row held before each query
    real: Bools  # (G, P), which queries are real tokens
    visible: Bools | None  # (G or 1, 1, P or 1, S), which keys a query sees; None: all of them


class RowPlace(NamedTuple):
    """Where one row of a pass is found in the packed and grouped tensors."""

    group: int
    member: int
    packed: Ints  # (P,) packed rows of its real queries
    queries: Ints  # (P,) their places among the group's queries
    keys: Ints  # (t,) places of its real keys among the slots that the group reads


@dataclass(frozen=True, eq=False)
class Plan:
    """One pass over R rows, which are the cache's rows from ``first_row`` on.

    Row-wise operations run on packed rows: group by group, row by row, query by query. The
    matrices have one line for each row; P is the longest row's number of queries and S the
    number of slots after the pass.

    Attributes:
        layout: the cache's.
        groups: one in a padded layout, one for each length in ``ragged``.
        first_row: the cache's row that is row 0 of the pass.
        lengths_before: (R,) real tokens before the pass.
        lengths_after: (R,) and after it.
        real_keys: (R, S), which slots hold real tokens after the pass.
    """

    layout: str
    groups: tuple[Group, ...]
    first_row: int
    lengths_before: Ints
    lengths_after: Ints
    real_keys: Bools

    def __post_init__(self) -> None:
        arrays = [self.lengths_before, self.lengths_after, self.real_keys]
        for group in self.groups:
            arrays += [part for part in group if isinstance(part, np.ndarray)]
        for array in arrays:
            array.setflags(write=False)

    @property
    def rows(self) -> int:
        """R, the rows of the pass."""
        return len(self.lengths_after)

    @cached_property
    def places(self) -> tuple[RowPlace, ...]:
        """Where each row is found."""
        found = dict(self._places())
        return tuple(found[row] for row in range(self.rows))

    def _places(self) -> Iterator[tuple[int, RowPlace]]:
        base = 0
        for number, group in enumerate(self.groups):
            count = group.real.shape[1]
            for member, row in enumerate(group.members.tolist()):
                queries = group.real[member].nonzero()[0]
                keys = self.real_keys[row, group.read].nonzero()[0]
                start = base + member * count
                yield row, RowPlace(number, member, start + queries, queries, keys)
            base += group.real.size

    @cached_property
    def last_packed(self) -> Ints:
        """Return (R,): the packed row of each row's last real query."""
        found = np.arange(self.rows)
        if self.groups[0].real.shape == (self.rows, 1):
            found.setflags(write=False)
            return found  # one query of every row, in order
        base = 0
        for group in self.groups:
            count = group.real.shape[1]
            last = count - 1 - group.real[:, ::-1].argmax(axis=1)  # (G,)
            found[group.members] = base + np.arange(len(last)) * count + last
            base += group.real.size
        found.setflags(write=False)
        return found

    @cached_property
    def packed_real(self) -> Bools:
        """Return (N,): which packed rows are real tokens."""
        return np.concatenate([group.real.ravel() for group in self.groups])

    @cached_property
    def token_ids(self) -> Ints:
        """Return (R, P): what each query consumes; -1 where a row has no such query."""
        return self._matrix([group.token_ids for group in self.groups])

    @cached_property
    def positions(self) -> Ints:
        """Return (R, P): the position of each query; -1 where it is padding."""
        return self._matrix([np.where(g.real, g.positions, NONE) for g in self.groups])

    @cached_property
    def query_slots(self) -> Ints:
        """Return (R, P): the slot that each query's key and value went to, or -1."""
        return self._matrix([np.broadcast_to(_slots(g), g.real.shape) for g in self.groups])

    @cached_property
    def query_pads(self) -> Bools:
        """Return (R, P): queries that were computed for padding; none in ``ragged``."""
        return _frozen(self._matrix([~group.real for group in self.groups]) == 1)

    @cached_property
    def pads(self) -> Bools:
        """Return (R, S): slots that are padding; none in ``ragged``."""
        none = self.layout == RAGGED
        return _frozen(np.zeros_like(self.real_keys) if none else ~self.real_keys)

    @cached_property
    def mask(self) -> Bools:
        """Return (R, P, S): which slot each query sees; no slot for padding."""
        found = np.zeros((*self.token_ids.shape, self.real_keys.shape[1]), np.bool_)
        for group in self.groups:
            shape = (len(group.members), 1, group.real.shape[1], group.read.stop - group.read.start)
            visible = True if group.visible is None else group.visible
            part = np.broadcast_to(visible, shape)[:, 0]  # (G, 1, P, S) -> (G, P, S)
            found[group.members, : shape[2], group.read] = part
        return _frozen(found)

    def _matrix(self, parts: Sequence[Array]) -> Ints:
        found = np.full((self.rows, max(part.shape[1] for part in parts)), NONE)
        for group, part in zip(self.groups, parts, strict=True):
            found[group.members, : part.shape[1]] = part
        return _frozen(found)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _slots(group: Group) -> Ints:
    """Return the slots written, (1, P) or (G, 1)."""
    if isinstance(group.slots, slice):
        return np.arange(group.slots.start, group.slots.stop)[np.newaxis]
    return group.slots[:, np.newaxis]


# Prefill ----------------------------------------------------------------------------------------


def plan_prompts(
    cache: BatchCache, prompts: Sequence[Sequence[int]], pad_id: int, seams: BatchSeams
) -> Plan:
    """Lay out R prompts behind the cache's rows; changes nothing."""
    lengths = np.array([len(prompt) for prompt in prompts])
    longest = int(lengths.max())
    slots = max(cache.slots, longest)
    if cache.layout == RAGGED:
        shapes = [np.flatnonzero(lengths == length) for length in sorted(set(lengths.tolist()))]
    else:
        shapes = [np.arange(len(lengths))]
    groups = tuple(
        _prompt_group(cache, members, [prompts[i] for i in members.tolist()], slots, pad_id, seams)
        for members in shapes
    )
    columns = np.arange(slots)
    if cache.layout == LEFT:
        real_keys = columns >= slots - lengths[:, np.newaxis]
    else:
        real_keys = columns < lengths[:, np.newaxis]
    before = np.zeros_like(lengths)
    return Plan(cache.layout, groups, cache.rows, before, lengths, real_keys)


def _prompt_group(
    cache: BatchCache,
    members: Ints,
    prompts: Sequence[Sequence[int]],
    slots: int,
    pad_id: int,
    seams: BatchSeams,
) -> Group:
    lengths = np.array([len(prompt) for prompt in prompts])[:, np.newaxis]  # (G, 1)
    count = int(lengths.max())
    start = slots - count if cache.layout == LEFT else 0
    columns = np.arange(count)
    index = columns - (count - lengths if cache.layout == LEFT else 0 * lengths)  # (G, P)
    real = (index >= 0) & (index < lengths)
    ids = np.full(real.shape, pad_id)
    ids[real] = [token_id for prompt in prompts for token_id in prompt]
    positions = np.where(real, index, 0)
    if seams.positions_from_slots:
        positions = np.broadcast_to(start + columns, real.shape)
    visible = columns <= columns[:, np.newaxis]  # (P, P): a query sees the slots up to its own
    visible = visible[np.newaxis, np.newaxis]
    if not (seams.pads_visible or real.all()):
        visible = visible & real[:, np.newaxis, np.newaxis, :] & real[:, np.newaxis, :, np.newaxis]
    place = slice(start, start + count)
    rows = cache.rows + members
    whole = len(rows) == 1 or rows[-1] - rows[0] == len(rows) - 1
    return Group(
        members,
        slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows,
        place,
        place,
        ids,
        positions,
        np.where(real, index, NONE),
        real,
        None if visible.all() else visible,
    )


# Decode -----------------------------------------------------------------------------------------


def plan_step(
    cache: BatchCache, token_ids: Sequence[int], consumed: Ints, seams: BatchSeams
) -> Plan:
    """Lay out one token for each of the cache's R rows; changes nothing."""
    ids = np.array(token_ids)
    lengths = cache.lengths
    taken = cache.next_slots()
    slots = int(taken.max()) + 1
    positions = taken if seams.positions_from_slots else consumed
    real_keys = np.zeros((cache.rows, slots), np.bool_)
    real_keys[:, : cache.slots] = cache.real[:, : cache.slots]
    real_keys[np.arange(cache.rows), taken] = True
    if cache.layout == RAGGED:
        shapes = [np.flatnonzero(taken == slot) for slot in sorted(set(taken.tolist()))]
        groups = tuple(
            _step_group(members, ids, positions, lengths, taken, None) for members in shapes
        )
    else:
        everyone = np.arange(cache.rows)
        seen = None if seams.pads_visible or real_keys.all() else real_keys
        groups = (_step_group(everyone, ids, positions, lengths, taken, seen),)
    return Plan(cache.layout, groups, 0, lengths, lengths + 1, real_keys)


def _step_group(
    members: Ints, ids: Ints, positions: Ints, orders: Ints, taken: Ints, seen: Bools | None
) -> Group:
    rows = len(ids)
    if len(members) != rows:
        ids, positions, orders, taken = (part[members] for part in (ids, positions, orders, taken))
    slots = int(taken.max()) + 1
    same = int(taken.min()) == slots - 1
    return Group(
        members,
        slice(0, rows) if len(members) == rows and same else members,
        slice(slots - 1, slots) if same else taken,
        slice(0, slots),
        ids[:, np.newaxis],
        positions[:, np.newaxis],
        orders[:, np.newaxis],
        np.ones((len(members), 1), np.bool_),
        None if seen is None else seen[:, np.newaxis, np.newaxis, :],
    )


def new_tags(group: Group, request_numbers: Ints, digest_number: int) -> Array:
    """Return the tags (G, P) that a group's append writes, but for the layer."""
    tags = np.empty(group.real.shape, TAG)
    tags["request"] = request_numbers[group.members][:, np.newaxis]
    tags["position"] = np.where(group.real, group.positions, NONE)
    tags["checkpoint"] = digest_number
    tags["order"] = group.orders
    return tags
