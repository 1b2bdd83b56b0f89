"""Tables of verdicts: deliberate failures, the acceptance gate, published beside measured."""

from __future__ import annotations

import pandas as pd

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import frame
from tinydec.evidence.published import compare_published
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.verification.deliberate import FailureResult

DELIBERATE_FAILURES = TableSchema(
    "deliberate_failures.csv",
    "Broken caches that the comparison must reject, prefix by prefix",
    (
        text("failure", "name of the fault"),
        text("fault_id", "its id"),
        text("pattern", "the corpus pattern"),
        integer("length", "T, tokens of the prefix"),
        text("prefix_tokens", "the prefix as text"),
        number("max_abs_error", "largest difference of the final logits from the full path's"),
        number("tolerance", "largest accepted difference", rule="exact"),
        flag("argmax_kept", "whether the highest logit stayed the same token", rule="argmax"),
        flag("shapes_valid", "whether every cache still has the right shape"),
        flag("rejected", "whether the error exceeds the tolerance"),
        flag("can_act", "whether the fault can change anything on this prefix"),
        text("reason", "why it cannot act", optional=True),
        text("refusal", "what the guard says when it is on", optional=True),
        text("first_difference", "first tensor beyond the tolerance", optional=True),
        integer("first_position", "position where it differs", optional=True),
        flag("as_expected", "rejected, with valid shapes, exactly where it can act"),
    ),
)

ACCEPTANCE_GATE = TableSchema(
    "acceptance_gate.csv",
    "The milestone's five conditions, each with its figure",
    (
        integer("number", "1 to 5, in the milestone's order"),
        text("condition", "what must hold"),
        text("measure", "what the figure counts or measures"),
        number("figure", "what was found"),
        text("relation", "how the figure must stand to the expected number"),
        number("expected", "the number it is held against", rule="exact"),
        flag("passed", "whether the condition holds"),
    ),
)

PUBLISHED_VS_MEASURED = TableSchema(
    "published_vs_measured.csv",
    "The course's published values beside what was measured here",
    (
        text("quantity", "what is compared"),
        number("published", "the course's number", optional=True, rule="exact"),
        number("measured", "this audit's number", optional=True),
        text("published_text", "the course's token trace", optional=True),
        text("measured_text", "this audit's token trace", optional=True),
        text("unit", "unit of the numbers"),
        flag("same", "whether both are exactly the same"),
        flag("same_expected", "whether this project's checkpoint should give the same"),
        text("stated_in", "where the course says it"),
        text("note", "why the two may differ, or why not"),
    ),
)


def deliberate_failures(report: AuditReport) -> pd.DataFrame:
    """Return one row per fault and prefix: 32 for two faults on 16 prefixes."""
    return frame(DELIBERATE_FAILURES, (_failure_row(failure) for failure in report.failures))


def acceptance_gate(report: AuditReport) -> pd.DataFrame:
    """Return one row per condition."""
    return frame(
        ACCEPTANCE_GATE,
        (
            (c.number, c.condition, c.measure, c.figure, c.relation, c.expected, c.passed)
            for c in report.gate
        ),
    )


def published_vs_measured(report: AuditReport) -> pd.DataFrame:
    """Return one row per published value."""
    rows = []
    for found in compare_published(report):
        published, measured = found.published.value, found.measured
        is_text = isinstance(published, str)
        rows.append(
            (
                found.published.quantity,
                None if isinstance(published, str) else float(published),
                None if is_text else measured,
                published if is_text else None,
                measured if is_text else None,
                found.published.unit,
                found.same,
                found.published.same_expected,
                found.published.stated_in,
                found.note,
            )
        )
    return frame(PUBLISHED_VS_MEASURED, rows)


def _failure_row(failure: FailureResult) -> tuple[object, ...]:
    result = failure.result
    tensor, position = result.first_difference or (None, None)
    return (
        failure.fault.name,
        failure.fault.id,
        failure.case.pattern,
        failure.case.length,
        failure.case.tokens,
        result.max_abs_error,
        result.tolerance,
        result.full_argmax == result.cached_argmax,
        result.shapes_valid,
        failure.rejected,
        failure.cannot_act is None,
        failure.cannot_act,
        failure.refusal,
        tensor,
        position,
        failure.as_expected,
    )
