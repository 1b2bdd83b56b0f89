"""``faults``: every fault switched on in turn, as a table and as evidence."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tinydec.cli import options
from tinydec.cli.evidence import checkpoint_name, require_pandas
from tinydec.cli.session_text import fixture_line, kill_text, session_text
from tinydec.cli.text import Outcome, one_line, verdict
from tinydec.evidence.fault_report import FaultReport, faults_spec, run_faults
from tinydec.runspec import RunSpec


def run(given: Namespace) -> Outcome:
    """Write the kill matrix; exit code 1 when a fault is not caught, or the fixture is weak.

    A weak fixture is refused as a proof, and its evidence is written all the same: it shows why.
    """
    require_pandas("faults")
    from tinydec.evidence.bundle import bundle_files, check_output, write_bundle

    directory = Path(given.out)
    check_output(directory)
    checkpoint = options.checkpoint(given)
    spec = faults_spec(
        checkpoint,
        RunSpec().dtype if given.dtype is None else given.dtype,
        options.number("tolerance", given.tolerance),
    )
    report = run_faults(checkpoint, spec)
    files = bundle_files(report)
    write_bundle(files, directory)
    wrote = f"Wrote {len(files)} files to {one_line(given.out)}."
    lines = [faults_text(report), "", wrote, f"Verdict: {verdict(report.passed)}"]
    return Outcome("\n".join(lines), 0 if report.passed else 1, wrote)


def faults_text(report: FaultReport) -> str:
    """Return the kill matrix as text, and on what it rests."""
    session = report.session
    lines = [
        (
            f"Fault lab on {checkpoint_name(report)} in {report.spec.dtype}, "
            f"tolerance {report.tolerance:g}"
        ),
        "",
        kill_text(session.kills),
    ]
    if session.report.passed:
        lines.append("Without a fault: no finding in any of the six stages.")
    else:
        lines += ["Without a fault the audit fails already:", "", session_text(session)]
    return "\n".join([*lines, fixture_line(session.fixture)])
