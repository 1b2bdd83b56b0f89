"""Arrays for looking at a comparison: differences by token, failures by prefix, equal choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tinydec.verification.compare import absolute_difference
from tinydec.verification.deliberate import FailureResult
from tinydec.verification.equivalence import EquivalenceReport

Floats = NDArray[np.float64]


def logit_differences(report: EquivalenceReport) -> Floats:
    """Return ``|full - cached|`` of the final logits, largest over the splits: (prefixes, V)."""
    return np.stack(
        [
            np.max([absolute_difference(p.logits, split.logits) for split in p.splits], axis=0)
            for p in report.prefixes
        ]
    )


def of_fault(failures: Sequence[FailureResult], name: str) -> tuple[FailureResult, ...]:
    """Return the results of one fault, in the order of the prefixes."""
    return tuple(failure for failure in failures if failure.fault.name == name)


def failure_errors(failures: Sequence[FailureResult]) -> Floats:
    """Return the largest logit error of one fault on each prefix, NaN where it cannot act."""
    return np.array(
        [np.nan if f.cannot_act is not None else f.result.max_abs_error for f in failures]
    )


def keeps_choice(failure: FailureResult) -> bool:
    """Whether a fault that acts leaves the same token with the highest logit."""
    result = failure.result
    return failure.cannot_act is None and result.full_argmax == result.cached_argmax


def most_hidden(report: EquivalenceReport, failures: Sequence[FailureResult]) -> int:
    """Return the prefix on which a fault is worst and a comparison of choices misses it.

    Args:
        report: supplies the reference's logits.
        failures: one fault on the same prefixes.

    Returns:
        The index of the prefix that keeps its choice and whose smallest difference over the
        tokens is largest; 0 when no prefix keeps its choice.
    """
    smallest = [
        float(absolute_difference(prefix.logits, failure.result.logits).min())
        if keeps_choice(failure)
        else -1.0
        for prefix, failure in zip(report.prefixes, failures, strict=True)
    ]
    return int(np.argmax(smallest))
