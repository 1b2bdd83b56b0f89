"""Home: the verdict cards, and published beside measured."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

import pandas as pd

from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport, default_spec, run_audit
from tinydec.evidence.published import Comparison
from tinydec.figures.log_axis import short
from tinydec.generation.generate import new_request
from tinydec.generation.trace import GenerationTrace
from tinydec.memory.payload import cache_bytes, cache_scalars
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import Card, code, digits
from tinydec.ui.lessons.rows import row_choices, row_text
from tinydec.verification.prefixes import controlled_prefixes

#: Where each lesson leads, in one sentence; the order is that of the navigation.
WAYS = {
    "generation_loop": "Start here: step through a run and see why it stops.",
    "decoding_policy": "How one row of logits and one random number become a token.",
    "prefill_decode": "The prompt goes in at once, every later token alone.",
    "kv_cache": "What is kept from earlier tokens, cell by cell.",
    "decode_step": "Every number of one step, down to the weights.",
    "positions": "Which position a token gets, and what happens at the limit.",
    "equivalence": "Cache against no cache, on every prefix.",
    "memory": "What a cache costs in bytes, here and in real models.",
    "batches": "Several requests at once, each with its own stop.",
    "audit": "The six stages of proof, in order.",
    "fault_lab": "Break the cache in every classic way and see the signature.",
    "review": "All exercises in one place, with a score.",
    "evidence": "Take every table away as CSV, with the command that replays it.",
}

_FAILURE_PAGES = "fault_lab equivalence"
_FAULTS = {"positions-reset": "Positions reset to 0", "wrong-layer": "Wrong layer's cache"}


def welcome(checkpoint: Checkpoint) -> str:
    """Return what a newcomer reads first."""
    config = checkpoint.config
    return (
        f"A whole language model, small enough to read: {digits(config.parameter_count())} "
        f"numbers, {digits(config.vocab_size)} tokens, {digits(config.n_positions)} positions. "
        "It turns the tokens so far (the prefix) into one row of scores (logits), a policy picks "
        "one token from that row, and the token joins the prefix. Press Step to turn the loop."
    )


def turn_text(trace: GenerationTrace, step: int) -> str:
    """Return which turn of how many is shown, and at the last one why the run stops, in Markdown.

    Back-quotes keep tokens such as ``<bos>`` from being read as HTML.
    """
    count = len(trace.steps)
    text = f"Step **{step}** (of 0 to {count - 1})"
    if step < count - 1:
        return text
    return f"{text}. The run stops with `{trace.stop_reason}`."


def audit(checkpoint: Checkpoint, spec: RunSpec) -> AuditReport | str:
    """Return the course's audit in the chosen number format, or why there is none."""
    course = default_spec(checkpoint)
    try:
        return run_audit(checkpoint, replace(course, dtype=spec.dtype, tolerance=spec.tolerance))
    except InputError as error:
        return str(error)


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
            f"{'within' if error <= report.tolerance else 'beyond'} {short(report.tolerance)}",
            error <= report.tolerance,
            "equivalence",
        ),
        *(_failure_card(report, name) for name in _FAULTS),
        Card("Both traces", f"{same} of {len(runs)}", "same either way", same == len(runs),
             "generation_loop"),
        _memory_card(report),
    ]  # fmt: skip
    return [replace(card, page=_first_of(card.page.split(), pages)) for card in cards]


def cards_text(cards: Collection[Card]) -> str:
    """Return what the cards are about and what a click on one does."""
    return (
        f"{digits(len(cards))} checks on this model: a run with a cache must give the same logits "
        "as one without, and two caches broken on purpose must not. Each card leads to its proof."
    )


def _first_of(wanted: Collection[str], pages: Collection[str]) -> str:
    return next((page for page in wanted if page in pages), "")


def _failure_card(report: AuditReport, name: str) -> Card:
    title = _FAULTS[name]
    every = [f for f in report.failures if f.fault.name == name]
    found = [f for f in every if f.cannot_act is None]
    if not found:
        return Card(title, "cannot act", page=_FAILURE_PAGES)
    rejected = sum(f.rejected for f in found)
    worst = max(f.result.max_abs_error for f in found)
    verdict = f"rejected on {rejected} of {len(found)}"
    # Where a fault cannot act, nothing is left to reject.
    lengths = {f.case.length for f in every if f.cannot_act is not None}
    if lengths == {1}:
        verdict += " longer than one token"
    return Card(
        title, f"off by {digits(worst, 3)}", verdict, rejected == len(found), _FAILURE_PAGES
    )


def _memory_card(report: AuditReport) -> Card:
    config = report.checkpoint.config
    formula = {
        measure.tokens: cache_bytes(
            cache_scalars(
                layers=config.n_layer,
                batch=1,
                kv_heads=config.n_head,
                tokens=measure.tokens,
                head_dim=config.d_h,
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
            "published": [_value(c.published.value, c.published.unit) for c in comparisons],
            "measured here": [_value(c.measured, c.published.unit) for c in comparisons],
            "compared": [_compared(c) for c in comparisons],
        }
    )


def published_caption(report: AuditReport, source: str) -> str:
    """Return where both columns come from."""
    ours = "the shipped checkpoint" if report.is_frozen else "this checkpoint"
    return (
        f"Published: {source}. Measured: {ours} "
        f"(`{report.checkpoint.digest[:12]}`), {report.spec.dtype}, computed by this page. "
        "Why a value may differ stands in the CSV's last column. The course counts layers from 1: "
        "its layer 2 is layer 1 here."
    )


def _value(value: float | str | None, unit: str) -> str:
    if value is None:
        return "none in this model"
    text = value if isinstance(value, str) else short(value, 6)
    return f"{text} {unit}" if unit == "bytes" else text


def _compared(comparison: Comparison) -> str:
    if comparison.same:
        return "✓ same"
    return "✗ differs" if comparison.published.same_expected else "other weights"


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
            f"After {code(case.tokens)} the final logits row is\n\n"
            f"{row_text(tokens, selection.logits, choices)}\n\n"
            "Which token does greedy decoding return, and what is the extended prefix?"
        ),
        answer=answer,
        hint="Greedy looks at no probability and draws no number. Only the largest logit counts.",
        solution=(
            f"The largest logit, {float(selection.logits.max()):.3f}, belongs to {code(answer)}. "
            f"The extended prefix is {code(f'{case.tokens} {answer}')}."
        ),
        choices=tuple(tokens[i] for i in choices),
    )
