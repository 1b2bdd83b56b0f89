"""Tables of the comparison: every prefix in every split, and the logits behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, numbers, text

PREFIX_EQUIVALENCE = TableSchema(
    "prefix_equivalence.csv",
    "Every controlled prefix in every split into prefill and decode, cached against full",
    (
        text("pattern", "the corpus pattern"),
        integer("length", "T, tokens of the prefix, <bos> included"),
        numbers("prefix_ids", "token ids of the prefix"),
        text("prefix_tokens", "the same as text"),
        text("mode", "how the cached path consumed it; prefill 1 is the token-by-token run"),
        integer("prefill_length", "P, tokens prefilled at once"),
        text("model_mode", "mode of the checkpoint; evaluation means no dropout"),
        text("dtype", "number format of the arithmetic"),
        number("max_abs_error", "largest difference of the final logits"),
        number("mean_abs_error", "mean difference of the final logits"),
        integer("max_ulp", "most representable numbers between two final logits", rule="ulp"),
        number("tolerance", "largest accepted difference", rule="exact"),
        flag("passed", "logits, every intermediate and every cache agree within the tolerance"),
        integer("full_argmax", "id of the full path's highest logit", rule="argmax"),
        integer("cached_argmax", "id of the cached path's highest logit", rule="argmax"),
        number("margin", "how far the full path's highest logit is above the next"),
        text("first_difference", "first tensor beyond the tolerance", optional=True),
        integer("first_position", "position where it differs", optional=True),
    ),
)

PREFIX_LOGITS = TableSchema(
    "prefix_logits.csv",
    "Final logits of every prefix on both paths (cached: token by token)",
    (
        text("pattern", "the corpus pattern"),
        integer("length", "T, tokens of the prefix"),
        text("path", "full (no cache) or cached"),
        integer("token_id", "id of the token that the logit belongs to"),
        text("token", "the same as text"),
        number("logit", "final logit"),
    ),
)


def prefix_equivalence(report: AuditReport) -> pd.DataFrame:
    """Return one row per prefix and split: 40 for the 16 controlled prefixes."""
    rows = []
    for row in report.equivalence.rows:
        tensor, position = row.first_difference or (None, None)
        rows.append(
            (
                row.case.pattern,
                row.case.length,
                row.case.token_ids,
                row.case.tokens,
                row.mode,
                row.prefill_length,
                report.checkpoint.mode,
                report.equivalence.dtype,
                row.max_abs_error,
                row.mean_abs_error,
                row.max_ulp,
                row.tolerance,
                row.passed,
                row.full_argmax,
                row.cached_argmax,
                row.margin,
                tensor,
                position,
            )
        )
    return frame(PREFIX_EQUIVALENCE, rows)


def prefix_logits(report: AuditReport) -> pd.DataFrame:
    """Return V logits for each prefix and path."""
    return frame(PREFIX_LOGITS, _logit_rows(report))


def _logit_rows(report: AuditReport) -> Iterator[tuple[Any, ...]]:
    tokens = report.checkpoint.vocabulary.tokens
    for prefix in report.equivalence.prefixes:
        case = prefix.case
        paths = (("full", prefix.logits), ("cached", prefix.token_by_token.logits))
        for path, logits in paths:
            for token_id, (token, logit) in enumerate(zip(tokens, logits.tolist(), strict=True)):
                yield case.pattern, case.length, path, token_id, token, logit
