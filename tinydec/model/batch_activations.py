"""Every intermediate of one batched pass, and any row of it as a solo pass would have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import Activations, BlockActivations
from tinydec.model.batch_plan import Plan, RowPlace

Array = NDArray[Any]


class GroupHeads(NamedTuple):
    """One layer's head tensors of one group: G rows, P queries, S slots read."""

    q: Array  # (G, h, P, d_h)
    k: Array  # (G, h, P, d_h)
    v: Array  # (G, h, P, d_h)
    keys: Array  # (G, h, S, d_h), what attention read
    values: Array  # (G, h, S, d_h)
    scores: Array  # (G, h, P, S), scaled; -inf where a key is not visible
    attention: Array  # (G, h, P, S); all zeros where a query sees no key
    mix: Array  # (G, h, P, d_h)

    def row(self, place: RowPlace) -> GroupHeads:
        """Return one row's real queries and keys, with a leading axis of 1."""
        one = slice(place.member, place.member + 1)
        queries, keys = place.queries, place.keys
        return GroupHeads(
            self.q[one, :, queries],
            self.k[one, :, queries],
            self.v[one, :, queries],
            self.keys[one, :, keys],
            self.values[one, :, keys],
            self.scores[one, :, queries][:, :, :, keys],
            self.attention[one, :, queries][:, :, :, keys],
            self.mix[one, :, queries],
        )


class BatchBlock(NamedTuple):
    """What one layer computed; row tensors hold the N packed rows of :class:`Plan`."""

    ln_1: Array  # (N, d)
    heads: tuple[GroupHeads, ...]  # one for each group
    attn_output: Array  # (N, d)
    residual_mid: Array  # (N, d)
    ln_2: Array  # (N, d)
    mlp_hidden: Array  # (N, m)
    mlp_activation: Array  # (N, m)
    mlp_output: Array  # (N, d)
    residual: Array  # (N, d), the layer's output


@dataclass(frozen=True, eq=False, slots=True)
class BatchActivations:
    """Everything that one batched pass computed, padding included."""

    plan: Plan
    token_embedding: Array  # (N, d)
    position_embedding: Array  # (N, d)
    embedding: Array  # (N, d)
    blocks: tuple[BatchBlock, ...]
    ln_f: Array  # (N, d)
    logit_rows: Array  # (N, V)

    @property
    def last_logits(self) -> Array:
        """Logits (R, V) of each row's last real query."""
        rows: Array = self.logit_rows.take(self.plan.last_packed, 0)
        return rows

    def row(self, row: int) -> Activations:
        """Return one row's intermediates, without padding, as a solo pass has them (B = 1)."""
        place = self.plan.places[row]
        packed = place.packed
        group = self.plan.groups[place.group]
        return Activations(
            1,
            tuple(group.positions[place.member, place.queries].tolist()),
            self.token_embedding[packed],
            self.position_embedding[packed],
            self.embedding[packed],
            tuple(_row_block(block, place) for block in self.blocks),
            self.ln_f[packed],
            self.logit_rows[packed],
        )

    def named(self) -> Iterator[tuple[str, Array]]:
        """Yield every tensor of the whole pass as (name, array), in the order of computation.

        Names are those of :meth:`Activations.named`; head tensors come once for each group.
        """
        yield "token_embedding", self.token_embedding
        yield "position_embedding", self.position_embedding
        yield "embedding", self.embedding
        for layer, block in enumerate(self.blocks):
            yield f"h.{layer}.ln_1", block.ln_1
            for heads in block.heads:
                for name, array in zip(heads._fields, heads, strict=True):
                    yield f"h.{layer}.{name}", array
            for name, array in zip(block._fields[2:], block[2:], strict=True):
                yield f"h.{layer}.{name}", array
        yield "ln_f", self.ln_f
        yield "logits", self.logit_rows

    def nan_counts(self) -> tuple[tuple[int, int], ...]:
        """Return, for each layer, how many NaN its output holds in padding and in real rows.

        A NaN in the residual stream stays in it, so that a clean last layer speaks for all.
        """
        if not np.isnan(self.blocks[-1].residual).any():
            return ((0, 0),) * len(self.blocks)
        real = self.plan.packed_real
        counts = []
        for block in self.blocks:
            found = np.isnan(block.residual).sum(axis=1)  # (N,)
            counts.append((int(found[~real].sum()), int(found[real].sum())))
        return tuple(counts)

    def snapshot(self) -> BatchActivations:
        """Return the same with views of the cache copied, and nothing left to write to."""
        blocks = tuple(
            block._replace(
                heads=tuple(
                    heads._replace(keys=heads.keys.copy(), values=heads.values.copy())
                    for heads in block.heads
                )
            )
            for block in self.blocks
        )
        found = BatchActivations(
            self.plan,
            self.token_embedding,
            self.position_embedding,
            self.embedding,
            blocks,
            self.ln_f,
            self.logit_rows,
        )
        for _, array in found.named():
            array.setflags(write=False)
        return found


def _row_block(block: BatchBlock, place: RowPlace) -> BlockActivations:
    heads = block.heads[place.group].row(place)
    packed = place.packed
    return BlockActivations(
        ln_1=block.ln_1[packed],
        **heads._asdict(),
        attn_output=block.attn_output[packed],
        residual_mid=block.residual_mid[packed],
        ln_2=block.ln_2[packed],
        mlp_hidden=block.mlp_hidden[packed],
        mlp_activation=block.mlp_activation[packed],
        mlp_output=block.mlp_output[packed],
        residual=block.residual[packed],
    )
