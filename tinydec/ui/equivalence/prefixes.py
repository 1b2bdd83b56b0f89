"""Every prefix: differences by token, errors on a log axis, the two failures beside them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.verdict_tables import published_vs_measured
from tinydec.figures.equivalence import shortened
from tinydec.figures.log_axis import short
from tinydec.ui import show
from tinydec.ui.audits import course_audit
from tinydec.ui.current import CurrentRun
from tinydec.ui.equivalence import compute
from tinydec.ui.equivalence.common import acting_failures, choice_text, downloads, words
from tinydec.ui.html import digits
from tinydec.verification.contrast import (
    failure_errors,
    logit_differences,
    of_fault,
)
from tinydec.verification.faults import DELIBERATE

#: Tokens of a large vocabulary whose differences are shown as numbers; the picture has them all.
MOST_COLUMNS = 32


def prefixes_view(run: CurrentRun) -> None:
    """Every prefix: differences by token, errors on a log axis, the two failures beside them."""
    report = course_audit(run)
    found = report.equivalence
    show.contract(
        "With or without a cache, every prefix must give the same logits up to rounding; two "
        "broken caches must be caught.",
        r"\max_v \, \lvert \mathrm{full}_v - \mathrm{cached}_v \rvert \le \varepsilon",
        f"{digits(found.max_abs_error)} {'≤' if found.max_abs_error <= found.tolerance else '>'} "
        f"{short(found.tolerance)}   {found.passed_count} of {len(found.prefixes)} prefixes pass "
        f"({found.distinct} distinct)",
    )
    show.figure(compute.prefixes_chart(run), key="eq.picture", alt=_prefixes_alt(report))
    show.look_for(_prefixes_hint(report))
    show.table(
        _prefix_rows(report),
        label="Every prefix, over its splits, with its errors and verdict",
        verdicts=("passed",),
    )
    st.caption(
        "Each prefix is run in every split into prefill and decode; shown is the largest error, "
        "and for the two failures that of the run token by token. prefix_logits.csv holds both "
        "rows of the run token by token. "
        "ULP (units in the last place) counts the representable numbers between two logits. A "
        "dash: the failure cannot act there. In the picture an exact 0 stands at the left edge. "
        "Of the controls above, number format and tolerance apply here. Batches and the audit "
        "have runs, and largest errors, of their own."
    )
    downloads(report, "prefix_equivalence.csv", "prefix_logits.csv", "deliberate_failures.csv")
    with st.expander(f"All {len(found.rows)} runs: every split into prefill and decode"):
        show.table(_run_rows(report), label="Every prefix in every split", verdicts=("passed",))
    with st.expander("The differences by token, as numbers"):
        show.table(_token_rows(report), label="Difference of every logit, prefix by prefix")
    st.header("Published beside measured", anchor=False)
    show.table(
        _published_rows(report),
        label="The course's published values beside measured ones",
        sentences=("quantity", "why"),
    )
    st.caption(
        "The course's own checkpoint is not published. What depends on weights may differ; what "
        "depends on sizes alone must not. The course counts layers from 1: its layer 2 is layer 1 "
        "here."
    )
    show.disclaimer()
    downloads(report, "published_vs_measured.csv")


def _prefixes_alt(report: AuditReport) -> str:
    found = report.equivalence
    first = (
        f"{len(found.prefixes)} prefixes. The cached path is at most {digits(found.max_abs_error)} "
        f"from the full one; the tolerance is {short(found.tolerance)}."
    )
    parts = [first]
    for fault in DELIBERATE:
        errors = [f.result.max_abs_error for f in acting_failures(report, fault.name)]
        if errors:
            parts.append(f"{words(fault.name)} is at least {digits(min(errors))} away.")
    return " ".join(parts)


def _prefixes_hint(report: AuditReport) -> str:
    found = report.equivalence
    text = (
        "the gap between the circles (rounding) and the crosses and diamonds (faults), with the "
        f"dashed tolerance in between. Full colour on the left is {digits(found.max_abs_error)}."
    )
    for fault in DELIBERATE:
        failures = of_fault(report.failures, fault.name)
        acting = acting_failures(report, fault.name)
        caught = sum(failure.rejected for failure in acting)
        text += f" {words(fault.name).capitalize()}: {caught} of {len(acting)} caught"
        reasons = list(dict.fromkeys(f.cannot_act for f in failures if f.cannot_act is not None))
        silent = len(failures) - len(acting)
        text += f"; it cannot act on {silent}, as {reasons[0]}." if reasons else "."
    return text


def _prefix_rows(report: AuditReport) -> pd.DataFrame:
    tokens = report.checkpoint.vocabulary.tokens
    splits = [prefix.worst for prefix in report.equivalence.prefixes]
    columns: dict[str, list[Any]] = {
        "prefix": [s.case.tokens for s in splits],
        "pattern": [s.case.pattern for s in splits],
        "T": [s.case.length for s in splits],
        "largest error": [p.max_abs_error for p in report.equivalence.prefixes],
        "ULP": [max(s.max_ulp for s in p.splits) for p in report.equivalence.prefixes],
        "passed": [p.passed for p in report.equivalence.prefixes],
        "highest logit": [choice_text(tokens, s.full_argmax, s.cached_argmax) for s in splits],
    }
    for fault in DELIBERATE:
        errors = failure_errors(of_fault(report.failures, fault.name))
        columns[words(fault.name)] = [digits(e) if e == e else "–" for e in errors.tolist()]
    return pd.DataFrame(columns)


def _run_rows(report: AuditReport) -> pd.DataFrame:
    rows = report.equivalence.rows
    return pd.DataFrame(
        {
            "prefix": [r.case.tokens for r in rows],
            "pattern": [r.case.pattern for r in rows],
            "run": [r.mode for r in rows],
            "largest error": [r.max_abs_error for r in rows],
            "mean error": [r.mean_abs_error for r in rows],
            "largest of any tensor": [float(r.errors.max()) for r in rows],
            "ULP": [r.max_ulp for r in rows],
            "passed": [r.passed for r in rows],
        }
    )


def _token_rows(report: AuditReport) -> pd.DataFrame:
    prefixes = report.equivalence.prefixes
    names = [shortened(token) for token in report.checkpoint.vocabulary.tokens[:MOST_COLUMNS]]
    differences = logit_differences(report.equivalence)[:, :MOST_COLUMNS]
    frame = pd.DataFrame(differences, columns=names)
    frame.insert(0, "prefix", [p.case.tokens for p in prefixes], allow_duplicates=True)
    return frame


def _published_rows(report: AuditReport) -> pd.DataFrame:
    frame = published_vs_measured(report)
    either = [
        ("published", "published_text"),
        ("measured", "measured_text"),
    ]
    shown = {
        name: [
            text if isinstance(text, str) else "–" if pd.isna(value) else short(float(value), 6)
            for value, text in zip(frame[name], frame[other], strict=True)
        ]
        for name, other in either
    }
    return pd.DataFrame(
        {
            "quantity": frame["quantity"],
            "published by the course": shown["published"],
            "measured here": shown["measured"],
            "why": frame["note"],
        }
    )
