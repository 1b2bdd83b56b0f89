"""The same comparison under another tolerance: verdicts anew, nothing computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinydec.model.activations import tensor_names
from tinydec.verification.alignment import first_difference
from tinydec.verification.deliberate import FailureResult
from tinydec.verification.equivalence import EquivalenceReport, PrefixResult, SplitResult


def rejudged(report: EquivalenceReport, tolerance: float) -> EquivalenceReport:
    """Return ``report`` as ``verify_prefixes`` would give it with ``tolerance``."""
    return replace(
        report,
        tolerance=tolerance,
        prefixes=tuple(_prefix(prefix, tolerance) for prefix in report.prefixes),
    )


def rejudged_failures(
    failures: Sequence[FailureResult], tolerance: float
) -> tuple[FailureResult, ...]:
    """Return deliberate failures as they would be found with ``tolerance``."""
    return tuple(replace(f, result=_split(f.result, tolerance)) for f in failures)


def _prefix(prefix: PrefixResult, tolerance: float) -> PrefixResult:
    return replace(prefix, splits=tuple(_split(split, tolerance) for split in prefix.splits))


def _split(split: SplitResult, tolerance: float) -> SplitResult:
    names = tensor_names(len({record.layer for record in split.records}))
    first = first_difference(split.errors, names, tolerance)
    records = tuple(record._replace(tolerance=tolerance) for record in split.records)
    return replace(split, tolerance=tolerance, first_difference=first, records=records)
