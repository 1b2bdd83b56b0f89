"""Hidden faults to be found: a number names one or two of them, and says nothing about which."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.intervention import NOTHING, Intervention, merged
from tinydec.verification.lab.kill_matrix import Laboratory, kill

#: Of three cases one hides two faults.
_TWO_FAULTS = 1 / 3


@dataclass(frozen=True)
class Case:
    """A hidden fault, or two from different stages.

    Attributes:
        number: the case's number.
        faults: in the order in which the audit must name them; none where no fault can act.
    """

    number: int
    faults: tuple[Fault, ...]


def intervention_of(faults: Sequence[Fault]) -> Intervention:
    """Return the intervention that switches all of them on, each once."""
    found = NOTHING
    for fault in {fault.id: fault for fault in faults}.values():
        found = merged(found, fault.intervention)
    return found


def draw_case(lab: Laboratory, number: int, faults: Sequence[Fault]) -> Case:
    """Draw a case that can be solved on the laboratory's checkpoint.

    Only faults that act there and are caught at their own stage are hidden, and of two the
    earlier one must be the first that the audit names.

    Args:
        lab: where the case is to be recorded.
        number: the same one gives the same case.
        faults: what may be hidden.
    """
    generator = random.Random(f"mystery/{number}")  # noqa: S311 - a puzzle
    order = sorted(faults, key=lambda fault: fault.id)
    generator.shuffle(order)
    wanted = 2 if generator.random() < _TWO_FAULTS else 1
    hidden: list[Fault] = []
    for fault in order:
        if len(hidden) == wanted:
            break
        if fault.stage not in {known.stage for known in hidden} and _solvable(lab, fault):
            hidden.append(fault)
    hidden.sort(key=lambda fault: fault.stage)
    if len(hidden) == 2 and _first_stage(lab, hidden) != hidden[0].stage:
        hidden.pop()
    return Case(number, tuple(hidden))


def _first_stage(lab: Laboratory, faults: Sequence[Fault]) -> int | None:
    failure = lab.judge(lab.run(intervention_of(faults))).first_failure
    return failure.stage if failure else None


def _solvable(lab: Laboratory, fault: Fault) -> bool:
    row = kill(lab, fault)
    return row.acts and row.passed
