"""Home: the verdict cards, and published beside measured."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

import pandas as pd

from tinydec.evidence.audit import AuditReport, default_spec, run_audit
from tinydec.evidence.published import Comparison
from tinydec.generation.generate import new_request
from tinydec.memory.payload import cache_bytes, cache_scalars
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import Card, digits
from tinydec.ui.lessons.rows import row_choices, row_text
from tinydec.verification.prefixes import controlled_prefixes

_FAULTS = {"positions-reset": "Positions reset to 0", "wrong-layer": "Wrong layer's cache"}


def audit(checkpoint: Checkpoint, spec: RunSpec) -> AuditReport:
    """Return the audit that the cards show: the course's runs in the chosen number format.

    Raises:
        InputError: a checkpoint too large to write down.
    """
    course = default_spec(checkpoint)
    return run_audit(checkpoint, replace(course, dtype=spec.dtype, tolerance=spec.tolerance))


def verdict_cards(report: AuditReport, pages: Collection[str]) -> list[Card]:
    """Return the row of cards; each links to the page that proves it, if it is among ``pages``."""
    equivalence = report.equivalence
    passed, total = equivalence.passed_count, len(equivalence.prefixes)
    error = equivalence.max_abs_error
    runs = [report.run(name) for name in ("greedy", "sample")]
    same = sum(run.cached.token_ids == run.full.token_ids for run in runs)
    cards = [
        Card(
            "Prefixes passed", f"{passed} of {total}", "cache = no cache", passed == total,
            "equivalence",
        ),
        Card(
            "Largest error",
            digits(error, 3),
            f"{'within' if error <= report.tolerance else 'beyond'} {report.tolerance:g}",
            error <= report.tolerance,
            "equivalence",
        ),
        *(_failure_card(report, name) for name in _FAULTS),
        Card("Both traces", f"{same} of {len(runs)}", "same either way", same == len(runs),
             "generation-loop"),
        _memory_card(report),
    ]  # fmt: skip
    return [card if card.href in pages else replace(card, href="") for card in cards]


def _failure_card(report: AuditReport, name: str) -> Card:
    title = _FAULTS[name]
    found = [f for f in report.failures if f.fault.name == name and f.cannot_act is None]
    if not found:
        return Card(title, "cannot act", href="fault-lab")
    rejected = sum(f.rejected for f in found)
    worst = max(f.result.max_abs_error for f in found)
    verdict = f"rejected on {rejected} of {len(found)}"
    return Card(title, f"off by {digits(worst, 3)}", verdict, rejected == len(found), "fault-lab")


def _memory_card(report: AuditReport) -> Card:
    config = report.checkpoint.config
    formula = {
        measure.tokens: cache_bytes(
            cache_scalars(
                layers=config.n_layer,
                batch=1,
                kv_heads=config.n_head,
                tokens=measure.tokens,
                head_dim=config.head_width,
            ),
            report.spec.dtype,
        )
        for measure in report.memory
    }
    last = report.memory[-1]
    agrees = all(formula[m.tokens] == m.valid_bytes for m in report.memory)
    return Card(
        f"Cache at {last.tokens} tokens",
        f"{digits(last.valid_bytes)} bytes",
        f"{digits(last.valid_bytes // last.tokens)} for each token",
        agrees,
        "memory",
    )


def published_frame(comparisons: tuple[Comparison, ...]) -> pd.DataFrame:
    """Return published beside measured as text, for the page's table."""
    return pd.DataFrame(
        {
            "quantity": [c.published.quantity for c in comparisons],
            "published": [_value(c.published.value) for c in comparisons],
            "measured here": [_value(c.measured) for c in comparisons],
            "unit": [c.published.unit for c in comparisons],
            "same": [_same(c) for c in comparisons],
        }
    )


def _value(value: float | str | None) -> str:
    if isinstance(value, float | int) and float(value).is_integer():
        return digits(int(value))
    return "none in this model" if value is None else digits(value, 5)


def _same(comparison: Comparison) -> str:
    if comparison.same:
        return "✓ the same"
    return "differs" if comparison.published.same_expected else "other weights, so another value"


def greedy_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask which token greedy decoding returns for one row of logits."""
    case = rng.choice(controlled_prefixes(checkpoint))
    spec = RunSpec(prompt=tuple(case.tokens.split()))
    selection = new_request(checkpoint, spec).step().selection
    tokens = checkpoint.vocabulary.tokens
    choices = row_choices(selection)
    answer = tokens[selection.token_id]
    return Task(
        question=(
            f"After `{case.tokens}` the final logits row is\n\n"
            f"{row_text(tokens, selection.logits, choices)}\n\n"
            "Which token does greedy decoding return, and what is the extended prefix?"
        ),
        answer=answer,
        hint="Greedy looks at no probability and draws no number. Only the largest logit counts.",
        solution=(
            f"The largest logit, {float(selection.logits.max()):.3f}, belongs to `{answer}`. "
            f"The extended prefix is `{case.tokens} {answer}`."
        ),
        choices=tuple(tokens[i] for i in choices),
    )
