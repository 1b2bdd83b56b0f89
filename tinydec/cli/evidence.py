"""``audit`` and ``replay``: they need pandas, which is imported when they run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tinydec.cli import options
from tinydec.cli.session_text import fault_text, kill_line, session_text
from tinydec.cli.text import FAIL, PASS, Outcome, one_line, text_table, verdict
from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.fault_report import FaultReport
from tinydec.evidence.published import compare_published
from tinydec.runspec import FROZEN


def audit(given: Namespace) -> Outcome:
    """Write the bundle and print the verdict tables; exit code 1 when anything fails."""
    require_pandas("audit")
    from tinydec.evidence.bundle import bundle_files, check_output, write_bundle

    directory = Path(given.out)
    check_output(directory)
    checkpoint = options.checkpoint(given)
    report = run_audit(checkpoint, options.audit_run(given, checkpoint))
    files = bundle_files(report)
    write_bundle(files, directory)
    wrote = f"Wrote {len(files)} files to {one_line(given.out)}."
    text = f"{audit_text(report)}\n\n{wrote}\nVerdict: {verdict(report.passed)}"
    return Outcome(text, 0 if report.passed else 1, wrote)


def replay(given: Namespace) -> Outcome:
    """Recompute a bundle and print a verdict for every file."""
    require_pandas("replay")
    from tinydec.evidence.replay import read_bundle, replay_bundle

    used = None if given.checkpoint is None else options.checkpoint(given)
    found = replay_bundle(read_bundle(Path(given.directory)), used)
    rows = [
        (v.file, str(v.cells) if v.cells else "", str(len(v.differences)), verdict(v.passed))
        for v in found.verdicts
    ]
    lines = [text_table(("file", "cells", "differences", "verdict"), rows), ""]
    lines += [f"Another machine or code: {one_line(text)}" for text in found.elsewhere]
    if found.first_difference is not None:
        lines.append(f"First difference: {one_line(str(found.first_difference))}")
    recorded = PASS if found.manifest.passed else FAIL
    lines += [
        f"Rule: floats within {found.manifest.tolerance:g}, relative above 1; see columns.csv.",
        f"{found.cells} cells compared. The recorded audit's own verdict: {recorded}",
        f"Verdict: {verdict(found.passed)}",
    ]
    return Outcome("\n".join(lines), 0 if found.passed else 1)


def audit_text(report: AuditReport) -> str:
    """Return an audit's verdict tables, then what became of its faults, or published values."""
    found, session = report.equivalence, report.session
    words = [verdict(condition.passed) for condition in report.gate]
    gate = [
        (str(c.number), c.measure, f"{c.figure:g}", f"{c.relation} {c.expected:g}", word)
        for c, word in zip(report.gate, words, strict=True)
    ]
    parts = [
        (
            f"Audit of {checkpoint_name(report)} in {found.dtype}\n"
            f"{found.passed_count} of {len(found.prefixes)} prefixes pass ({found.distinct} "
            f"distinct, {len(found.rows)} runs); largest logit error {found.max_abs_error:.4e}, "
            f"tolerance {found.tolerance:g}"
        ),
        text_table(("", _gate_title(report), "figure", "expected", "verdict"), gate),
        session_text(session),
    ]
    if session.faults:
        parts.append(fault_text(session))
    else:
        parts[-1] += _kills(report)
        parts.append(_published(report))
    return "\n\n".join(parts)


def checkpoint_name(report: AuditReport | FaultReport) -> str:
    """Return what a report calls its checkpoint."""
    name = "the shipped checkpoint" if report.is_frozen else "checkpoint"
    count = report.checkpoint.config.parameter_count()
    return f"{name} {report.checkpoint.digest[:12]} ({count} parameters)"


def require_pandas(command: str) -> None:
    """Refuse a command that writes or reads tables where pandas is missing.

    Raises:
        InputError: there is no pandas.
    """
    try:
        import pandas  # noqa: F401, ICN001 - only to see whether it is there
    except ImportError:
        raise InputError(f"{command}: expected pandas to be installed, found none") from None


def _gate_title(report: AuditReport) -> str:
    return "acceptance gate" + (" (without the fault)" if report.spec.faults else "")


def _kills(report: AuditReport) -> str:
    if report.spec.checkpoint != FROZEN:
        return ""
    return f"\nFault lab: {kill_line(report.session.kills)}"


def _published(report: AuditReport) -> str:
    rows = [
        (c.published.quantity, _shown(c.published.value), _shown(c.measured))
        for c in compare_published(report)
    ]
    return text_table(("quantity", "published", "measured"), rows)


def _shown(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.6g}"
