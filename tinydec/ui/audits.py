"""Audits for pages: what the command line would compute from the shared controls."""

from __future__ import annotations

from dataclasses import replace

from tinydec.evidence.audit import AuditReport, default_spec, run_audit
from tinydec.evidence.registry import TABLES
from tinydec.evidence.reuse import reaudited, spec_of_run
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.compute import computed
from tinydec.ui.current import CurrentRun


def run_of(checkpoint: Checkpoint, spec: RunSpec) -> CurrentRun:
    """Return what cached compute needs to call other cached compute."""
    return CurrentRun(spec, checkpoint, 0, ())


@computed("dtype", max_entries=16)
def base_audit(checkpoint: Checkpoint, spec: RunSpec) -> AuditReport:
    """Return the course's audit of the checkpoint in the number format.

    Raises:
        InputError: a checkpoint that an audit refuses.
    """
    return run_audit(checkpoint, replace(default_spec(checkpoint), dtype=spec.dtype))


@computed("dtype", "tolerance", max_entries=64)
def course_audit(checkpoint: Checkpoint, spec: RunSpec) -> AuditReport:
    """Return ``python -m tinydec audit --dtype D --tolerance X``, whatever the prompt.

    Raises:
        InputError: a checkpoint that an audit refuses.
    """
    base = base_audit(run_of(checkpoint, spec))
    return reaudited(base, replace(base.spec, tolerance=spec.tolerance))


@computed("dtype", "tolerance", "prompt", "policy", "seed", max_entries=64)
def current_audit(checkpoint: Checkpoint, spec: RunSpec) -> AuditReport:
    """Return the audit beside the run of the shared controls.

    Raises:
        InputError: a checkpoint or a run that an audit refuses.
    """
    course = course_audit(run_of(checkpoint, spec))
    audited = replace(spec_of_run(checkpoint, spec), checkpoint=course.spec.checkpoint)
    return reaudited(course, audited)


def csv_bytes(report: AuditReport, file: str) -> bytes:
    """Return the file's bytes as the command line writes them."""
    return TABLES[file].csv(report)
