"""One audit of the shipped checkpoint for all tests of the evidence; nothing here changes it."""

from typing import Any

import pytest

from tinydec.evidence import replay
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.bundle import bundle_files
from tinydec.model.storage import load_checkpoint


@pytest.fixture(scope="session")
def report() -> AuditReport:
    return run_audit(load_checkpoint())


@pytest.fixture(scope="session")
def shipped_files(report: AuditReport) -> dict[str, bytes]:
    return bundle_files(report)


@pytest.fixture
def files(shipped_files: dict[str, bytes]) -> dict[str, bytes]:
    """A bundle of one's own to break."""
    return dict(shipped_files)


@pytest.fixture
def one_audit(report: AuditReport, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit is a pure function: the shipped one need not be computed again for every test."""
    key = (report.checkpoint, report.spec, report.context_prompt)

    def run(*arguments: Any) -> AuditReport:
        return report if arguments == key else run_audit(*arguments)

    monkeypatch.setattr(replay, "run_audit", run)
