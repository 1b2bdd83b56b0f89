"""Shared controls as data: the default, the spelling in a URL, and the domain of each. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import DTYPES, GREEDY, POLICY_KINDS

TEMPERATURE = (0.05, 5.0)
TOP_P = (0.05, 1.0)
TOLERANCE = (1e-16, 1.0)
LARGEST_SEED = 2**53 - 1  # a browser's largest exact integer
LONGEST_PROMPT = 64


@dataclass(frozen=True)
class Limits:
    """What the controls' domains take from the checkpoint."""

    vocabulary: Vocabulary
    n_positions: int

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Limits:
        """Return the limits of a checkpoint."""
        return cls(checkpoint.vocabulary, checkpoint.config.n_positions)

    @property
    def first_token(self) -> str:
        """The default prompt: ``<bos>``, or the first token where there is none."""
        return self.vocabulary.bos or self.vocabulary.tokens[0]


def _text(text: str) -> str:
    return " ".join(text.split())


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _between(value: Any, low: float, high: float) -> bool:
    return (
        type(value) in (int, float) and math.isfinite(float(value)) and low <= float(value) <= high
    )


def _whole(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def prompt_error(value: Any, limits: Limits) -> str | None:
    """Say what was expected of a prompt and what was found, or None when it can run."""
    words = value.split() if isinstance(value, str) else []
    error = _words_error(words, limits) if words else "expected at least one token, found none"
    longest = min(limits.n_positions, LONGEST_PROMPT)
    if error is None and len(words) > longest:
        return f"expected at most {longest} tokens (the context), found {len(words)}"
    return error


def _stop_tokens_error(value: Any, limits: Limits) -> str | None:
    if not isinstance(value, str | None):
        return f"expected tokens, found {quoted(value)}"
    return _words_error((value or "").split(), limits)


def _words_error(words: Sequence[str], limits: Limits) -> str | None:
    try:
        if words:
            limits.vocabulary.encode(words)
    except InputError as error:
        return str(error).removeprefix("token: ")
    return None


@dataclass(frozen=True)
class Parameter:
    """One shared control: its default, how a URL spells it, and what it may be.

    ``error(value, limits)`` says what was expected and found, or None for a good value.
    """

    default: Callable[[Limits], Any]
    read: Callable[[str], Any]
    error: Callable[[Any, Limits], str | None]


def _fixed(value: Any) -> Callable[[Limits], Any]:
    return lambda _: value


def _domain(
    expected: str | Callable[[Limits], str], accepts: Callable[[Any, Limits], bool]
) -> Callable[[Any, Limits], str | None]:
    def error(value: Any, limits: Limits) -> str | None:
        if accepts(value, limits):
            return None
        text = expected if isinstance(expected, str) else expected(limits)
        return f"expected {text}, found {quoted(value)}"

    return error


def quoted(value: Any) -> str:
    """Return a value as a note shows it, at most 40 characters long."""
    if value in (None, ""):
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


PARAMETERS: dict[str, Parameter] = {
    "prompt": Parameter(lambda limits: limits.first_token, _text, prompt_error),
    "policy": Parameter(
        _fixed(GREEDY),
        str,
        _domain(" or ".join(POLICY_KINDS), lambda v, _: v in POLICY_KINDS),
    ),
    "temperature": Parameter(
        _fixed(1.0),
        float,
        _domain(
            "a number from {} to {}".format(*TEMPERATURE), lambda v, _: _between(v, *TEMPERATURE)
        ),
    ),
    "top_k": Parameter(
        lambda limits: len(limits.vocabulary),
        int,
        _domain(
            lambda limits: f"an integer from 1 to {len(limits.vocabulary)}",
            lambda v, limits: _whole(v, 1, len(limits.vocabulary)),
        ),
    ),
    "top_p": Parameter(
        _fixed(1.0),
        float,
        _domain("a number from {} to {}".format(*TOP_P), lambda v, _: _between(v, *TOP_P)),
    ),
    "seed": Parameter(
        _fixed(41),
        int,
        _domain("an integer from 0 to 2^53 - 1", lambda v, _: _whole(v, 0, LARGEST_SEED)),
    ),
    "max_new_tokens": Parameter(
        _fixed(None),
        int,
        _domain(
            lambda limits: f"an integer from 1 to {limits.n_positions}",
            lambda v, limits: v is None or _whole(v, 1, limits.n_positions),
        ),
    ),
    "stop_tokens": Parameter(
        _fixed(""),
        _text,
        _stop_tokens_error,
    ),
    "dtype": Parameter(
        _fixed("float32"), str, _domain(" or ".join(DTYPES), lambda v, _: v in DTYPES)
    ),
    "tolerance": Parameter(
        _fixed(None),
        float,
        _domain(
            "a number from {:g} to {:g}".format(*TOLERANCE),
            lambda v, _: v is None or _between(v, *TOLERANCE),
        ),
    ),
    "cache": Parameter(
        _fixed(True), _flag, _domain("true or false", lambda v, _: isinstance(v, bool))
    ),
    "step": Parameter(
        _fixed(0),
        int,
        _domain(
            lambda limits: f"an integer from 0 to {limits.n_positions - 1}",
            lambda v, limits: _whole(v, 0, limits.n_positions - 1),
        ),
    ),
}

#: Names of all shared controls: widget keys and URL parameters alike.
NAMES: tuple[str, ...] = tuple(PARAMETERS)
