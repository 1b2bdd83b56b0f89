"""An audited session in plain text: its stages, its fixture, its faults."""

from __future__ import annotations

from collections.abc import Sequence

from tinydec.cli.text import one_line, text_table, verdict
from tinydec.evidence.session import AuditedSession
from tinydec.model.batch_cache import LAYOUTS
from tinydec.verification.audit.checks import FAILED, NOT_RECORDED, PASSED, Check, StageResult
from tinydec.verification.fixture import LEAST_DEPARTURE, FixtureReport
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.kill_matrix import KillRow

#: How many likely causes are listed.
_CAUSES = 3


def session_text(session: AuditedSession) -> str:
    """Return the six stages as a table, and isolation and fixture in a line each."""
    rows = [_stage_row(stage) for stage in session.report.stages]
    lines = [
        text_table(("", "stage", "checks", "verdict", "first failing check"), rows),
        "",
        isolation_line(session),
        fixture_line(session.fixture),
    ]
    return "\n".join(lines)


def fault_text(session: AuditedSession) -> str:
    """Return what is switched on, what caught it, what a guard would say, and likely causes."""
    lines = [_switched_on(fault) for fault in session.faults]
    failure, found = session.report.first_failure, session.diagnosis
    if failure is None or found is None:
        return "\n".join([*lines, _not_caught(session)])
    lines += [*_failure_lines(failure), f"  first difference:  {_difference(session)}"]
    lines += [
        f"  guard, when on:    {_refusal(fault, session.refusals[fault.id])}"
        for fault in session.faults
    ]
    lines += [
        f"  what can be seen:  {symptom.observation} Check first: {symptom.first_check}."
        for symptom in found.symptoms
    ]
    causes = ", ".join(_named(cause) for cause in found.causes[:_CAUSES])
    lines.append(f"  likely causes:     {causes}")
    return "\n".join(one_line(line).rstrip() for line in lines)


def kill_text(rows: Sequence[KillRow]) -> str:
    """Return one line for each fault and variant, and the count."""
    table = text_table(
        ("fault", "expected", "found", "caught by", "logit error", "silent", "verdict"),
        [
            (
                f"{row.fault.id} {row.fault.name}" + (f" ({row.variant})" if row.variant else ""),
                f"stage {row.fault.stage}",
                "" if row.stage_found is None else f"stage {row.stage_found}",
                row.caught_by,
                f"{row.max_abs_error:.3g}",
                "silent" if row.silent else "",
                _outcome(row),
            )
            for row in rows
        ],
    )
    return f"{table}\n\n{kill_line(rows)}"


def kill_line(rows: Sequence[KillRow]) -> str:
    """Count the faults, variants aside: caught at their own stage, unable to act, not caught."""
    main = [row for row in rows if not row.variant]
    caught = sum(row.passed and row.acts for row in main)
    idle = sum(row.passed and not row.acts for row in main)
    variants = [row for row in rows if row.variant]
    line = f"{caught} of {len(main)} faults caught at their own stage"
    line += f", {idle} cannot act here" if idle else ""
    missed = [row for row in rows if not row.passed]
    line += f"; {len(variants)} variants tried as well" if variants else ""
    return line + (f"; {len(missed)} not as they should be." if missed else ".")


def fixture_line(fixture: FixtureReport) -> str:
    """Return whether the checkpoint is sharp enough for a verdict to mean anything."""
    if not fixture.strong:
        return (
            f"Fixture: too weak, so no verdict on it means anything: {fixture.weakness}; a broken "
            "cache would hide."
        )
    return (
        f"Fixture: strong; every head gets at least {fixture.departures.min():.3g} away from "
        f"uniform attention (needed: {LEAST_DEPARTURE:g}), and a deliberate failure moves logits "
        f"by at least {fixture.smallest_failure:.3g}."
    )


def isolation_line(session: AuditedSession) -> str:
    """Return how many rows of batches equal their solo runs."""
    records = session.isolation
    expected = len(LAYOUTS) * len(session.lab.scenario.rows)
    good = sum(record.passed for record in records)
    largest = max((record.max_abs_error for record in records), default=0.0)
    return (
        f"Batch isolation: {good} of {expected} rows in {len(LAYOUTS)} layouts equal their solo "
        f"runs; largest logit difference {largest:.3g}, tolerance {session.tolerance:g}: "
        f"{verdict(session.isolated)}"
    )


def _stage_row(stage: StageResult) -> tuple[str, ...]:
    passed = sum(check.verdict == PASSED for check in stage.checks)
    unseen = sum(check.verdict == NOT_RECORDED for check in stage.checks)
    counts = "" if stage.reason else f"{passed} of {len(stage.checks)}"
    counts += f" ({unseen} not recorded)" if unseen and counts else ""
    failure = stage.first_failure
    word = stage.verdict if stage.verdict not in (PASSED, FAILED) else verdict(failure is None)
    return str(stage.number), stage.title, counts, word, failure.id if failure else ""


def _switched_on(fault: Fault) -> str:
    guards = sorted(fault.intervention.guards_off)
    off = f" (guards off: {', '.join(guards)})" if guards else ""
    return f"Switched on: {_named(fault)}{off}: {fault.what}"


def _refusal(fault: Fault, message: str | None) -> str:
    if message is None:
        return f"none refuses {fault.id}"
    return f'{fault.guard} refuses {fault.id}: "{message}"'


def _not_caught(session: AuditedSession) -> str:
    if session.acts:
        return "It changes what is recorded, and no check fails: the audit missed it."
    needs = " ".join(f"{f.id} needs {f.needs}." for f in session.faults if f.needs)
    one = len(session.faults) == 1
    text = f"{'It' if one else 'They'} cannot act here: the session is the correct one, and passes."
    return f"{text} {needs}".rstrip()


def _failure_lines(failure: Check) -> list[str]:
    return [
        f"Caught by stage {failure.stage}, check {failure.id}: {failure.title}",
        f"  where:             {str(failure.where) or 'the session as a whole'}",
        f"  observed:          {failure.observed}",
        f"  expected:          {failure.expected}",
    ]


def _difference(session: AuditedSession) -> str:
    first = session.report.first_difference
    if first is None:
        return "none: every value is within the tolerance of the uncached run"
    run, tensor, position = first
    return f"{tensor} at position {position} ({run})"


def _named(fault: Fault) -> str:
    return f"{fault.id} {fault.name}"


def _outcome(row: KillRow) -> str:
    return ("pass" if row.acts else "cannot act here") if row.passed else "FAIL"
