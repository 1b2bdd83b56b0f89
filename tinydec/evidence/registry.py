"""Every table of a bundle: its file, its schema and the function that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from tinydec.evidence import cache_tables, memory_tables, prefix_tables, run_tables, verdict_tables
from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import frame, write_csv
from tinydec.evidence.schema import TableSchema, flag, text


@dataclass(frozen=True)
class Table:
    """A file of the bundle and the pure function from a report to its table."""

    schema: TableSchema
    build: Callable[[AuditReport], pd.DataFrame]

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.schema.file

    def csv(self, report: AuditReport) -> bytes:
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
        text("rule", "exact, close, scaled, ulp or argmax: how a replay compares it"),
        text("meaning", "what the column holds"),
    ),
)


def columns(_report: AuditReport) -> pd.DataFrame:
    """Return one row for every column of every file."""
    return frame(
        COLUMNS,
        (
            (table.file, c.name, c.kind, c.optional, c.rule, c.meaning)
            for table in TABLES.values()
            for c in table.schema.columns
        ),
    )


_ALL = (
    Table(verdict_tables.ACCEPTANCE_GATE, verdict_tables.acceptance_gate),
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
    Table(COLUMNS, columns),
)

#: All tables by file name, in the order in which the command line and the page show them.
TABLES: Mapping[str, Table] = MappingProxyType({table.file: table for table in _ALL})
