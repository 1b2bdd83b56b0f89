"""Ownership guards: what a decode step refuses before it reads a position row.

Each refusal has its own exception, which tells what was expected and what was found.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tinydec.errors import InputError
from tinydec.runspec import shown


class GuardError(RuntimeError):
    """A cached computation was refused; ``expected`` and ``found`` hold the two values."""

    contract = "ownership"

    def __init__(self, expected: Any, found: Any, note: str = "") -> None:
        self.expected = expected
        self.found = found
        super().__init__(f"{self.contract}: expected {expected}, found {found}{note}")


class StaleCacheError(GuardError):
    """The cache was filled by another checkpoint than the one that would read it."""

    contract = "checkpoint digest of the cache"


class ForeignRequestError(GuardError):
    """The cache belongs to another request."""

    contract = "request that owns the cache"


class WrongLayerError(GuardError):
    """A layer would read the cache of another layer."""

    contract = "layer of the cache"


class PositionError(GuardError):
    """The next position is not the number of consumed inputs."""

    contract = "next position"


class ContextOverflowError(GuardError):
    """Another input would need a position row that does not exist."""

    contract = "consumed inputs"


#: Guards by name; a fault lab can switch one off to see what it keeps out.
GUARDS: frozenset[str] = frozenset({"checkpoint", "request", "layer", "position", "overflow"})


def check_guards(guards: Collection[str]) -> None:
    """Refuse a guard that there is not.

    Raises:
        InputError: an unknown name, or no set of names.
    """
    if not isinstance(guards, set | frozenset) or not guards <= GUARDS:
        raise InputError(
            f"guards: expected a set of {', '.join(sorted(GUARDS))}, found {shown(guards)}"
        )
