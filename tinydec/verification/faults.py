"""Faults as data: a value for a named seam of the correct code, and the guard that refuses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinydec.errors import InputError
from tinydec.model.config import ModelConfig
from tinydec.model.guards import GUARDS
from tinydec.model.seams import Seams


@dataclass(frozen=True)
class Fault:
    """One way to break the cached path.

    Attributes:
        id: short stable id.
        name: name in words, as tables and links spell it.
        what: what goes wrong, in a sentence.
        guard: the guard that refuses it; switched off to see the effect.
        seams: the intervention.
        cannot_act: returns why it changes nothing on a model and prefix length, or None.
    """

    id: str
    name: str
    what: str
    guard: str
    seams: Seams
    cannot_act: Callable[[ModelConfig, int], str | None]

    @property
    def guards(self) -> frozenset[str]:
        """Every guard but the one that would refuse this fault."""
        return GUARDS - {self.guard}


def _position_zero(_consumed: int) -> int:
    return 0


def _previous_layer(layer: int) -> int:
    return 0 if layer == 1 else layer


def _needs_two_tokens(_config: ModelConfig, length: int) -> str | None:
    return "a one-token prefix has position 0 anyway" if length < 2 else None


def _needs_two_layers(config: ModelConfig, _length: int) -> str | None:
    return "the model has one layer" if config.n_layer < 2 else None


POSITIONS_RESET = Fault(
    id="F16",
    name="positions-reset",
    what="Every token gets position 0 instead of the number of consumed inputs.",
    guard="position",
    seams=Seams(position=_position_zero),
    cannot_act=_needs_two_tokens,
)

WRONG_LAYER = Fault(
    id="F19",
    name="wrong-layer",
    what="Layer 2 attends over layer 1's keys and values instead of its own.",
    guard="layer",
    seams=Seams(read_layer=_previous_layer),
    cannot_act=_needs_two_layers,
)

#: The two failures that the acceptance gate demands.
DELIBERATE: tuple[Fault, ...] = (POSITIONS_RESET, WRONG_LAYER)

FAULTS: tuple[Fault, ...] = DELIBERATE


def fault_by_id(text: str) -> Fault:
    """Return the fault with an id or a name.

    Raises:
        InputError: there is none; the valid ids are listed.
    """
    for fault in FAULTS:
        if text in (fault.id, fault.name):
            return fault
    known = ", ".join(f"{fault.id} ({fault.name})" for fault in FAULTS)
    raise InputError(f"fault: expected one of {known}, found {text!r}")
