"""The fault lab as evidence: every fault switched on in turn, and whether that means anything."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tinydec.errors import InputError
from tinydec.evidence.audit import audit_spec, checkpoint_id, default_spec
from tinydec.evidence.session import AuditedSession, run_session
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import FROZEN, RunSpec


@dataclass(frozen=True, eq=False)
class FaultReport:
    """What became of every fault.

    Attributes:
        checkpoint: as it is stored, before it is cast to the spec's dtype.
        is_frozen: whether it is the shipped one.
        spec: dtype and tolerance count.
        session: the correct session, and each fault held against it.
    """

    checkpoint: Checkpoint
    is_frozen: bool
    spec: RunSpec
    session: AuditedSession

    @property
    def tolerance(self) -> float:
        """Largest accepted difference."""
        return self.session.tolerance

    @property
    def passed(self) -> bool:
        """Whether every fault is caught at its own stage, or cannot act.

        That means something only where the correct session passes every stage and the fixture
        is strong: without both there is no pass.
        """
        session = self.session
        sound = session.report.passed and session.fixture.strong
        return sound and all(row.passed for row in session.kills)


def faults_spec(checkpoint: Checkpoint, dtype: str, tolerance: float | None = None) -> RunSpec:
    """Return the spec of the lab on a checkpoint.

    Raises:
        InputError: a dtype or tolerance outside its domain.
    """
    return replace(default_spec(checkpoint), dtype=dtype, tolerance=tolerance)


def run_faults(checkpoint: Checkpoint, spec: RunSpec) -> FaultReport:
    """Record the correct session; each fault is held against it when it is asked for.

    Raises:
        InputError: a spec that is not the lab's, a checkpoint that it does not name, or one that
            is too large.
    """
    name = checkpoint_id(checkpoint)
    expected = audit_spec(faults_spec(checkpoint, spec.dtype, spec.tolerance))
    if replace(spec, checkpoint=name) != expected or spec.checkpoint not in (
        name,
        checkpoint.digest,
    ):
        raise InputError(
            "faults: expected the checkpoint, a dtype and a tolerance alone, found another run"
        )
    is_frozen = name == FROZEN
    session = run_session(checkpoint, spec, is_frozen=is_frozen)
    return FaultReport(checkpoint, is_frozen, spec, session)
