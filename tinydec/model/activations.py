"""Every intermediate of a forward pass, under names in the order of computation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class BlockActivations(NamedTuple):
    """What one layer computed for P positions of B sequences that have t positions so far.

    Row tensors hold their B * P rows one after another. ``keys`` and ``values`` are what
    attention read: in the full forward its own ``k`` and ``v``, in the cached path the cache.
    """

    ln_1: Array  # (B*P, d)
    q: Array  # (B, h, P, d_h)
    k: Array  # (B, h, P, d_h)
    v: Array  # (B, h, P, d_h)
    keys: Array  # (B, h, t, d_h)
    values: Array  # (B, h, t, d_h)
    scores: Array  # (B, h, P, t), scaled by 1/sqrt(d_h); -inf where a key is not visible
    attention: Array  # (B, h, P, t), each row sums to 1
    mix: Array  # (B, h, P, d_h), attention times values
    attn_output: Array  # (B*P, d), after c_proj
    residual_mid: Array  # (B*P, d)
    ln_2: Array  # (B*P, d)
    mlp_hidden: Array  # (B*P, m), before the activation
    mlp_activation: Array  # (B*P, m)
    mlp_output: Array  # (B*P, d), after c_proj
    residual: Array  # (B*P, d), the layer's output


#: Names of a layer's tensors whose axes are (B, h, P, ...); the others hold rows.
HEAD_TENSORS = frozenset({"q", "k", "v", "keys", "values", "scores", "attention", "mix"})
#: Those of them whose third axis is the cached length t, not P.
CACHE_TENSORS = frozenset({"keys", "values"})
#: Those whose last axis is the cached length t.
SCORE_TENSORS = frozenset({"scores", "attention"})


class Activations(NamedTuple):
    """Everything that one forward pass (full, prefill or decode step) computed.

    ``positions`` are the P absolute positions whose rows of ``wpe`` were read.
    """

    batch: int
    positions: tuple[int, ...]
    token_embedding: Array  # (B*P, d)
    position_embedding: Array  # (P, d)
    embedding: Array  # (B*P, d)
    blocks: tuple[BlockActivations, ...]
    ln_f: Array  # (B*P, d)
    logit_rows: Array  # (B*P, V)

    @property
    def logits(self) -> Array:
        """Logits (B, P, V)."""
        return self.logit_rows.reshape(self.batch, len(self.positions), -1)

    @property
    def last_logits(self) -> Array:
        """Logits (B, V) of the last position."""
        return self.logits[:, -1]

    def named(self) -> Iterator[tuple[str, Array]]:
        """Yield every tensor as (name, array) in the order of computation.

        Row tensors come as (B, P, n); head tensors as in :class:`BlockActivations`. The
        names are ``token_embedding``, ``position_embedding``, ``embedding``, then for each
        layer l ``h.{l}.`` + field name, then ``ln_f`` and ``logits``.
        """
        yield "token_embedding", self._rows(self.token_embedding)
        yield "position_embedding", self.position_embedding[None]  # (P, d) -> (1, P, d)
        yield "embedding", self._rows(self.embedding)
        for layer, block in enumerate(self.blocks):
            for name, array in zip(block._fields, block, strict=True):
                yield (
                    f"h.{layer}.{name}",
                    array if name in HEAD_TENSORS else self._rows(array),
                )
        yield "ln_f", self._rows(self.ln_f)
        yield "logits", self.logits

    def freeze(self) -> None:
        """Make every array read-only."""
        freeze(self.token_embedding, self.position_embedding, self.embedding)
        for block in self.blocks:
            freeze(*block)
        freeze(self.ln_f, self.logit_rows)

    def _rows(self, rows: Array) -> Array:
        return rows.reshape(self.batch, len(self.positions), -1)  # (B*P, n) -> (B, P, n)


def freeze(*arrays: Array) -> None:
    """Make arrays read-only, because more than one reader holds them."""
    for array in arrays:
        array.setflags(write=False)


def tensor_names(n_layer: int) -> tuple[str, ...]:
    """Return the names of :meth:`Activations.named`, in the order of computation."""
    blocks = (f"h.{layer}.{name}" for layer in range(n_layer) for name in BlockActivations._fields)
    return ("token_embedding", "position_embedding", "embedding", *blocks, "ln_f", "logits")
