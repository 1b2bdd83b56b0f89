"""What the views share."""

from __future__ import annotations

from functools import partial
from typing import Literal

import streamlit as st

from tinydec.evidence.audit import AuditReport
from tinydec.ui import show
from tinydec.ui.audits import csv_bytes
from tinydec.verification.contrast import (
    of_fault,
)
from tinydec.verification.deliberate import FailureResult

BIND: Literal["query-params"] = "query-params"


def acting_failures(report: AuditReport, name: str) -> list[FailureResult]:
    """Return the results of one fault where it can act."""
    return [f for f in of_fault(report.failures, name) if f.cannot_act is None]


def downloads(report: AuditReport, *files: str) -> None:
    """Draw a button for each file; its bytes are those of the command line."""
    with st.container(horizontal=True):
        for file in files:
            show.download(file, partial(csv_bytes, report, file), file, key=f"_eq.{file}")


def choice_text(tokens: tuple[str, ...], full: int, cached: int) -> str:
    """Return the token with the highest logit, or both where they differ."""
    return tokens[full] if full == cached else f"{tokens[full]} → {tokens[cached]}"


def words(name: str) -> str:
    """Return a fault's name as words."""
    return name.replace("-", " ")
