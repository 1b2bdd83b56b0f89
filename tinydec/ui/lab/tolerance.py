"""Which tolerance the lab judges with: the visitor's, or the one declared for the checkpoint."""

from __future__ import annotations

from tinydec.evidence.session import session_tolerance
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import FROZEN, RunSpec


def lab_tolerance(checkpoint: Checkpoint, spec: RunSpec) -> float:
    """Return the largest accepted difference on these pages, as the command line has it."""
    return session_tolerance(checkpoint, spec, is_frozen=spec.checkpoint == FROZEN)
