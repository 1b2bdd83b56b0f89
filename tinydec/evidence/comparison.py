"""Compare a recorded table with the recomputed one, cell by cell.

The rule for a float: it may differ by the tolerance, and above 1 by the tolerance times its
size. Columns marked ``exact`` (tolerances, uniform numbers, the policy's numbers) must be the
same. Policy columns are computed from logits divided by the temperature, so their tolerance is
doubled and divided by a temperature below 1. ULP counts and highest logits may differ as far as
logits within the tolerance can make them differ. What was measured of the recorded session is
held to the session's tolerance, also where a sentence says it. Everything else must be the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.cells import cell_text
from tinydec.evidence.figures_in_text import same_but_figures
from tinydec.evidence.registry import Report
from tinydec.evidence.schema import Column, TableSchema
from tinydec.runspec import shown
from tinydec.verification.compare import absolute_difference, ulp_distance
from tinydec.verification.equivalence import SplitResult

Array = NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it should be.

    Attributes:
        file: the file.
        row: 1 is the first below the header; None when it is not about one row.
        column: header of the column; None when it is not about one column.
        expected: what the recomputation gives.
        found: what the bundle holds.
    """

    file: str
    row: int | None
    column: str | None
    expected: str
    found: str

    def __str__(self) -> str:
        place = self.file
        if self.row is not None:
            place += f", row {self.row}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: expected {self.expected}, found {self.found}"


def compare_tables(
    recorded: pd.DataFrame,
    recomputed: pd.DataFrame,
    schema: TableSchema,
    report: Report,
) -> list[Difference]:
    """Return every cell that differs by more than its column's rule allows, row by row."""
    found = []
    for order, column in enumerate(schema.columns):
        allowed = _allowance(report, column)
        cells = zip(recomputed[column.name].tolist(), recorded[column.name].tolist(), strict=False)
        for row, (expected, cell) in enumerate(cells):
            if not _same(expected, cell) and not allowed(row, expected, cell):
                texts = (cell_text(value, column) or "nothing" for value in (expected, cell))
                difference = Difference(schema.file, row + 1, column.name, *map(_short, texts))
                found.append((row, order, difference))
    differences = [difference for _, _, difference in sorted(found, key=lambda entry: entry[:2])]
    if len(recorded) != len(recomputed):
        counts = (f"{len(recomputed)} rows", f"{len(recorded)}")
        differences.append(Difference(schema.file, None, None, *counts))
    return differences


def close(expected: float, found: float, tolerance: float) -> bool:
    """Whether two floats agree within the tolerance, relative to the expected one above 1."""
    if math.isfinite(expected) and math.isfinite(found):
        return abs(expected - found) <= tolerance * max(1.0, abs(expected))
    return _same(expected, found)


def own_differences(tables: Mapping[str, pd.DataFrame], dtype: str) -> list[Difference]:
    """Check a bundle against itself: errors, ULP counts and argmax follow from its own logits.

    The token-by-token rows of ``prefix_equivalence.csv`` are recomputed from the recorded
    ``prefix_logits.csv`` alone, bit for bit, whatever machine wrote them.
    """
    rows = tables["prefix_equivalence.csv"]
    logits: dict[tuple[Any, ...], list[float]] = {}
    for pattern, length, path, logit in tables["prefix_logits.csv"][
        ["pattern", "length", "path", "logit"]
    ].itertuples(index=False):
        logits.setdefault((pattern, length, path), []).append(logit)
    differences = []
    for index, row in enumerate(rows.itertuples(index=False), start=1):
        if row.prefill_length != 1:
            continue
        pair = [np.array(logits.get((row.pattern, row.length, p), [])) for p in ("full", "cached")]
        if not pair[0].size or pair[0].shape != pair[1].shape:
            continue  # rows are missing, which the comparison cell by cell says
        full, cached = (values.astype(dtype) for values in pair)
        expected = {
            "max_abs_error": float(absolute_difference(full, cached).max()),
            "max_ulp": int(ulp_distance(full, cached).max()),
            "full_argmax": int(full.argmax()),
            "cached_argmax": int(cached.argmax()),
        }
        for name, value in expected.items():
            if not _same(value, getattr(row, name)):
                text = f"{value!r} (from prefix_logits.csv)"
                place = ("prefix_equivalence.csv", index, name)
                differences.append(Difference(*place, text, repr(getattr(row, name))))
    return differences


def ulp_bound(full: Array, cached: Array, tolerance: float) -> int:
    """Return the largest ULP distance of two rows that are within the tolerance of these."""
    wide = [row.astype(np.float64) for row in (full, cached)]
    slack = [tolerance * np.maximum(1.0, np.abs(row)) for row in wide]
    largest = 0
    for sign in (1, -1):
        ends = (wide[0] + sign * slack[0], wide[1] - sign * slack[1])
        apart = ulp_distance(*(end.astype(full.dtype) for end in ends))
        largest = max(largest, int(apart.max()))
    return largest


def _same(expected: Any, found: Any) -> bool:
    if type(expected) is not type(found):
        return False
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return bool(expected == found)


def _short(text: str) -> str:
    return shown(text) if len(text) > 60 or not text.isprintable() else text


def _allowance(report: Report, column: Column) -> Callable[[int, Any, Any], bool]:
    """Return what may differ in a column: (row, expected, found) -> allowed."""
    if column.rule == "figures":
        bound = report.session.tolerance
        return lambda _row, expected, found: (
            isinstance(expected, str)
            and isinstance(found, str)
            and same_but_figures(expected, found, bound)
        )
    if column.rule in ("close", "scaled", "session"):
        tolerance = _tolerance(report, column)
        return lambda _row, expected, found: (
            isinstance(expected, float)
            and isinstance(found, float)
            and close(expected, found, tolerance)
        )
    if column.rule in ("ulp", "argmax") and isinstance(report, AuditReport):
        return lambda row, _expected, found: _RULES[column.name](report, row, found)
    return lambda _row, _expected, _found: False


def _tolerance(report: Report, column: Column) -> float:
    if column.rule == "session":
        return report.session.tolerance
    if column.rule == "scaled":
        return report.tolerance * max(1.0, 2 / report.spec.policy.temperature)
    return report.tolerance


def _split(report: AuditReport, row: int) -> tuple[Array, SplitResult]:
    pairs = [(prefix, split) for prefix in report.equivalence.prefixes for split in prefix.splits]
    return pairs[row][0].logits, pairs[row][1]


def _ulp_allowed(report: AuditReport, row: int, found: int) -> bool:
    full, split = _split(report, row)
    return 0 <= found <= ulp_bound(full, split.logits, report.tolerance)


def _near_top(logits: Array, found: int, tolerance: float) -> bool:
    """Whether a token's logit may be the highest when each is off by the tolerance."""
    if not 0 <= found < len(logits):
        return False
    values = logits.astype(np.float64)
    slack = tolerance * np.maximum(1.0, np.abs(values))
    return bool(values[found] + slack[found] >= (values - slack).max())


def _full_argmax_allowed(report: AuditReport, row: int, found: int) -> bool:
    return _near_top(_split(report, row)[0], found, report.tolerance)


def _cached_argmax_allowed(report: AuditReport, row: int, found: int) -> bool:
    return _near_top(_split(report, row)[1].logits, found, report.tolerance)


def _argmax_kept_allowed(report: AuditReport, row: int, _found: bool) -> bool:
    """Whether another token is close enough to the top, on either path, to turn the verdict."""
    failure = report.failures[row]
    full = next(p.logits for p in report.equivalence.prefixes if p.case == failure.case)
    return any(
        sum(_near_top(logits, token, report.tolerance) for token in range(len(logits))) > 1
        for logits in (full, failure.result.logits)
    )


_RULES: Mapping[str, Callable[[AuditReport, int, Any], bool]] = {
    "max_ulp": _ulp_allowed,
    "full_argmax": _full_argmax_allowed,
    "cached_argmax": _cached_argmax_allowed,
    "argmax_kept": _argmax_kept_allowed,
}
