"""An audit that differs from one at hand in tolerance, prompt, policy or seed alone.

The comparison of both paths depends on the checkpoint and the number format. Everything else of
an audit costs a few milliseconds, which lets a page follow its controls.
"""

from __future__ import annotations

from dataclasses import replace

from tinydec.errors import InputError
from tinydec.evidence.audit import (
    AuditReport,
    audit_spec,
    choose_context_prompt,
    default_spec,
    tolerance_of,
)
from tinydec.generation.generate import generate
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import GREEDY, Policy, RunSpec
from tinydec.verification.gate import RecordedRun, acceptance_gate
from tinydec.verification.rejudge import rejudged, rejudged_failures


def spec_of_run(checkpoint: Checkpoint, spec: RunSpec) -> RunSpec:
    """Return the audit beside any run: its own sampling policy, or the course's for a greedy run.

    It is what ``python -m tinydec audit`` runs with the same prompt, seed, dtype and tolerance.
    """
    policy = spec.policy if spec.policy.samples else default_spec(checkpoint).policy
    if policy.top_k is None:  # the command line's default is the course's 3
        policy = replace(policy, top_k=checkpoint.config.vocab_size)
    return audit_spec(replace(spec, policy=policy))


def reaudited(report: AuditReport, spec: RunSpec) -> AuditReport:
    """Return what ``run_audit`` gives for ``spec``, with the comparison taken from ``report``.

    Args:
        report: an audit of the same checkpoint in the same number format.
        spec: an audit's, see :func:`spec_of_run`.

    Raises:
        InputError: a spec that is no audit's, another checkpoint or number format, or a prompt or
            policy that the checkpoint refuses.
    """
    if spec != audit_spec(spec):
        raise InputError("audit: expected the RunSpec of an audit, found another run")
    for name in ("checkpoint", "dtype"):
        ours, theirs = getattr(report.spec, name), getattr(spec, name)
        if ours != theirs:
            raise InputError(f"audit: expected {name} {ours!r}, found {theirs!r}")
    checkpoint, tolerance = report.checkpoint, tolerance_of(spec)
    prompt = choose_context_prompt(checkpoint, spec)
    greedy = replace(spec, policy=Policy(GREEDY))
    runs = (
        _recorded("greedy", checkpoint, greedy),
        _recorded("sample", checkpoint, spec),
        _recorded("context", checkpoint, replace(greedy, prompt=prompt)),
    )
    equivalence = rejudged(report.equivalence, tolerance)
    failures = rejudged_failures(report.failures, tolerance)
    same = (report.spec.tolerance, report.spec.faults) == (spec.tolerance, spec.faults)
    return replace(
        report,
        spec=spec,
        context_prompt=prompt,
        equivalence=equivalence,
        failures=failures,
        runs=runs,
        gate=acceptance_gate(checkpoint, equivalence, failures, runs),
        like=(report.like or report) if same else None,  # a session has requests of its own
    )


def _recorded(name: str, checkpoint: Checkpoint, spec: RunSpec) -> RecordedRun:
    cached = generate(checkpoint, spec)
    return RecordedRun(name, spec, cached, generate(checkpoint, replace(spec, cache=False)))
