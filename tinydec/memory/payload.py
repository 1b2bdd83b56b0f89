"""Cache payload: scalars and bytes, valid beside allocated, exact to the last byte.

One layer with keys and values caches `2 h_kv d_h` scalars per position (one K and one V row per
key/value head), so L layers, a batch of B and T positions give `2 L B h_kv T d_h`. A window layer
holds at most `window` positions (a rolling buffer), a latent layer `latent_dim` scalars per
position without the factor 2. Sources: Shazeer 2019 (multi-query), Ainslie et al. 2023 (grouped),
Jiang et al. 2023 (rolling buffer), DeepSeek-AI 2024 (latent), Kwon et al. 2023 (paged blocks).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tinydec.errors import InputError
from tinydec.memory._checks import whole_number
from tinydec.memory.dtypes import dtype_bytes
from tinydec.memory.layout import AttentionLayout


class HasBytes(Protocol):
    """Anything that knows its size in bytes, such as a NumPy array."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


@dataclass(frozen=True, slots=True)
class PayloadCheck:
    """The formula's bytes beside the bytes of the arrays that a cache really holds."""

    formula_bytes: int
    measured_bytes: int

    @property
    def agrees(self) -> bool:
        """True when both are the same number."""
        return self.formula_bytes == self.measured_bytes


def cache_scalars(*, layers: int, batch: int, kv_heads: int, tokens: int, head_dim: int) -> int:
    """Return `2 L B h_kv T d_h`; tokens may be 0 (an empty cache). InputError on bad numbers.

    >>> cache_scalars(layers=2, batch=1, kv_heads=2, tokens=4, head_dim=2)
    64
    """
    return (
        2
        * whole_number("layers", layers, 1)
        * whole_number("batch", batch, 1)
        * whole_number("kv_heads", kv_heads, 1)
        * whole_number("tokens", tokens, 0)
        * whole_number("head_dim", head_dim, 1)
    )


def cache_bytes(scalars: int, dtype: str) -> int:
    """Return the bytes of `scalars` cached numbers of `dtype`."""
    return whole_number("scalars", scalars, 0) * dtype_bytes(dtype)


def check_payload(scalars: int, dtype: str, arrays: Iterable[HasBytes]) -> PayloadCheck:
    """Compare the formula with the summed `nbytes` of a cache's arrays.

    Pass views of the valid positions to check the payload, whole arrays to check the allocation.
    """
    return PayloadCheck(cache_bytes(scalars, dtype), sum(int(array.nbytes) for array in arrays))


def valid_scalars(layout: AttentionLayout, tokens: int, batch: int = 1) -> int:
    """Return the scalars that hold cached values after `tokens` consumed inputs per request."""
    tokens = _tokens(layout, tokens, 0)
    return _scalars(layout, tokens, whole_number("batch", batch, 1), block_size=1)


def allocated_scalars(
    layout: AttentionLayout,
    tokens: int,
    batch: int = 1,
    *,
    block_size: int | None = None,
    capacity: int | None = None,
) -> int:
    """Return the scalars set aside for `tokens` consumed inputs per request.

    block_size: paged storage; each request's positions in each layer are rounded up to whole
    blocks. capacity: storage preallocated for that many positions. Neither: no more than is valid.
    A window layer never needs more than `window` positions, rounded up to blocks when paged.
    Raises InputError when both are given, or when the capacity does not hold the tokens.
    """
    tokens = _tokens(layout, tokens, 0)
    batch = whole_number("batch", batch, 1)
    if block_size is not None and capacity is not None:
        raise InputError(
            f"allocation: expected block_size or capacity, found both ({block_size}, {capacity})"
        )
    if block_size is not None:
        return _scalars(layout, tokens, batch, whole_number("block_size", block_size, 1))
    if capacity is not None:
        limit = f"the context of {layout.name}"
        capacity = whole_number("capacity", capacity, max(tokens, 1), layout.max_context, limit)
        return _scalars(layout, capacity, batch, block_size=1)
    return _scalars(layout, tokens, batch, block_size=1)


def growth_scalars(layout: AttentionLayout, tokens: int, batch: int = 1) -> int:
    """Return the scalars that the latest token added: valid at T minus valid at T - 1 (T >= 1).

    A window layer that is full replaces its oldest position, so it adds nothing.
    """
    tokens = _tokens(layout, tokens, 1)
    return valid_scalars(layout, tokens, batch) - valid_scalars(layout, tokens - 1, batch)


def requests_that_fit(
    layout: AttentionLayout,
    tokens: int,
    memory_bytes: int,
    *,
    dtype: str | None = None,
    block_size: int | None = None,
    capacity: int | None = None,
) -> int:
    """Return how many requests of `tokens` tokens fit in `memory_bytes` of cache memory (floor).

    dtype None means the layout's own. Storage as in `allocated_scalars`. Weights are not counted:
    pass what is left after them.
    """
    tokens = _tokens(layout, tokens, 1)
    scalars = allocated_scalars(layout, tokens, 1, block_size=block_size, capacity=capacity)
    one = cache_bytes(scalars, layout.dtype if dtype is None else dtype)
    return whole_number("memory_bytes", memory_bytes, 0) // one


def _tokens(layout: AttentionLayout, tokens: int, minimum: int) -> int:
    limit = f"the context of {layout.name}"
    return whole_number("tokens", tokens, minimum, layout.max_context, limit)


def _scalars(layout: AttentionLayout, positions: int, batch: int, block_size: int) -> int:
    def slots(count: int) -> int:
        return -(-count // block_size) * block_size

    in_window = positions if layout.window is None else min(positions, layout.window)
    per_request = layout.global_layers * slots(positions) + layout.window_layers * slots(in_window)
    return layout.scalars_per_position * batch * per_request
