"""Deliberate failures: broken caches that the comparison must reject.

A check that never rejects anything is weak evidence. Each failure keeps every tensor's shape
valid, so that only values can give it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinydec.generation.trace import snapshot
from tinydec.model.activations import Activations
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.model.guards import GuardError
from tinydec.verification.cached_run import run_cached
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.equivalence import SplitResult, compare_split
from tinydec.verification.faults import DELIBERATE
from tinydec.verification.lab.fault import Fault
from tinydec.verification.prefixes import PrefixCase, controlled_prefixes


@dataclass(frozen=True, eq=False)
class FailureResult:
    """One fault on one prefix, token by token.

    Attributes:
        fault: what was broken.
        case: the prefix.
        result: the comparison with the full forward, the fault's guard off.
        refusal: what the guard says when it is on; None when there was nothing to refuse.
        cannot_act: why the fault changes nothing here, or None.
    """

    fault: Fault
    case: PrefixCase
    result: SplitResult
    refusal: str | None
    cannot_act: str | None

    @property
    def rejected(self) -> bool:
        """Whether the comparison rejects it: logits beyond the tolerance."""
        return self.result.max_abs_error > self.result.tolerance

    @property
    def as_expected(self) -> bool:
        """Rejected, with valid shapes, exactly where the fault can act."""
        if self.cannot_act is not None:
            return not self.rejected
        return self.rejected and self.result.shapes_valid


def run_deliberate_failures(
    checkpoint: Checkpoint,
    *,
    dtype: str = "float32",
    tolerance: float | None = None,
    faults: Sequence[Fault] = DELIBERATE,
    cases: Sequence[PrefixCase] | None = None,
) -> tuple[FailureResult, ...]:
    """Run every fault on every prefix and hold it against the full forward.

    Raises:
        InputError: an unknown dtype.
    """
    cast = checkpoint.cast(dtype)
    bound = TOLERANCES[dtype] if tolerance is None else tolerance
    chosen = controlled_prefixes(checkpoint) if cases is None else tuple(cases)
    references = {case: snapshot(full_forward(cast, case.token_ids)) for case in chosen}
    return tuple(
        _run(cast, fault, case, references[case], bound) for fault in faults for case in chosen
    )


def _run(
    checkpoint: Checkpoint, fault: Fault, case: PrefixCase, full: Activations, tolerance: float
) -> FailureResult:
    broken = compare_split(checkpoint, (case,), full, 1, tolerance, fault.seams, fault.guards)
    return FailureResult(
        fault=fault,
        case=case,
        result=broken[0],
        refusal=_refusal(checkpoint, fault, case),
        cannot_act=fault.cannot_act(checkpoint.config, case.length),
    )


def _refusal(checkpoint: Checkpoint, fault: Fault, case: PrefixCase) -> str | None:
    try:
        run_cached(checkpoint, np.array([case.token_ids]), 1, fault.seams)
    except GuardError as error:
        return str(error)
    return None
