"""Token strings and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from tinydec.errors import InputError
from tinydec.runspec import shown

#: How many valid tokens an error lists before it only counts the rest.
_LISTED = 32


@dataclass(frozen=True)
class Vocabulary:
    """Token strings in id order, with the ids of ``<bos>`` and ``<eos>`` where there are such.

    Text is a sequence of token strings separated by white space.

    Raises:
        InputError: no token, an empty token or one with white space, a repeated token, or a
            ``bos``/``eos`` that is not a token.
    """

    tokens: tuple[str, ...]
    bos: str | None = None
    eos: str | None = None
    _ids: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tokens, tuple):
            raise InputError(f"vocabulary: expected a tuple of tokens, found {shown(self.tokens)}")
        if not self.tokens:
            raise InputError("vocabulary: expected at least one token, found none")
        ids: dict[str, int] = {}
        token: Any  # a JSON file may hold anything
        for token_id, token in enumerate(self.tokens):
            if not isinstance(token, str) or token.split() != [token] or not _is_text(token):
                raise InputError(
                    f"vocabulary id {token_id}: expected a token without white space, "
                    f"found {token!r:.60}"
                )
            if token in ids:
                raise InputError(
                    f"vocabulary id {token_id}: expected a new token, found {token!r:.60} "
                    f"again (it has id {ids[token]})"
                )
            ids[token] = token_id
        special: Any
        for name, special in (("bos", self.bos), ("eos", self.eos)):
            if special is not None and special not in self.tokens:
                raise InputError(
                    f"vocabulary {name}: expected one of its tokens, found {special!r:.60}"
                )
        object.__setattr__(self, "_ids", MappingProxyType(ids))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def eos_id(self) -> int | None:
        """Id of the token that ends a sequence, or None."""
        return None if self.eos is None else self._ids[self.eos]

    @property
    def bos_id(self) -> int | None:
        """Id of the token that begins a sequence, or None."""
        return None if self.bos is None else self._ids[self.bos]

    def encode(self, text: str | Iterable[str]) -> tuple[int, ...]:
        """Return the ids of a text (split at white space) or of a sequence of tokens.

        Raises:
            InputError: a token is unknown (the valid ones are listed), or there is none.
        """
        tokens = tuple(text.split()) if isinstance(text, str) else tuple(text)
        if not tokens:
            raise InputError("prompt: expected at least one token, found none")
        for token in tokens:
            if token not in self._ids:
                raise InputError(f"token: expected one of {self._listing()}, found {shown(token)}")
        return tuple(self._ids[token] for token in tokens)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the tokens of some ids, joined by single spaces.

        Raises:
            InputError: an id that is no integer or outside 0 to V - 1.
        """
        words = []
        for token_id in token_ids:
            if not isinstance(token_id, int | np.integer):
                raise InputError(f"token id: expected an integer, found {shown(token_id)}")
            if not 0 <= token_id < len(self.tokens):
                raise InputError(
                    f"token id: expected 0 to {len(self.tokens) - 1}, found {token_id}"
                )
            words.append(self.tokens[token_id])
        return " ".join(words)

    def _listing(self) -> str:
        listed = " ".join(self.tokens[:_LISTED])
        rest = len(self.tokens) - _LISTED
        return listed if rest <= 0 else f"{listed} … ({rest} more)"

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary as plain JSON values."""
        return {"tokens": list(self.tokens), "bos": self.bos, "eos": self.eos}

    @classmethod
    def from_dict(cls, values: Any) -> Vocabulary:
        """Build a vocabulary from JSON values.

        Raises:
            InputError: the values are not an object with ``tokens``, ``bos`` and ``eos``.
        """
        if not isinstance(values, dict) or not isinstance(values.get("tokens"), list):
            raise InputError(
                f"vocabulary: expected a JSON object with a list 'tokens', found {values!r:.60}"
            )
        return cls(tuple(values["tokens"]), values.get("bos"), values.get("eos"))

    @classmethod
    def numbered(cls, size: int) -> Vocabulary:
        """Return a vocabulary of ``size`` tokens ``t0``, ``t1`` … without special tokens."""
        return cls(tuple(f"t{token_id}" for token_id in range(size)))


def _is_text(token: str) -> bool:
    """Whether a token can be written as UTF-8; half of a surrogate pair cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in token)
