"""One audit of the shipped checkpoint for all tests of the evidence; nothing here changes it."""

import pytest

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
