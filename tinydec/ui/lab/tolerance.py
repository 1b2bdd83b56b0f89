"""Which tolerance the lab judges with: the visitor's, or the one declared for the checkpoint."""

from __future__ import annotations

from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import FROZEN, RunSpec
from tinydec.verification.compare import TOLERANCES, audit_tolerance


def lab_tolerance(checkpoint: Checkpoint, spec: RunSpec) -> float:
    """Return the largest accepted difference of a run on these pages."""
    if spec.tolerance is not None:
        return spec.tolerance
    if spec.checkpoint == FROZEN:
        return TOLERANCES[spec.dtype]
    return audit_tolerance(spec.dtype, checkpoint.config.n_embd)
