"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tinydec.model.config import ModelConfig
from tinydec.model.guards import GUARDS
from tinydec.model.seams import Seams
from tinydec.verification.lab.intervention import Intervention

#: In which part of a session a fault acts.
LOAD, REQUEST, BATCH = "load", "request", "batch"


def _acts(_config: ModelConfig, _length: int) -> str | None:
    return None


@dataclass(frozen=True)
class Fault:
    """One way to break cached generation, as data.

    Attributes:
        id: F01 to F42.
        name: name in words, as tables and links spell it.
        stage: the audit stage that must catch it.
        what: what goes wrong, in a sentence.
        shows: where it can be seen.
        echoes: where it was seen: the course, or threads of public trackers.
        intervention: what differs from the correct code.
        part: ``load``, ``request`` or ``batch``.
        guard: the guard that refuses it while it is on, or None.
        silent: whether the logits stay equal, so that only structure gives it away.
        needs: what a model or session must have for it to act.
        variants: other forms of the same fault, by name.
        cannot_act: returns why it changes nothing on a model and prefix length, or None.
    """

    id: str
    name: str
    stage: int
    what: str
    shows: str
    echoes: str
    intervention: Intervention
    part: str = REQUEST
    guard: str | None = None
    silent: bool = False
    needs: str = ""
    variants: Mapping[str, Intervention] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    cannot_act: Callable[[ModelConfig, int], str | None] = _acts

    @property
    def seams(self) -> Seams:
        """The intervention in prefill and decode step alone."""
        return self.intervention.request.model

    @property
    def guards(self) -> frozenset[str]:
        """Every guard but those that would refuse this fault."""
        return GUARDS - self.intervention.guards_off
