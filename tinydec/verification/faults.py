"""All faults, and the two that the acceptance gate demands."""

from __future__ import annotations

from tinydec.errors import InputError
from tinydec.verification.lab.catalogue import REQUEST_FAULTS
from tinydec.verification.lab.catalogue_batch import BATCH_FAULTS
from tinydec.verification.lab.fault import Fault

#: Every fault, in the order of ids.
FAULTS: tuple[Fault, ...] = tuple(
    sorted((*REQUEST_FAULTS, *BATCH_FAULTS), key=lambda fault: fault.id)
)


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


POSITIONS_RESET = fault_by_id("positions-reset")
WRONG_LAYER = fault_by_id("wrong-layer")

#: The two failures that the acceptance gate demands.
DELIBERATE: tuple[Fault, ...] = (POSITIONS_RESET, WRONG_LAYER)
