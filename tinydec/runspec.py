"""RunSpec: everything that determines a run, in one frozen, hashable value.

The page's URL, the cache key, the manifest of an evidence bundle and the command line are four
spellings of it. A result is a pure function of its RunSpec and of the checkpoint it names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tinydec.errors import InputError

GREEDY = "greedy"
SAMPLE = "sample"
POLICY_KINDS = (GREEDY, SAMPLE)

#: Number formats in which a decoder can be stored and run.
DTYPES = ("float16", "float32", "float64")

#: The id of the shipped checkpoint; any other id is a digest.
FROZEN = "frozen"

#: Python writes and reads integers of up to 4300 digits; these bits are 3914.
_MOST_BITS = 13_000


def check_integer(name: str, value: Any, least: int) -> None:
    """Refuse anything but an integer of at least ``least``.

    Raises:
        InputError: another type (a bool too), a smaller number, or one too long to be written.
    """
    if type(value) is not int or value < least:
        raise InputError(f"{name}: expected an integer >= {least}, found {shown(value)}")
    if value.bit_length() > _MOST_BITS:
        raise InputError(f"{name}: expected at most 3900 digits, found {shown(value)}")


def shown(value: Any) -> str:
    """Return ``repr(value)`` for an error line, cut after 60 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of over 4300 digits, a bottomless list
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 60 else text[:59] + "…"


def _finite(name: str, value: Any, expected: str, most: float = math.inf) -> float:
    """Return a number above 0 and at most ``most`` as a float, so that equal specs read alike."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:  # an integer beyond the largest float
        number = math.inf
    if not (math.isfinite(number) and 0 < number <= most):
        raise InputError(f"{name}: expected {expected}, found {shown(value)}")
    return number


def _check_words(name: str, values: Any) -> None:
    if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{name}: expected a list of strings, found {shown(values)}")
    for value in values:
        if value.split() != [value]:
            raise InputError(f"{name}: expected no empty word or white space, found {shown(value)}")


@dataclass(frozen=True)
class Policy:
    """How a token is selected from a logits row.

    Attributes:
        kind: ``greedy`` (highest logit, ties by lowest id) or ``sample``.
        temperature: divides the logits when sampling; finite and above 0.
        top_k: keeps exactly the k highest; None keeps all.
        top_p: keeps the fewest most probable tokens that reach p; in (0, 1]; None and 1 keep all.

    Raises:
        InputError: a number outside its domain.
    """

    kind: str = GREEDY
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in POLICY_KINDS:
            raise InputError(
                f"policy: expected one of {', '.join(POLICY_KINDS)}, found {shown(self.kind)}"
            )
        temperature = _finite("temperature", self.temperature, "a finite number above 0")
        object.__setattr__(self, "temperature", temperature)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        if self.top_p is not None:
            top_p = _finite("top_p", self.top_p, "a number above 0 and at most 1", most=1)
            object.__setattr__(self, "top_p", top_p)

    @property
    def samples(self) -> bool:
        """Whether selecting a token consumes a uniform number."""
        return self.kind == SAMPLE

    def check_vocabulary(self, size: int) -> None:
        """Refuse a ``top_k`` above the vocabulary size V.

        Raises:
            InputError: ``top_k`` exceeds ``size``.
        """
        if self.top_k is not None and self.top_k > size:
            raise InputError(
                f"top_k: expected 1 to {size} (the vocabulary), found {shown(self.top_k)}"
            )


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a run.

    Attributes:
        checkpoint: ``frozen`` or a checkpoint digest.
        prompt: token strings, without white space.
        policy: how tokens are selected.
        seed: seeds the request's PCG64 generator; an integer >= 0.
        max_new_tokens: most tokens to return; None leaves it to ``<eos>`` and the context.
        stop_tokens: further token strings that end the run.
        cache: whether generation keeps a KV cache.
        dtype: number format of the arithmetic.
        tolerance: largest accepted logit error; None takes the one declared for the dtype.
        faults: ids of the faults that are switched on.
        guards_off: names of the guards that are switched off.

    Raises:
        InputError: a value outside its domain. What only a checkpoint can tell (unknown
            tokens, a prompt beyond the context) is checked when the run begins.
    """

    checkpoint: str = FROZEN
    prompt: tuple[str, ...] = ("<bos>",)
    policy: Policy = Policy()
    seed: int = 41
    max_new_tokens: int | None = None
    stop_tokens: tuple[str, ...] = ()
    cache: bool = True
    dtype: str = "float32"
    tolerance: float | None = None
    faults: tuple[str, ...] = ()
    guards_off: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _LISTS:
            _check_words(name, getattr(self, name))
        for name, expected in _TYPES.items():
            if type(getattr(self, name)) is not expected:
                raise InputError(
                    f"{name}: expected a {_TYPE_NAMES[expected]}, "
                    f"found {shown(getattr(self, name))}"
                )
        if not self.prompt:
            raise InputError("prompt: expected at least one token, found none")
        check_integer("seed", self.seed, 0)
        if self.max_new_tokens is not None:
            check_integer("max_new_tokens", self.max_new_tokens, 1)
        if self.dtype not in DTYPES:
            raise InputError(
                f"dtype: expected one of {', '.join(DTYPES)}, found {shown(self.dtype)}"
            )
        if self.tolerance is not None:
            tolerance = _finite("tolerance", self.tolerance, "a finite number above 0")
            object.__setattr__(self, "tolerance", tolerance)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON values, the policy's fields in an object of their own."""
        values = asdict(self)
        return {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}

    @classmethod
    def from_dict(cls, values: Any) -> RunSpec:
        """Build a spec from the JSON values of :meth:`to_dict`.

        Raises:
            InputError: an unknown field, a wrong type, or a value outside its domain.
        """
        known = _checked_fields("run", values, cls)
        if "policy" in known:
            known["policy"] = Policy(**_checked_fields("policy", known["policy"], Policy))
        for name in _LISTS:
            if isinstance(known.get(name), list):
                known[name] = tuple(known[name])
        return cls(**known)

    def to_query(self) -> dict[str, str]:
        """Return the values that differ from the defaults, as URL query parameters."""
        default = _flat(RunSpec())
        return {
            name: _QUERY[name][0](value)
            for name, value in _flat(self).items()
            if value != default[name]
        }

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> RunSpec:
        """Build a spec from URL query parameters; absent ones take the defaults.

        Raises:
            InputError: an unknown parameter, or one that cannot be read or is out of its domain.
        """
        if not isinstance(query, Mapping):
            raise InputError(f"URL: expected parameters by name, found {shown(query)}")
        values = _flat(RunSpec())
        for name, text in query.items():
            if name not in _QUERY:
                raise InputError(
                    f"URL: expected the parameters {', '.join(_QUERY)}, found {shown(name)}"
                )
            try:
                values[name] = _QUERY[name][1](text)
            except ValueError:
                raise InputError(
                    f"{name}: expected {_QUERY[name][2]}, found {shown(text)}"
                ) from None
        names = {field.name: _POLICY_PARAMETERS[field.name] for field in fields(Policy)}
        policy = Policy(**{name: values.pop(parameter) for name, parameter in names.items()})
        return cls(policy=policy, **values)


_LISTS = ("prompt", "stop_tokens", "faults", "guards_off")
_TYPES: dict[str, type] = {"checkpoint": str, "policy": Policy, "cache": bool}
_TYPE_NAMES: dict[type, str] = {str: "string", Policy: "policy", bool: "boolean"}
_POLICY_PARAMETERS = {
    "kind": "policy",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}


def _checked_fields(what: str, values: Any, cls: type) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InputError(f"{what}: expected a JSON object, found {shown(values)}")
    known = [field.name for field in fields(cls)]
    for name in values:
        if name not in known:
            raise InputError(f"{what}: expected the fields {', '.join(known)}, found {shown(name)}")
    return dict(values)


def _flat(spec: RunSpec) -> dict[str, Any]:
    values = {field.name: getattr(spec, field.name) for field in fields(spec)}
    policy = values.pop("policy")
    for name, parameter in _POLICY_PARAMETERS.items():
        values[parameter] = getattr(policy, name)
    return values


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


_Spelling = tuple[Callable[[Any], str], Callable[[str], Any], str]
_TEXT: _Spelling = (str, str, "text")
_INTEGER: _Spelling = (str, int, "an integer")
_NUMBER: _Spelling = (repr, float, "a number")
_WORDS: _Spelling = (" ".join, _words, "words")
_FLAG: _Spelling = (lambda flag: "true" if flag else "false", _flag, "true or false")

#: How each value is written into a URL and read back, and what it is called in an error.
_QUERY: dict[str, _Spelling] = {
    "checkpoint": _TEXT,
    "prompt": _WORDS,
    "policy": _TEXT,
    "temperature": _NUMBER,
    "top_k": _INTEGER,
    "top_p": _NUMBER,
    "seed": _INTEGER,
    "max_new_tokens": _INTEGER,
    "stop_tokens": _WORDS,
    "cache": _FLAG,
    "dtype": _TEXT,
    "tolerance": _NUMBER,
    "faults": _WORDS,
    "guards_off": _WORDS,
}
