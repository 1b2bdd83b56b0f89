"""What the evidence page shows, cached by the audit that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.bundle import bundle_files, bundle_zip_bytes
from tinydec.evidence.registry import tables_of
from tinydec.figures.gate import gate_figure
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.audits import current_audit, run_of
from tinydec.ui.compute import computed
from tinydec.verification.gate import EQUALS

#: What an audit of these pages depends on.
_FIELDS = ("dtype", "tolerance", "prompt", "policy", "seed")
FOLDER = "tinydec-evidence"

#: Values that a page writes down for a visitor; a larger checkpoint is for the command line.
MOST_VALUES = 150_000

#: What each condition's figure counts, in two words.
SHORT = MappingProxyType({1: "prefixes", 2: "cache shapes", 4: "selections", 5: "stop reasons"})


def value_count(report: AuditReport) -> int:
    """Return about how many values the long tables hold: both paths, every prefix and position."""
    prefixes = report.equivalence.prefixes
    shortest = min(prefixes, key=lambda prefix: prefix.case.length)
    per_position = sum(array.size for _, array in shortest.full.named()) // shortest.case.length
    return 2 * per_position * sum(prefix.case.length for prefix in prefixes)


def gate_chart(report: AuditReport) -> go.Figure:
    """Return the picture of the five conditions; many runs share one."""
    counted = [c for c in report.gate if c.relation == EQUALS]
    failures = next(c for c in report.gate if c.relation != EQUALS)
    return _gate_chart(
        tuple(f"({c.number}) {SHORT[c.number]}" for c in counted),
        tuple((c.figure, c.expected) for c in counted),
        report.equivalence.max_abs_error,
        report.tolerance,
        failures.figure,
    )


@st.cache_resource(max_entries=128, show_spinner=False)
def _gate_chart(
    names: tuple[str, ...],
    counts: tuple[tuple[float, float], ...],
    noise: float,
    tolerance: float,
    smallest: float,
) -> go.Figure:
    return gate_figure(names, counts, noise, tolerance, smallest)


@computed(*_FIELDS, max_entries=8)
def bundle(checkpoint: Checkpoint, spec: RunSpec) -> Mapping[str, bytes]:
    """Return every file of the bundle by name."""
    return bundle_files(current_audit(run_of(checkpoint, spec)))


def zip_bytes(checkpoint: Checkpoint, spec: RunSpec) -> bytes:
    """Return the whole bundle as one zip; the same run gives the same bytes."""
    return bundle_zip_bytes(bundle(run_of(checkpoint, spec)), FOLDER)


@computed(*_FIELDS, max_entries=32)
def table(checkpoint: Checkpoint, spec: RunSpec, file: str) -> pd.DataFrame:
    """Return one table of the bundle."""
    report = current_audit(run_of(checkpoint, spec))
    found: pd.DataFrame = tables_of(report)[file].build(report)
    return found
