"""Checks and stages: what was observed, what was expected, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

PASSED = "passed"
FAILED = "failed"
NOT_JUDGED = "not judged"
NOT_RECORDED = "not recorded"

STAGES = {
    1: "Checkpoint and uncached reference",
    2: "Cache",
    3: "Position and ownership",
    4: "Equivalence",
    5: "Policy and random state",
    6: "Stopping",
}


class Where(NamedTuple):
    """Where in a recording something was observed; None where it does not apply."""

    run: str = ""
    step: int | None = None
    layer: int | None = None
    position: int | None = None
    tensor: str | None = None

    def __str__(self) -> str:
        parts = [self.run] if self.run else []
        for name in ("step", "layer", "position"):
            number = getattr(self, name)
            parts += [f"{name} {number}"] if number is not None else []
        return ", ".join(parts + ([self.tensor] if self.tensor else []))


NOWHERE = Where()


class Finding(NamedTuple):
    """One deviation: what was found where, against what was expected."""

    observed: str
    expected: str
    where: Where


@dataclass(frozen=True)
class Check:
    """One contract, judged over the whole recording.

    Attributes:
        id: stable id, such as ``cache.length``.
        stage: 1 to 6.
        title: the contract in a few words.
        observed: what was seen: the first deviation, or a summary.
        expected: what should have been seen.
        tolerance: largest accepted difference, where the check compares numbers.
        verdict: passed, failed, not judged or not recorded.
        where: the first deviation's place.
        reason: why a check was not judged.
    """

    id: str
    stage: int
    title: str
    observed: str
    expected: str
    tolerance: float | None
    verdict: str
    where: Where = NOWHERE
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Whether the contract is broken."""
        return self.verdict == FAILED

    def not_judged(self, reason: str) -> Check:
        """Return the check without a verdict, for a stage behind a failing one."""
        return replace(self, verdict=NOT_JUDGED, observed="", where=Where(), reason=reason)


def judge(
    check_id: str,
    stage: int,
    title: str,
    expected: str,
    findings: Iterable[Finding],
    *,
    count: int,
    passed: str = "",
    tolerance: float | None = None,
) -> Check:
    """Return a check: failed with the first finding, passed without one.

    Args:
        check_id: stable id.
        stage: 1 to 6.
        title: the contract in a few words.
        expected: what should be seen everywhere.
        findings: deviations, first one first; only the first is read.
        count: how many places were looked at; 0 means that nothing was recorded.
        passed: what was seen when there is no finding.
        tolerance: largest accepted difference.
    """
    first = next(iter(findings), None)
    if first is not None:
        return Check(
            check_id, stage, title, first.observed, first.expected, tolerance, FAILED, first.where
        )
    if not count:
        return Check(check_id, stage, title, "", expected, tolerance, NOT_RECORDED)
    places = "the one place" if count == 1 else f"all {count} places"
    observed = passed or f"as expected in {places}"
    return Check(check_id, stage, title, observed, expected, tolerance, PASSED)


@dataclass(frozen=True)
class StageResult:
    """One stage's checks and its verdict."""

    number: int
    checks: tuple[Check, ...]
    reason: str = ""

    @property
    def title(self) -> str:
        """The stage's name."""
        return STAGES[self.number]

    @property
    def verdict(self) -> str:
        """Failed if a check failed, not judged behind a failing stage, else passed."""
        if any(check.failed for check in self.checks):
            return FAILED
        return NOT_JUDGED if self.reason else PASSED

    @property
    def first_failure(self) -> Check | None:
        """The first failing check, or None."""
        return next((check for check in self.checks if check.failed), None)


def in_order(
    stages: Sequence[tuple[int, Callable[[], tuple[Check, ...]]]],
) -> tuple[StageResult, ...]:
    """Judge stages one after another; those behind the first failing one are not judged.

    Args:
        stages: number and function of each stage, in dependency order. The functions of stages
            behind a failing one are still called, so that their contracts can be listed.
    """
    results: list[StageResult] = []
    reason = ""
    for number, run in stages:
        checks = run()
        if reason:
            checks = tuple(check.not_judged(reason) for check in checks)
        result = StageResult(number, checks, reason)
        results.append(result)
        if result.verdict == FAILED:
            reason = f"stage {number} ({result.title.lower()}) failed, so this one may only echo it"
    return tuple(results)
