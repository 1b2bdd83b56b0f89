"""Stage 6: stop reasons, recomputed from what was selected and consumed."""

from __future__ import annotations

from collections.abc import Iterator

from tinydec.generation.stopping import stop_reason
from tinydec.verification.audit.checks import Check, Finding, Where, judge
from tinydec.verification.observation import Recording, RunObservation


def stopping_checks(recording: Recording) -> tuple[Check, ...]:
    """Judge every recorded stop reason, and that a run ends where it stops."""
    runs = recording.all_runs
    steps = sum(len(run.steps) for run in runs)
    eos_id = recording.checkpoint.vocabulary.eos_id
    return (
        judge(
            "stopping.reason",
            6,
            "the stop reason is the first rule that applies",
            "eos, then stop_token, context, max_new_tokens",
            _reasons(runs, eos_id),
            count=steps,
        ),
        judge(
            "stopping.end",
            6,
            "a run ends at its first stop reason, and only there",
            "the last step alone has a reason",
            _ends(runs),
            count=len(runs),
        ),
    )


def _reasons(runs: tuple[RunObservation, ...], eos_id: int | None) -> Iterator[Finding]:
    for run in runs:
        for step in run.steps:
            expected = stop_reason(
                step.selection.token_id,
                eos_id=eos_id,
                stop_token_ids=frozenset(run.stop_token_ids),
                consumed=step.start + len(step.inputs),
                n_positions=step.checkpoint.config.n_positions,
                returned=step.index + 1,
                max_new_tokens=run.max_new_tokens,
            )
            if step.stop_reason != expected:
                yield Finding(str(step.stop_reason), str(expected), Where(run.name, step.index))


def _ends(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        reasons = [step.stop_reason for step in run.steps]
        early = next((i for i, reason in enumerate(reasons[:-1]) if reason is not None), None)
        if early is not None:
            yield Finding(f"went on after {reasons[early]}", "an end", Where(run.name, early))
        elif reasons and reasons[-1] is None and run.interruption is None:
            yield Finding("no reason", "a stop reason", Where(run.name, len(reasons) - 1))
