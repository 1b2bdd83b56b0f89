"""The rules by which a recorded cell may differ."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.comparison import Difference, close, compare_tables, ulp_bound
from tinydec.evidence.registry import TABLES
from tinydec.verification.compare import ulp_distance


@pytest.mark.parametrize(
    ("expected", "found", "agrees"),
    [
        (0.5, 0.5 + 0.9e-5, True),
        (0.5, 0.5 + 1.1e-5, False),
        (0.0, -0.9e-5, True),
        (100.0, 100.0 + 0.9e-3, True),
        (100.0, 100.0 + 1.1e-3, False),
        (-100.0, -100.0009, True),
        (-math.inf, -math.inf, True),
        (math.inf, -math.inf, False),
        (math.inf, 1e308, False),
        (1e308, math.inf, False),
        (math.nan, math.nan, True),
        (math.nan, 0.0, False),
        (0.0, math.nan, False),
    ],
)
def test_floats_agree_within_the_tolerance_relative_above_one(
    expected: float, found: float, agrees: bool
) -> None:
    assert close(expected, found, 1e-5) is agrees


def test_ulp_bound_is_that_of_the_farthest_rows_within_the_tolerance() -> None:
    full = np.array([1.0, -8.0], np.float32)
    cached = np.array([1.0, -8.0], np.float32)
    # By hand: 1 - 1e-5 and 1 + 1e-5 are 83.9 + 167.8 representable numbers away from 1 (the
    # spacing is 2^-23 above 1 and half of it below); -8 +- 8e-5 the same at 8.
    assert 250 <= ulp_bound(full, cached, 1e-5) <= 254
    assert ulp_bound(full, cached, 1e-12) == 0
    rng = np.random.default_rng(3)
    full = rng.normal(size=7).astype(np.float32)
    cached = (full + rng.normal(scale=1e-6, size=7)).astype(np.float32)
    bound = ulp_bound(full, cached, 1e-5)
    for _ in range(200):
        slack = 1e-5 * np.maximum(1, np.abs(full))
        one = (full + rng.uniform(-1, 1, 7) * slack * 0.999).astype(np.float32)
        other = (cached + rng.uniform(-1, 1, 7) * slack * 0.999).astype(np.float32)
        assert ulp_distance(one, other).max() <= bound


def changed(report: AuditReport, file: str, row: int, column: str, value: object) -> list[str]:
    """What the comparison says when one recorded cell is another."""
    table = TABLES[file]
    recorded = table.build(report)
    cells = recorded[column].astype(object).tolist()
    cells[row] = value
    recorded[column] = pd.Series(cells, dtype=object)
    found = compare_tables(recorded, table.build(report), table.schema, report)
    return [str(difference) for difference in found]


def test_unchanged_table_has_no_difference(report: AuditReport) -> None:
    for table in TABLES.values():
        built = table.build(report)
        assert compare_tables(built, table.build(report), table.schema, report) == []


def test_near_tie_may_turn_the_argmax_and_no_other_token_may(report: AuditReport) -> None:
    file = "prefix_equivalence.csv"
    row = next(i for i, r in enumerate(report.equivalence.rows) if r.case.tokens == "<bos> A B")
    # C (4) and D (5) are a near-tie here, but by more than the tolerance.
    assert report.equivalence.rows[row].full_argmax == 5
    assert changed(report, file, row, "full_argmax", 4) == [
        f"{file}, row {row + 1}, column full_argmax: expected 5, found 4"
    ]
    wide = replace(report, equivalence=replace(report.equivalence, tolerance=0.05))
    assert changed(wide, file, row, "full_argmax", 4) == []
    assert changed(wide, file, row, "cached_argmax", 4) == []
    assert len(changed(wide, file, row, "full_argmax", 0)) == 1
    assert len(changed(wide, file, row, "cached_argmax", 8)) == 1
    assert len(changed(wide, file, row, "cached_argmax", -1)) == 1


def test_kept_argmax_may_turn_only_at_a_near_tie(report: AuditReport) -> None:
    file = "deliberate_failures.csv"
    row = next(
        i
        for i, failure in enumerate(report.failures)
        if failure.cannot_act is None and failure.case.tokens == "<bos> A"
    )
    kept = TABLES[file].build(report)["argmax_kept"].tolist()[row]
    assert len(changed(report, file, row, "argmax_kept", not kept)) == 1


def test_ulp_count_may_be_another_within_the_bound(report: AuditReport) -> None:
    file = "prefix_equivalence.csv"
    assert changed(report, file, 1, "max_ulp", 5) == []
    assert len(changed(report, file, 1, "max_ulp", -1)) == 1
    assert len(changed(report, file, 1, "max_ulp", 2**40)) == 1


@pytest.mark.parametrize(
    ("file", "row", "column", "value"),
    [
        ("prefix_equivalence.csv", 3, "tolerance", 1.0000001e-5),
        ("probabilities.csv", 40, "uniform", 0.5),
        ("policies.csv", 1, "temperature", 1.000001),
        ("policies.csv", 1, "top_p", 1.0),
        ("published_vs_measured.csv", 3, "published", 4.7685e-6),
        ("acceptance_gate.csv", 0, "expected", 16.000001),
        ("cache_trace.csv", 3, "payload_bytes", 65),
        ("cache_trace.csv", 3, "k_shape", (1, 2, 2, 3)),
        ("traces.csv", 4, "consumed", True),
        ("prefix_equivalence.csv", 3, "first_difference", "logits"),
    ],
)
def test_everything_else_must_be_the_same(
    report: AuditReport, file: str, row: int, column: str, value: object
) -> None:
    (text,) = changed(report, file, row, column, value)
    assert text.startswith(f"{file}, row {row + 1}, column {column}: expected")


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_probabilities_get_the_tolerance_of_logits_over_temperature(
    report: AuditReport, temperature: float
) -> None:
    policy = replace(report.spec.policy, temperature=temperature)
    other = replace(report, spec=replace(report.spec, policy=policy))
    value = float(TABLES["probabilities.csv"].build(other)["probability"].iloc[2])
    limit = 1e-5 * 2 / temperature
    for factor, count in ((0.9, 0), (1.1, 1)):
        found = changed(other, "probabilities.csv", 2, "probability", value + factor * limit)
        assert len(found) == count


def test_difference_names_its_place_and_both_values() -> None:
    assert (
        str(Difference("a.csv", 3, "x", "1", "2")) == "a.csv, row 3, column x: expected 1, found 2"
    )
    assert str(Difference("a.csv", None, None, "the file", "none")) == (
        "a.csv: expected the file, found none"
    )
