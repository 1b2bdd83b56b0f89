"""``audit`` and ``replay``: they need pandas, which is imported when they run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tinydec.cli import options
from tinydec.cli.text import FAIL, PASS, Outcome, one_line, text_table, verdict
from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.published import compare_published


def audit(given: Namespace) -> Outcome:
    """Write the bundle and print the verdict table; exit code 1 when a condition fails."""
    require_pandas("audit")
    from tinydec.evidence.bundle import bundle_files, check_output, write_bundle

    directory = Path(given.out)
    check_output(directory)
    checkpoint = options.checkpoint(given)
    report = run_audit(checkpoint, options.audit_run(given, checkpoint))
    files = bundle_files(report)
    write_bundle(files, directory)
    text = f"{audit_text(report)}\n\nWrote {len(files)} files to {one_line(given.out)}."
    return Outcome(f"{text}\nVerdict: {verdict(report.passed)}", 0 if report.passed else 1)


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
    """Return an audit's verdict table, and published values beside measured ones."""
    found, checkpoint = report.equivalence, report.checkpoint
    name = "the shipped checkpoint" if report.is_frozen else "checkpoint"
    words = [verdict(condition.passed) for condition in report.gate]
    gate = [
        (str(c.number), c.measure, f"{c.figure:g}", f"{c.relation} {c.expected:g}", word)
        for c, word in zip(report.gate, words, strict=True)
    ]
    published = [
        (c.published.quantity, _shown(c.published.value), _shown(c.measured))
        for c in compare_published(report)
    ]
    return (
        f"Audit of {name} {checkpoint.digest[:12]} "
        f"({checkpoint.config.parameter_count()} parameters) in {found.dtype}\n"
        f"{found.passed_count} of {len(found.prefixes)} prefixes pass ({found.distinct} distinct, "
        f"{len(found.rows)} runs); largest logit error {found.max_abs_error:.4e}, tolerance "
        f"{found.tolerance:g}\n\n"
        + text_table(("", "acceptance gate", "figure", "expected", "verdict"), gate)
        + "\n\n"
        + text_table(("quantity", "published", "measured"), published)
    )


def require_pandas(command: str) -> None:
    """Refuse a command that writes or reads tables where pandas is missing.

    Raises:
        InputError: there is no pandas.
    """
    try:
        import pandas  # noqa: F401, ICN001 - only to see whether it is there
    except ImportError:
        raise InputError(f"{command}: expected pandas to be installed, found none") from None


def _shown(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.6g}"
