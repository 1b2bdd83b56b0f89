"""The memory table: the formula beside measured bytes, and presets of real models."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import frame
from tinydec.evidence.layouts import checkpoint_layout
from tinydec.evidence.schema import TableSchema, flag, integer, text
from tinydec.memory import (
    MemoryReport,
    cache_bytes,
    cache_scalars,
    layout_report,
    load_presets,
)
from tinydec.runspec import FROZEN

MEMORY = TableSchema(
    "memory.csv",
    "Cache payload: formula beside measured bytes, allocated beside valid, and real models",
    (
        text("model", "the audited checkpoint first, then presets at their longest context"),
        text("attention", "mha, gqa, mqa, sliding or mla"),
        text("dtype", "number format of a cached scalar"),
        integer("batch", "B, requests side by side"),
        integer("tokens", "T, consumed inputs per request"),
        text("formula", "the payload formula with its numbers"),
        integer("scalars", "valid scalars by the formula"),
        integer("formula_bytes", "valid bytes by the formula"),
        integer("measured_bytes", "valid bytes read off the arrays", optional=True),
        integer("allocated_bytes", "bytes set aside by the formula"),
        integer("measured_allocated_bytes", "bytes set aside, read off the arrays", optional=True),
        flag("agrees", "whether formula and arrays agree", optional=True),
        flag("verified", "whether every size was confirmed in the sources"),
        text("notes", "what to know about the sizes", optional=True),
        text("source", "where the sizes come from"),
    ),
)


def memory(report: AuditReport) -> pd.DataFrame:
    """Return the checkpoint at every measured length, then each preset at its longest context."""
    return frame(MEMORY, [*_measured_rows(report), *_preset_rows()])


def _measured_rows(report: AuditReport) -> Iterator[tuple[object, ...]]:
    spec = report.spec
    name = FROZEN if report.is_frozen else f"checkpoint {report.checkpoint.digest[:12]}"
    layout = checkpoint_layout(report.checkpoint, name, spec.dtype)
    allocated = layout_report(layout, layout.max_context).allocated_bytes
    for measure in report.memory:
        scalars = cache_scalars(
            layers=layout.layers,
            batch=1,
            kv_heads=layout.query_heads,
            tokens=measure.tokens,
            head_dim=report.checkpoint.config.d_h,
        )
        valid = cache_bytes(scalars, spec.dtype)
        sizes = (2, layout.layers, 1, layout.query_heads, measure.tokens, layout.head_dim)
        yield (
            layout.name,
            layout.attention,
            spec.dtype,
            1,
            measure.tokens,
            f"{' x '.join(map(str, sizes))} = {scalars} scalars",
            scalars,
            valid,
            measure.valid_bytes,
            allocated,
            measure.allocated_bytes,
            (valid, allocated) == (measure.valid_bytes, measure.allocated_bytes),
            layout.verified,
            layout.notes or None,
            layout.source,
        )


def _preset_rows() -> Iterator[tuple[object, ...]]:
    for layout in load_presets().values():
        yield _preset_row(layout_report(layout, layout.max_context))


def _preset_row(found: MemoryReport) -> tuple[object, ...]:
    return (
        found.model,
        found.attention,
        found.dtype,
        found.batch,
        found.tokens,
        found.formula.numbers,
        found.scalars,
        found.bytes,
        None,
        found.allocated_bytes,
        None,
        None,
        found.verified,
        found.notes or None,
        found.source,
    )
