"""The six stages as a checklist: pure HTML, each line opening its numbers."""

from __future__ import annotations

from html import escape

from tinydec.ui.html import digits, spelled
from tinydec.verification.audit.checks import (
    FAILED,
    NOT_JUDGED,
    NOT_RECORDED,
    PASSED,
    Check,
    StageResult,
)
from tinydec.verification.audit.report import AuditReport

CSS = """
.td-stages { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr));
gap: 0.75rem 1.25rem; list-style: none; }
ol.td-stages { margin: 0; padding: 0; }
ol.td-stages > li { margin: 0; padding: 0.4rem 0.1rem 0; border-top: 3px solid
var(--td-full-mark); min-width: 0; }
ol.td-stages > li.passed { border-color: var(--td-cached-mark); }
ol.td-stages > li.failed { border-color: var(--td-error-mark); }
ol.td-stages > li.waiting, ol.td-stages > li.unjudged { border-top-style: dashed; }
.td-stages .stage { display: flex; justify-content: space-between; gap: 0.5rem; margin: 0;
font-weight: 650; font-size: 0.95rem; }
.td-stages .verdict { white-space: nowrap; font-size: 0.85rem; }
.td-stages .passed .verdict, .td-stages .sign.passed { color: var(--td-cached); }
.td-stages .failed .verdict, .td-stages .sign.failed { color: var(--td-error); }
.td-stages .why { font-size: 0.82rem; margin: 0.15rem 0; line-height: 1.4; }
.td-stages details { font-size: 0.85rem; line-height: 1.45; }
.td-stages summary, .td-stages .line { display: flex; gap: 0.35rem; padding: 0.05rem 0;
align-items: baseline; }
.td-stages summary { cursor: pointer; list-style: none; }
.td-stages summary::after { content: "▸"; margin-left: auto; font-size: 0.7rem; }
.td-stages details[open] > summary::after { content: "▾"; }
.td-stages .line { font-size: 0.85rem; line-height: 1.45; }
.td-stages .sign { flex: 0 0 0.9rem; font-weight: 700; }
.td-stages .failing > summary { font-weight: 600; }
.td-stages dl { display: grid; grid-template-columns: auto 1fr; gap: 0.05rem 0.6rem;
margin: 0.1rem 0 0.4rem 1.25rem; font-size: 0.8rem; }
.td-stages dt { margin: 0; padding: 0; font-weight: 400; }
.td-stages dd { margin: 0; padding: 0; font-family: var(--td-mono); overflow-wrap: anywhere; }
"""

_SIGNS = {PASSED: "✓", FAILED: "✗", NOT_JUDGED: "–", NOT_RECORDED: "○"}
_CLASSES = {PASSED: "passed", FAILED: "failed", NOT_JUDGED: "unjudged", NOT_RECORDED: "none"}


def checklist_html(report: AuditReport, judged: int) -> str:
    """Return the stages; those beyond ``judged`` wait, without a word of their verdict.

    Args:
        report: the audit.
        judged: how many stages are filled in, 0 to 6.
    """
    items = "".join(
        _stage(stage) if stage.number <= judged else _waiting(stage) for stage in report.stages
    )
    return (
        f'<style>{CSS}</style><ol class="td-stages" aria-label="Six stages of the audit">'
        f"{items}</ol>"
    )


def _waiting(stage: StageResult) -> str:
    lines = "".join(
        f'<div class="line"><span class="sign">·</span><span>{escape(check.title)}</span></div>'
        for check in stage.checks
    )
    return f'<li class="waiting">{_head(stage, "to be judged")}{lines}</li>'


def _stage(stage: StageResult) -> str:
    lines = "".join(_check(check, check is stage.first_failure) for check in stage.checks)
    why = f'<p class="why">Not judged: {escape(stage.reason)}.</p>' if stage.reason else ""
    tone = _CLASSES[stage.verdict]
    passed = sum(check.verdict == PASSED for check in stage.checks)
    verdict = f"{_SIGNS[stage.verdict]} {stage.verdict}"
    if stage.verdict == PASSED:
        verdict += f" {passed} of {len(stage.checks)}"
    return f'<li class="{tone}">{_head(stage, verdict)}{why}{lines}</li>'


def _head(stage: StageResult, verdict: str) -> str:
    return (
        f'<p class="stage"><span>{stage.number} {escape(stage.title)}</span>'
        f'<span class="verdict">{escape(verdict)}</span></p>'
    )


def _check(check: Check, opened: bool) -> str:
    facts = [
        ("observed", check.observed),
        ("expected", check.expected),
        ("tolerance", digits(check.tolerance, 3)),
        ("where", str(check.where)),
        ("check", check.id),
    ]
    rows = "".join(
        f"<dt>{name}</dt><dd>{escape(spelled(value))}</dd>" for name, value in facts if value
    )
    failing = ' class="failing"' if check.failed else ""
    return (
        f"<details{failing}{' open' if opened else ''}><summary>"
        f'<span class="sign {_CLASSES[check.verdict]}">{_SIGNS[check.verdict]}</span>'
        f"<span>{escape(check.title)}</span></summary><dl>{rows}</dl></details>"
    )
