"""Tables of an audited session: its checks, its batches, its faults, and its fixture."""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from tinydec.evidence import batch_tables, lab_tables
from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.evidence.session import AuditedSession
from tinydec.verification.fixture import LEAST_DEPARTURE

FIXTURE = TableSchema(
    "fixture.csv",
    "Whether the checkpoint is sharp enough for a verdict on it to mean anything",
    (
        text("measure", "what is measured"),
        integer("layer", "whose attention", optional=True),
        integer("head", "whose attention", optional=True),
        number("figure", "what was found", rule="session"),
        text("relation", "how the figure must stand to the expected number"),
        number("expected", "the number it is held against", rule="exact"),
        flag("passed", "whether it does"),
    ),
)


class WithSession(Protocol):
    """A report that holds an audited session."""

    @property
    def session(self) -> AuditedSession:
        """The session."""


def audit_checks(report: WithSession) -> pd.DataFrame:
    """Return one row for each check of the six stages."""
    return lab_tables.checks(report.session.report.checks)


def batch_isolation(report: WithSession) -> pd.DataFrame:
    """Return one row for each row of the batch in each layout."""
    return batch_tables.isolation_rows(report.session.isolation)


def kill_matrix(report: WithSession) -> pd.DataFrame:
    """Return one row for each fault and variant: all of them, or those that were chosen."""
    return lab_tables.verdicts(report.session.kills, report.session.refusals)


def fixture(report: WithSession) -> pd.DataFrame:
    """Return how far each head gets from uniform attention, and the smallest failure."""
    found = report.session.fixture
    departure = "largest departure of an attention weight from uniform, on any prefix"
    rows: list[tuple[object, ...]] = [
        (
            departure,
            layer,
            head,
            float(value),
            "at least",
            LEAST_DEPARTURE,
            bool(value >= LEAST_DEPARTURE),
        )
        for layer, heads in enumerate(found.departures)
        for head, value in enumerate(heads)
    ]
    smallest = "smallest logit error of a deliberate failure where it can act"
    bites = found.smallest_failure > found.tolerance
    rows.append(
        (smallest, None, None, found.smallest_failure, "above", found.tolerance, bool(bites))
    )
    return frame(FIXTURE, rows)
