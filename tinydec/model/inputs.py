"""Checks of token ids before any arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint


def checked_ids(checkpoint: Checkpoint, token_ids: Any) -> NDArray[np.int64]:
    """Return ids as a (B, T) array; a single sequence (T,) becomes (1, T).

    Raises:
        InputError: not integers, not one or two axes, no token, more than ``n_positions``, or
            an id outside 0 to V - 1.
    """
    try:
        ids = np.asarray(token_ids)
    except ValueError:
        raise InputError(
            "token ids: expected sequences of one length, found unequal lengths"
        ) from None
    if isinstance(token_ids, list | tuple) and _has_boolean(token_ids):
        raise InputError("token ids: expected integers, found bool")
    if ids.size and ids.dtype.kind not in "iu":
        raise InputError(f"token ids: expected integers, found {ids.dtype.name}")
    if ids.ndim not in (1, 2):
        raise InputError(f"token ids: expected axes (B, T) or (T,), found shape {ids.shape}")
    ids = np.atleast_2d(ids)  # (T,) -> (1, T)
    size = checkpoint.config.vocab_size
    _check_length(checkpoint, ids.shape[1] if ids.size else 0)
    if ids.min() < 0 or ids.max() >= size:
        raise _unknown(ids[(ids < 0) | (ids >= size)][0], size)
    return ids.astype(np.int64)


def checked_prompt(checkpoint: Checkpoint, prompt: Sequence[int]) -> list[int]:
    """Return one prompt's ids as Python integers.

    Raises:
        InputError: not integers, no token, more than ``n_positions``, or an id outside 0 to
            V - 1.
    """
    ids = integer_ids(checkpoint, prompt)
    _check_length(checkpoint, len(ids))
    return ids


def integer_ids(checkpoint: Checkpoint, token_ids: Sequence[int]) -> list[int]:
    """Return any number of ids as Python integers.

    Raises:
        InputError: no sequence, not integers (a boolean is none), or an id outside 0 to V - 1.
    """
    try:
        ids = [i if type(i) is int else integer_id(i) for i in token_ids]
    except TypeError:
        raise InputError(
            f"token ids: expected a sequence of ids, found {type(token_ids).__name__}"
        ) from None
    size = checkpoint.config.vocab_size
    for token_id in ids:
        if not 0 <= token_id < size:
            raise _unknown(token_id, size)
    return ids


def _check_length(checkpoint: Checkpoint, length: int) -> None:
    context = checkpoint.config.n_positions
    if not length:
        raise InputError("prompt: expected at least one token, found none")
    if length > context:
        raise InputError(f"prompt: expected at most {context} tokens (the context), found {length}")


def _unknown(token_id: int, size: int) -> InputError:
    return InputError(f"token id: expected 0 to {size - 1}, found {token_id}")


def _has_boolean(token_ids: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a boolean hides among integers, which NumPy would turn into 0 or 1."""
    return any(
        isinstance(token_id, bool)
        or (isinstance(token_id, list | tuple) and _has_boolean(token_id))
        for token_id in token_ids
    )


def integer_id(token_id: Any) -> int:
    """Return one token id as a Python integer.

    Raises:
        InputError: not an integer; a boolean is none.
    """
    if isinstance(token_id, int | np.integer) and not isinstance(token_id, bool):
        return int(token_id)
    raise InputError(f"token id: expected an integer, found {type(token_id).__name__}")
