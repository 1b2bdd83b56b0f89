"""Walk a result and find the arrays in it that somebody could write to."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def writable(value: Any, place: str = "", seen: set[int] | None = None) -> list[str]:
    """The places of the arrays that can be written to, at any depth."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return []
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return [place] if value.flags.writeable else []
    return [found for name, part in _parts(value) for found in writable(part, place + name, seen)]


def arrays(value: Any) -> int:
    """How many arrays there are, so that a walk that finds none is no proof."""
    if isinstance(value, np.ndarray):
        return 1
    return sum(arrays(part) for _, part in _parts(value))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):  # what is cached on it as well
        names = vars(value) if hasattr(value, "__dict__") else [
            field.name for field in dataclasses.fields(value)
        ]  # fmt: skip
        yield from ((f".{name}", getattr(value, name)) for name in names)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{name}", getattr(value, name)) for name in value._fields)
    elif isinstance(value, Mapping):
        yield from ((f"[{name!r:.12}]", part) for name, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
