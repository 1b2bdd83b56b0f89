"""Run the six stages over a recording."""

from __future__ import annotations

from dataclasses import dataclass

from tinydec.verification.audit.checks import Check, StageResult, in_order
from tinydec.verification.audit.stage_cache import cache_checks
from tinydec.verification.audit.stage_checkpoint import Trusted, checkpoint_checks
from tinydec.verification.audit.stage_equivalence import (
    Divergence,
    divergence,
    equivalence_checks,
)
from tinydec.verification.audit.stage_policy import policy_checks
from tinydec.verification.audit.stage_position import position_checks
from tinydec.verification.audit.stage_stopping import stopping_checks
from tinydec.verification.observation import Recording


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The verdict on one recording.

    Attributes:
        stages: the six stages in order.
        divergences: how far each run is from its uncached reference, whatever the verdict.
        tolerance: largest accepted difference.
    """

    stages: tuple[StageResult, ...]
    divergences: tuple[Divergence, ...]
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether no stage failed."""
        return self.first_failure is None

    @property
    def first_failure(self) -> Check | None:
        """The first failing check of the first failing stage, or None."""
        failures = (stage.first_failure for stage in self.stages)
        return next((check for check in failures if check is not None), None)

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks in order."""
        return tuple(check for stage in self.stages for check in stage.checks)

    @property
    def logit_error(self) -> float:
        """Largest difference of any logits row from the uncached one."""
        return max((found.logit_error for found in self.divergences), default=0.0)

    @property
    def first_difference(self) -> tuple[str, str, int] | None:
        """Run, tensor and position of the first value that differs, or None."""
        for found in self.divergences:
            if found.first is not None:
                return (found.run, *found.first)
        return None


def audit(recording: Recording, trusted: Trusted, tolerance: float) -> AuditReport:
    """Judge a recording stage by stage; knows nothing of how it came about.

    Args:
        recording: what was observed.
        trusted: what is known of the checkpoint from elsewhere.
        tolerance: largest accepted difference between cached, uncached and golden values.
    """
    found = (divergence(run, tolerance) for run in recording.all_runs)
    divergences = tuple(entry for entry in found if entry is not None)
    stages = in_order(
        [
            (1, lambda: checkpoint_checks(recording, trusted, tolerance)),
            (2, lambda: cache_checks(recording, tolerance)),
            (3, lambda: position_checks(recording)),
            (4, lambda: equivalence_checks(recording, divergences, tolerance)),
            (5, lambda: policy_checks(recording)),
            (6, lambda: stopping_checks(recording)),
        ]
    )
    return AuditReport(stages, divergences, tolerance)
