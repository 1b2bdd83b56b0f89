"""Shared controls: reading a URL, checking values, building the RunSpec. Pure.

A control's value can come from the URL, from a widget or from a session; all of it passes
through :func:`settle`, which never fails: what is out of its domain is replaced by the default
with a note that says what was expected, what was found and what ran instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinydec.corpus import BOS, training_sequences
from tinydec.runspec import FROZEN, Policy, RunSpec
from tinydec.ui.domains import NAMES, PARAMETERS, Limits, prompt_error, quoted
from tinydec.ui.page_domains import Domain

_LONGEST_ERROR = 140

#: Controls that hold whatever text a visitor types.
TYPED = ("prompt", "stop_tokens")

#: Parameters of the URL that are no controls and are let through without a word.
_PASSED = ("embed", "embed_options", "fbclid", "gclid")


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


def defaults(limits: Limits) -> dict[str, Any]:
    """Return every control's default."""
    return {name: parameter.default(limits) for name, parameter in PARAMETERS.items()}


# Reading and settling ----------------------------------------------------------------------------


def read_query(
    query: Mapping[str, Sequence[str]],
    limits: Limits,
    *,
    domains: Mapping[str, Domain] | None = None,
    elsewhere: Mapping[str, str] | None = None,
    checkpoints: Iterable[str] = (FROZEN,),
) -> Reading:
    """Read the URL's parameters; any query gives a reading.

    Args:
        query: each parameter with all its values, as they stand in the URL.
        limits: see :class:`Limits`.
        domains: of the parameters that belong to the page.
        elsewhere: parameters that belong to other pages, each with the titles of those.
        checkpoints: the ids that can be run in this visit.
    """
    values = defaults(limits)
    notes: list[Note] = []
    clean: dict[str, str] = {}
    own, others = domains or {}, elsewhere or {}
    for name, texts in query.items():
        text = texts[-1] if texts else ""
        if name in PARAMETERS:
            value, error = _read(name, text, limits)
            if error is None and len(texts) > 1:
                notes.append(_note(name, f"expected one value, found {len(texts)}", value))
            if error is not None:
                notes.append(_note(name, error, values[name]))
                continue
            values[name] = value
            if value != PARAMETERS[name].default(limits):
                clean[name] = text
        elif name == "checkpoint":
            if text not in checkpoints:
                error = f"expected one uploaded in this visit, found {quoted(text)}"
                notes.append(_note(name, error, "the frozen checkpoint"))
        elif name in own:
            read = own[name].read(text)
            if read is None:
                error = f"expected {own[name].expected}, found {quoted(text)}"
                notes.append(_note(name, error, own[name].default))
            else:
                if len(texts) > 1:
                    line = f"{name}: expected one value, found {len(texts)}; the last is taken"
                    notes.append(Note(name, line))
                for key in read.keys() & query.keys() - {name}:
                    if own[key].read(query[key][-1]) not in (None, {key: read[key]}):
                        line = f"{key}: {name} names another one; the link's own {key} is taken"
                        notes.append(Note(key, line))
                clean |= {
                    key: value for key, value in read.items() if key == name or key not in query
                }
        elif name in others:
            text = f"URL: {name} belongs to {others[name]}, not to this page; ignored"
            notes.append(Note(name, text))
        elif name in _PASSED or name.startswith("utm_"):
            clean[name] = text
        else:
            notes.append(Note(name, _unknown(name)))
    return Reading(values, tuple(notes), clean)


def carry(
    values: Mapping[str, Any], before: Limits, now: Limits
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return the controls' values for a checkpoint that may be another one than before.

    A default stays the default, whatever it is now; a value outside its domain becomes the
    default, with a note. While the checkpoint stays the same, a typed text is left as it is: its
    control shows it beside a note.

    Args:
        values: by control name.
        before: limits of the checkpoint that the values were chosen for.
        now: limits of the one that runs.
    """
    carried: dict[str, Any] = {}
    notes: list[Note] = []
    for name, value in values.items():
        parameter = PARAMETERS[name]
        default = parameter.default(now)
        carried[name] = value
        if before == now and name in TYPED:
            continue
        if before != now and value == parameter.default(before):
            carried[name] = default
            continue
        error = parameter.error(value, now)
        if error is not None:
            carried[name] = default
            notes.append(_note(name, error, default))
    return carried, tuple(notes)


def settle(values: Mapping[str, Any], limits: Limits, checkpoint: str = FROZEN) -> Settled:
    """Build the run from control values; whatever is out of its domain becomes the default.

    Args:
        values: by control name; missing ones take their defaults.
        limits: of the checkpoint that runs.
        checkpoint: its id for the spec.
    """
    good = defaults(limits)
    notes: list[Note] = []
    for name, parameter in PARAMETERS.items():
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
    if limits.first_token != BOS:
        return tuple(limits.vocabulary.tokens[: min(8, len(limits.vocabulary))])
    prefixes = {
        " ".join(sequence[:length]): None
        for length in range(1, 5)
        for sequence in training_sequences()
    }
    prompts = (*prefixes, "<bos> A A A")
    return tuple(p for p in prompts if prompt_error(p, limits) is None)


def _read(name: str, text: str, limits: Limits) -> tuple[Any, str | None]:
    parameter = PARAMETERS[name]
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
    return f"URL: no control is called {quoted(name)}{hint}; ignored"
