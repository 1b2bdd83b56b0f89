"""One input more than the context holds: refuse it, slide naively, or prefill again.

The yardstick is a full forward over the kept window: the context's last tokens with the new
one, at positions 0 to N - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.memory import decode_work, prefill_work
from tinydec.memory.measured import decoder_sizes
from tinydec.model.activations import freeze
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.guards import ContextOverflowError
from tinydec.model.inputs import checked_ids
from tinydec.model.prefill import prefill
from tinydec.model.seams import Seams
from tinydec.verification.compare import absolute_difference
from tinydec.verification.row_history import same_bytes

Array = NDArray[Any]

REFUSE, SLIDE, REPREFILL = "refuse", "naive sliding", "re-prefill"
METHODS = (REFUSE, SLIDE, REPREFILL)

_REQUEST = "overflow"
_ROLLING = Seams(rolls_when_full=True)


class Judged(NamedTuple):
    """What came of reading the input, held against the full forward over the kept window."""

    logits: Array  # (V,) of the new input
    key_errors: NDArray[np.float64]  # (L, N) largest difference of each slot's keys
    max_abs_error: float  # of the logits
    same_argmax: bool  # whether greedy would select the same token


@dataclass(frozen=True, eq=False)
class OverflowOutcome:
    """What one method makes of the input that does not fit.

    Attributes:
        method: one of ``METHODS``.
        token_ids: the inputs that the cache stands for afterwards.
        key_positions: for each slot, the position row under which its key was made.
        judged: what came of reading the input; None where it was refused.
        multiply_adds: the method's work for this input, all logits rows counted.
        refusal: the refusal's own words; empty where the input was read.
        unchanged: whether the cache has the bits that it had before.
    """

    method: str
    token_ids: tuple[int, ...]
    key_positions: tuple[int, ...]
    judged: Judged | None
    multiply_adds: int
    refusal: str
    unchanged: bool


@dataclass(frozen=True, eq=False)
class OverflowReport:
    """The three ways side by side.

    Attributes:
        filled: the N consumed tokens that fill the context.
        token_id: the input that comes next.
        reference: (V,) logits of the full forward over the kept window.
        outcomes: one for each method, in the order of ``METHODS``.
    """

    filled: tuple[int, ...]
    token_id: int
    reference: Array
    outcomes: tuple[OverflowOutcome, ...]

    def __post_init__(self) -> None:
        freeze(self.reference)
        for outcome in self.outcomes:
            if outcome.judged is not None:
                freeze(outcome.judged.logits, outcome.judged.key_errors)

    @property
    def kept(self) -> tuple[int, ...]:
        """The window that fits: the oldest token dropped, the new one at the end."""
        return (*self.filled[1:], self.token_id)

    def outcome(self, method: str) -> OverflowOutcome:
        """Return one method's outcome."""
        return self.outcomes[METHODS.index(method)]


def with_context(checkpoint: Checkpoint, rows: int) -> Checkpoint:
    """Return the decoder with the first ``rows`` rows of its position table alone.

    Raises:
        InputError: ``rows`` outside 1 to the context.
    """
    context = checkpoint.config.n_positions
    if type(rows) is not int or not 1 <= rows <= context:
        raise InputError(f"context: expected 1 to {context} rows, found {rows!r}")
    if rows == context:
        return checkpoint
    tensors = dict(checkpoint.tensors)
    tensors["wpe.weight"] = tensors["wpe.weight"][:rows]
    config = replace(checkpoint.config, n_positions=rows)
    return Checkpoint.build(
        config, checkpoint.vocabulary, tensors, checkpoint.provenance, checkpoint.mode
    )


def fill_context(checkpoint: Checkpoint, token_ids: Sequence[int]) -> tuple[int, ...]:
    """Return N + 1 tokens: the given ones, then greedy ones, whatever they are, ``eos`` too.

    Args:
        checkpoint: the decoder; N is its context.
        token_ids: at least one; those past N + 1 are left out.

    Raises:
        InputError: no token, or an unknown id.
    """
    context = checkpoint.config.n_positions
    ids = [int(token_id) for token_id in token_ids[: context + 1]]
    if len(ids) > context:
        checked_ids(checkpoint, ids[:-1])
        checked_ids(checkpoint, ids[-1:])
        return tuple(ids)
    cache = KVCache(checkpoint, _REQUEST)
    row = prefill(checkpoint, cache, ids, _REQUEST).last_logits[0]
    while len(ids) < context:
        ids.append(int(row.argmax()))
        row = decode_step(checkpoint, cache, ids[-1:], _REQUEST).last_logits[0]
    return (*ids, int(row.argmax()))


def overflow(checkpoint: Checkpoint, token_ids: Sequence[int]) -> OverflowReport:
    """Fill the context with the first N of N + 1 tokens, then try the last in three ways.

    Naive sliding drops the oldest slot and gives the new input the last position, so its keys
    come from positions 1, 2 ... N - 1 and N - 1 once more. Re-prefill reads the kept window
    from position 0 again.

    Raises:
        InputError: another number of tokens than N + 1, or an unknown id.
    """
    context = checkpoint.config.n_positions
    ids = tuple(token_ids)
    if len(ids) != context + 1:
        raise InputError(f"overflow: expected {context + 1} tokens, found {len(ids)}")
    filled, token_id = ids[:-1], ids[-1]
    full = full_forward(checkpoint, [*filled[1:], token_id])
    keys = np.stack([block.k[0] for block in full.blocks])  # L x (h, N, d_h) -> (L, h, N, d_h)
    reference = full.last_logits[0]
    outcomes = (
        _refuse(checkpoint, filled, token_id),
        _slide(checkpoint, filled, token_id, keys, reference),
        _prefill_again(checkpoint, filled, token_id, keys, reference),
    )
    return OverflowReport(filled, token_id, reference, outcomes)


def _filled(checkpoint: Checkpoint, ids: Sequence[int]) -> KVCache:
    cache = KVCache(checkpoint, _REQUEST)
    if ids:
        prefill(checkpoint, cache, [ids], _REQUEST)
    return cache


def _refuse(checkpoint: Checkpoint, filled: tuple[int, ...], token_id: int) -> OverflowOutcome:
    cache = _filled(checkpoint, filled)
    before = cache.export()
    refusal = ""
    try:
        decode_step(checkpoint, cache, [token_id], _REQUEST)
    except ContextOverflowError as error:
        refusal = str(error)
    after = cache.export()
    pairs = zip((*before.keys, *before.values), (*after.keys, *after.values), strict=True)
    unchanged = before.token_ids == after.token_ids and all(same_bytes(a, b) for a, b in pairs)
    return OverflowOutcome(REFUSE, filled, tuple(range(len(filled))), None, 0, refusal, unchanged)


def _slide(
    checkpoint: Checkpoint, filled: tuple[int, ...], token_id: int, keys: Array, reference: Array
) -> OverflowOutcome:
    cache = _filled(checkpoint, filled)
    found = decode_step(checkpoint, cache, [token_id], _REQUEST, _ROLLING)
    work = decode_work(decoder_sizes(checkpoint.config), len(filled) - 1).visible.total
    return _read(SLIDE, cache, found.last_logits[0], keys, reference, work)


def _prefill_again(
    checkpoint: Checkpoint, filled: tuple[int, ...], token_id: int, keys: Array, reference: Array
) -> OverflowOutcome:
    kept = filled[1:]
    cache = _filled(checkpoint, kept)
    found = decode_step(checkpoint, cache, [token_id], _REQUEST)
    sizes = decoder_sizes(checkpoint.config)
    work = decode_work(sizes, len(kept)).visible.total
    if kept:
        work += prefill_work(sizes, len(kept)).visible.total
    return _read(REPREFILL, cache, found.last_logits[0], keys, reference, work)


def _read(
    method: str, cache: KVCache, logits: Array, keys: Array, reference: Array, work: int
) -> OverflowOutcome:
    stored = np.stack([layer.valid()[0][0] for layer in cache.layers])  # (L, h, N, d_h)
    errors = absolute_difference(stored, keys).max(axis=(1, 3))  # (L, h, N, d_h) -> (L, N)
    largest = float(absolute_difference(logits, reference).max())
    return OverflowOutcome(
        method=method,
        token_ids=tuple(cache.token_ids()[0].tolist()),
        key_positions=tuple(-1 if tag is None else tag.order for tag in cache.layers[0].tags),
        judged=Judged(logits, errors, largest, bool(logits.argmax() == reference.argmax())),
        multiply_adds=work,
        refusal="",
        unchanged=False,
    )
