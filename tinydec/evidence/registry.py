"""Every table of a bundle: its file, its schema and the function that builds it.

A bundle is an audit's or the fault lab's; the latter holds the tables of a session alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import pandas as pd

from tinydec.evidence import (
    cache_tables,
    memory_tables,
    prefix_tables,
    run_tables,
    session_tables,
    verdict_tables,
)
from tinydec.evidence.audit import AuditReport
from tinydec.evidence.batch_tables import ISOLATION
from tinydec.evidence.csv_format import frame, write_csv
from tinydec.evidence.fault_report import FaultReport
from tinydec.evidence.lab_tables import CHECKS, VERDICTS
from tinydec.evidence.manifest import AUDIT, FAULTS
from tinydec.evidence.schema import TableSchema, flag, text
from tinydec.runspec import FROZEN, RunSpec

Report = AuditReport | FaultReport
_R = TypeVar("_R")


@dataclass(frozen=True)
class Table(Generic[_R]):
    """A file of the bundle and the pure function from a report to its table."""

    schema: TableSchema
    build: Callable[[_R], pd.DataFrame]

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.schema.file

    def csv(self, report: _R) -> bytes:
        """Return the bytes of the CSV file."""
        return write_csv(self.build(report), self.schema)


COLUMNS = TableSchema(
    "columns.csv",
    "What every column of every file means, and how a replay compares it",
    (
        text("file", "the file"),
        text("column", "header of the column"),
        text("kind", "text, int, float, bool, or numbers for a tuple of integers"),
        flag("optional", "whether a cell may be empty"),
        text(
            "rule",
            "exact, close, scaled, ulp, argmax, session or figures: how a replay compares it",
        ),
        text("meaning", "what the column holds"),
    ),
)


def columns(report: Report) -> pd.DataFrame:
    """Return one row for every column of every file."""
    return frame(
        COLUMNS,
        (
            (table.file, c.name, c.kind, c.optional, c.rule, c.meaning)
            for table in tables_of(report).values()
            for c in table.schema.columns
        ),
    )


def tables_for(kind: str, spec: RunSpec) -> Mapping[str, Table[Any]]:
    """Return the tables of a bundle by file name.

    An audit holds the kill matrix where that takes less than a second: all faults on the shipped
    checkpoint, else those that are switched on. The fault lab always holds it.
    """
    if kind == FAULTS:
        return FAULT_TABLES
    if spec.checkpoint == FROZEN or spec.faults:
        return TABLES
    return {name: table for name, table in TABLES.items() if table is not _KILL_MATRIX}


def kind_of(report: Report) -> str:
    """Return the kind of a report's bundle, as the manifest names it."""
    return FAULTS if isinstance(report, FaultReport) else AUDIT


def tables_of(report: Report) -> Mapping[str, Table[Any]]:
    """Return the tables of a report's bundle by file name."""
    return tables_for(kind_of(report), report.spec)


_CHECKS: Table[session_tables.WithSession] = Table(CHECKS, session_tables.audit_checks)
_KILL_MATRIX: Table[session_tables.WithSession] = Table(VERDICTS, session_tables.kill_matrix)
_FIXTURE: Table[session_tables.WithSession] = Table(session_tables.FIXTURE, session_tables.fixture)
_COLUMNS: Table[Report] = Table(COLUMNS, columns)


_ALL: tuple[Table[Any], ...] = (
    Table(verdict_tables.ACCEPTANCE_GATE, verdict_tables.acceptance_gate),
    _CHECKS,
    Table(ISOLATION, session_tables.batch_isolation),
    _KILL_MATRIX,
    _FIXTURE,
    Table(prefix_tables.PREFIX_EQUIVALENCE, prefix_tables.prefix_equivalence),
    Table(prefix_tables.PREFIX_LOGITS, prefix_tables.prefix_logits),
    Table(verdict_tables.DELIBERATE_FAILURES, verdict_tables.deliberate_failures),
    Table(cache_tables.CACHE_TRACE, cache_tables.cache_trace),
    Table(cache_tables.KV_VALUES, cache_tables.kv_values),
    Table(cache_tables.ATTENTION, cache_tables.attention),
    Table(cache_tables.INTERMEDIATES, cache_tables.intermediates),
    Table(run_tables.POLICIES, run_tables.policies),
    Table(run_tables.TRACES, run_tables.traces),
    Table(run_tables.PROBABILITIES, run_tables.probabilities),
    Table(run_tables.STOPS, run_tables.stops),
    Table(memory_tables.MEMORY, memory_tables.memory),
    Table(verdict_tables.PUBLISHED_VS_MEASURED, verdict_tables.published_vs_measured),
    _COLUMNS,
)

#: All tables of an audit by file name, in the order in which command line and page show them.
TABLES: Mapping[str, Table[Any]] = MappingProxyType({table.file: table for table in _ALL})
#: All tables of the fault lab.
FAULT_TABLES: Mapping[str, Table[Any]] = MappingProxyType(
    {table.file: table for table in (_KILL_MATRIX, _CHECKS, _FIXTURE, _COLUMNS)}
)
