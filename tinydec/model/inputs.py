"""Checks of token ids before any arithmetic."""

from __future__ import annotations

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
    config = checkpoint.config
    if not ids.size:
        raise InputError("prompt: expected at least one token, found none")
    if ids.shape[1] > config.n_positions:
        raise InputError(
            f"prompt: expected at most {config.n_positions} tokens (the context), "
            f"found {ids.shape[1]}"
        )
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        wrong = ids[(ids < 0) | (ids >= config.vocab_size)][0]
        raise InputError(f"token id: expected 0 to {config.vocab_size - 1}, found {wrong}")
    return ids.astype(np.int64)


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
