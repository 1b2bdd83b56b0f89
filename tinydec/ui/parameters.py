"""Shared controls as data: reading a URL, checking values, building the RunSpec. Pure.

A control's value can come from the URL, from a widget or from a session; all of it passes
through :func:`settle`, which never fails: what is out of its domain is replaced by the default
with a note that says what was expected, what was found and what ran instead.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinydec.corpus import BOS
from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import DTYPES, FROZEN, GREEDY, POLICY_KINDS, Policy, RunSpec

TEMPERATURE = (0.05, 5.0)
TOP_P = (0.05, 1.0)
TOLERANCE = (1e-16, 1.0)
LARGEST_SEED = 2**53 - 1  # a browser's largest exact integer
LONGEST_PROMPT = 64
_LONGEST_ERROR = 140

#: Parameters of the URL that are no controls and are let through without a word.
_PASSED = ("embed", "embed_options", "fbclid", "gclid")


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


@dataclass(frozen=True)
class Note:
    """One line for the visitor about the control ``name``: what was replaced and what ran."""

    name: str
    text: str


@dataclass(frozen=True)
class Reading:
    """A URL, read: control values, notes, and the parameters that are worth keeping."""

    values: dict[str, Any]
    notes: tuple[Note, ...]
    clean: dict[str, str]


@dataclass(frozen=True)
class Settled:
    """The run that the controls describe."""

    spec: RunSpec
    step: int
    notes: tuple[Note, ...]


# Domains -----------------------------------------------------------------------------------------


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


def _prompt_error(value: Any, limits: Limits) -> str | None:
    words = value.split() if isinstance(value, str) else []
    error = _words_error(words, limits) if words else "expected at least one token, found none"
    longest = min(limits.n_positions, LONGEST_PROMPT)
    if error is None and len(words) > longest:
        return f"expected at most {longest} tokens (the context), found {len(words)}"
    return error


def _stop_tokens_error(value: Any, limits: Limits) -> str | None:
    if not isinstance(value, str | None):
        return f"expected tokens, found {_shown(value)}"
    return _words_error((value or "").split(), limits)


def _words_error(words: Sequence[str], limits: Limits) -> str | None:
    try:
        if words:
            limits.vocabulary.encode(words)
    except InputError as error:
        return str(error).removeprefix("token: ")
    return None


@dataclass(frozen=True)
class _Parameter:
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
        return f"expected {text}, found {_shown(value)}"

    return error


def _shown(value: Any) -> str:
    if value in (None, ""):
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


_PARAMETERS: dict[str, _Parameter] = {
    "prompt": _Parameter(lambda limits: limits.first_token, _text, _prompt_error),
    "policy": _Parameter(
        _fixed(GREEDY),
        _text,
        _domain(" or ".join(POLICY_KINDS), lambda v, _: v in POLICY_KINDS),
    ),
    "temperature": _Parameter(
        _fixed(1.0),
        float,
        _domain(
            "a number from {} to {}".format(*TEMPERATURE), lambda v, _: _between(v, *TEMPERATURE)
        ),
    ),
    "top_k": _Parameter(
        lambda limits: len(limits.vocabulary),
        int,
        _domain(
            lambda limits: f"an integer from 1 to {len(limits.vocabulary)}",
            lambda v, limits: _whole(v, 1, len(limits.vocabulary)),
        ),
    ),
    "top_p": _Parameter(
        _fixed(1.0),
        float,
        _domain("a number from {} to {}".format(*TOP_P), lambda v, _: _between(v, *TOP_P)),
    ),
    "seed": _Parameter(
        _fixed(41),
        int,
        _domain("an integer from 0 to 2^53 - 1", lambda v, _: _whole(v, 0, LARGEST_SEED)),
    ),
    "max_new_tokens": _Parameter(
        _fixed(None),
        int,
        _domain(
            lambda limits: f"an integer from 1 to {limits.n_positions}",
            lambda v, limits: v is None or _whole(v, 1, limits.n_positions),
        ),
    ),
    "stop_tokens": _Parameter(
        _fixed(""),
        _text,
        _stop_tokens_error,
    ),
    "dtype": _Parameter(
        _fixed("float32"), _text, _domain(" or ".join(DTYPES), lambda v, _: v in DTYPES)
    ),
    "tolerance": _Parameter(
        _fixed(None),
        float,
        _domain(
            "a number from {:g} to {:g}".format(*TOLERANCE),
            lambda v, _: v is None or _between(v, *TOLERANCE),
        ),
    ),
    "cache": _Parameter(
        _fixed(True), _flag, _domain("true or false", lambda v, _: isinstance(v, bool))
    ),
    "step": _Parameter(
        _fixed(0),
        int,
        _domain(
            lambda limits: f"an integer from 0 to {limits.n_positions - 1}",
            lambda v, limits: _whole(v, 0, limits.n_positions - 1),
        ),
    ),
}

#: Names of all shared controls: widget keys and URL parameters alike.
NAMES: tuple[str, ...] = tuple(_PARAMETERS)


def defaults(limits: Limits) -> dict[str, Any]:
    """Return every control's default."""
    return {name: parameter.default(limits) for name, parameter in _PARAMETERS.items()}


# Reading and settling ----------------------------------------------------------------------------


def read_query(
    query: Mapping[str, Sequence[str]],
    limits: Limits,
    *,
    page_parameters: Iterable[str] = (),
    checkpoints: Iterable[str] = (FROZEN,),
) -> Reading:
    """Read the URL's parameters; any query gives a reading.

    Args:
        query: each parameter with all its values, as they stand in the URL.
        limits: see :class:`Limits`.
        page_parameters: names that belong to single pages; they are left alone.
        checkpoints: the ids that can be run in this visit.
    """
    values = defaults(limits)
    notes: list[Note] = []
    clean: dict[str, str] = {}
    for name, texts in query.items():
        text = texts[-1] if texts else ""
        if name in _PARAMETERS:
            value, error = _read(name, text, limits)
            if error is None and len(texts) > 1:
                notes.append(_note(name, f"expected one value, found {len(texts)}", value))
            if error is not None:
                notes.append(_note(name, error, values[name]))
                continue
            values[name] = value
            if value != _PARAMETERS[name].default(limits):
                clean[name] = text
        elif name == "checkpoint":
            if text not in checkpoints:
                error = f"expected one uploaded in this visit, found {_shown(text)}"
                notes.append(_note(name, error, "the frozen checkpoint"))
        elif name in page_parameters or name in _PASSED or name.startswith("utm_"):
            clean[name] = text
        else:
            notes.append(Note(name, _unknown(name)))
    return Reading(values, tuple(notes), clean)


def settle(values: Mapping[str, Any], limits: Limits, checkpoint: str = FROZEN) -> Settled:
    """Build the run from control values; whatever is out of its domain becomes the default.

    Args:
        values: by control name; missing ones take their defaults.
        limits: of the checkpoint that runs.
        checkpoint: its id for the spec.
    """
    good = defaults(limits)
    notes: list[Note] = []
    for name, parameter in _PARAMETERS.items():
        if name not in values:
            continue
        error = parameter.error(values[name], limits)
        if error is None:
            good[name] = values[name]
        else:
            notes.append(_note(name, error, good[name]))
    top_k, top_p = good["top_k"], float(good["top_p"])
    policy = Policy(
        kind=good["policy"],
        temperature=float(good["temperature"]),
        top_k=None if top_k == len(limits.vocabulary) else top_k,
        top_p=None if top_p == 1.0 else top_p,
    )
    spec = RunSpec(
        checkpoint=checkpoint,
        prompt=tuple(good["prompt"].split()),
        policy=policy,
        seed=good["seed"],
        max_new_tokens=good["max_new_tokens"],
        stop_tokens=tuple((good["stop_tokens"] or "").split()),
        cache=good["cache"],
        dtype=good["dtype"],
        tolerance=None if good["tolerance"] is None else float(good["tolerance"]),
    )
    return Settled(spec, good["step"], tuple(notes))


def default_prompts(limits: Limits) -> tuple[str, ...]:
    """Return prompts to choose from: the corpus' prefixes where the tokens are its own."""
    from tinydec.corpus import training_sequences

    if limits.first_token != BOS:
        return tuple(limits.vocabulary.tokens[: min(8, len(limits.vocabulary))])
    prefixes = {
        " ".join(sequence[:length]): None
        for length in range(1, 5)
        for sequence in training_sequences()
    }
    prompts = (*prefixes, "<bos> A A A")
    return tuple(p for p in prompts if _prompt_error(p, limits) is None)


def _read(name: str, text: str, limits: Limits) -> tuple[Any, str | None]:
    parameter = _PARAMETERS[name]
    if text == "" and parameter.default(limits) in (None, ""):
        return parameter.default(limits), None
    try:
        value = parameter.read(text)
    except (ValueError, OverflowError):
        # The domain's own message, about the text.
        return None, parameter.error(text, limits)
    return value, parameter.error(value, limits)


def _note(name: str, error: str, ran: Any) -> Note:
    shown = "none" if ran == "" else "the default" if ran is None else ran
    if name == "max_new_tokens" and ran is None:
        shown = "no limit"
    line = error if len(error) <= _LONGEST_ERROR else error[: _LONGEST_ERROR - 1] + "…"
    return Note(name, f"{name}: {line}; ran with {shown}")


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.7)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"URL: no control is called {_shown(name)}{hint}; ignored"
