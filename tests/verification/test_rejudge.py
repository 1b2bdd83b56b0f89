"""Judging a comparison anew gives what a new comparison gives."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from tinydec.model.storage import load_checkpoint
from tinydec.verification.deliberate import run_deliberate_failures
from tinydec.verification.equivalence import SplitResult, verify_prefixes
from tinydec.verification.rejudge import rejudged, rejudged_failures

FROZEN = load_checkpoint()
REPORT = verify_prefixes(FROZEN)
FAILURES = run_deliberate_failures(FROZEN)
#: Below all noise, between the noise of single tensors, the declared one, above every fault.
TOLERANCES = (1e-9, 4e-7, 1e-6, 2e-6, 1e-5, 1e-2, 2.0, 50.0)


def verdicts(split: SplitResult) -> tuple:
    return (
        split.tolerance,
        split.first_difference,
        split.passed,
        [record.tolerance for record in split.records],
        [record.passed for record in split.records],
    )


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_verdicts_are_those_of_a_comparison_with_that_tolerance(tolerance: float) -> None:
    found, fresh = rejudged(REPORT, tolerance), verify_prefixes(FROZEN, tolerance=tolerance)
    assert found.tolerance == tolerance
    assert found.passed_count == fresh.passed_count
    assert [verdicts(row) for row in found.rows] == [verdicts(row) for row in fresh.rows]


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_failures_are_rejected_as_with_that_tolerance(tolerance: float) -> None:
    found = rejudged_failures(FAILURES, tolerance)
    fresh = run_deliberate_failures(FROZEN, tolerance=tolerance)
    assert [(f.rejected, f.as_expected, verdicts(f.result)) for f in found] == [
        (f.rejected, f.as_expected, verdicts(f.result)) for f in fresh
    ]


def test_tolerances_give_different_verdicts() -> None:
    counts = {rejudged(REPORT, tolerance).passed_count for tolerance in TOLERANCES}
    rejections = {sum(f.rejected for f in rejudged_failures(FAILURES, t)) for t in TOLERANCES}
    assert {0, 16} < counts
    assert {0, 28} < rejections  # of 32, positions-reset cannot act on 4


def test_numbers_are_left_alone() -> None:
    changed = {"tolerance", "first_difference", "records"}
    for ours, theirs in zip(rejudged(REPORT, 1e-9).rows, REPORT.rows, strict=True):
        for field in fields(SplitResult):
            if field.name not in changed:
                one, other = getattr(ours, field.name), getattr(theirs, field.name)
                assert one is other or np.array_equal(one, other)
    assert REPORT.tolerance == 1e-5
