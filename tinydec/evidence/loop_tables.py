"""Tables of one run: its turns, its logits, its stop rules, and both paths side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.generation.stop_rules import rule_checks
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.trace_pair import TracePair

TURNS = TableSchema(
    "turns.csv",
    "Every turn of the loop: prefix, selection, extended prefix",
    (
        integer("step", "0 consumes the prompt"),
        text("prefix", "the tokens so far"),
        text("consumed now", "inputs that are new in this step"),
        text("positions", "their positions"),
        text("highest logit", "token with the highest final logit"),
        number("logit", "that logit"),
        number("lead", "how far it is above the next", optional=True),
        number("uniform", "the number drawn; empty under greedy", optional=True, rule="exact"),
        text("selected", "the token that the policy returned"),
        text("extended prefix", "prefix and selected token"),
        text("stop reason", "why the run ended here; empty where it goes on", optional=True),
    ),
)

LOGIT_ROWS = TableSchema(
    "logit_rows.csv",
    "The final logits row of every step, with the probabilities that the policy made of it",
    (
        integer("step", "0 consumes the prompt"),
        integer("token_id", "id of the token"),
        text("token", "the same as text"),
        number("logit", "original logit"),
        number("probability", "probability after the policy; 0 when not kept", rule="scaled"),
        flag("selected", "whether the policy returned it"),
    ),
)

STOP_RULES = TableSchema(
    "stop_rules.csv",
    "What each stop rule says at one step; the first that applies is recorded",
    (
        text("rule", "stop reason; the upper one wins"),
        text("found", "what it looks at"),
        flag("applies", "whether it alone would stop the run here"),
        flag("recorded", "whether it is the recorded reason"),
    ),
)

PATHS = TableSchema(
    "paths.csv",
    "The same run with a cache and without",
    (
        integer("step", "0 consumes the prompt"),
        text("with cache", "token selected by the run with a cache"),
        text("without cache", "token selected by the run without"),
        flag("same token", "whether they are the same"),
        flag("same draw", "whether both drew the same number and left the generator alike"),
        integer("inputs with cache", "tokens that the decoder read in this step"),
        integer("inputs without", "tokens that the decoder read in this step"),
        number("largest difference", "largest difference of the two logits rows"),
    ),
)


def turns(vocabulary: Vocabulary, trace: GenerationTrace) -> pd.DataFrame:
    """Return one row per step."""
    rows = []
    for step in trace.steps:
        logits = step.selection.logits
        ranked = sorted(logits.tolist(), reverse=True)
        prefix = trace.token_ids[: step.length_after]
        rows.append(
            (
                step.index,
                vocabulary.decode(prefix),
                vocabulary.decode(step.consumed_ids),
                _positions(step.positions),
                vocabulary.tokens[int(logits.argmax())],
                ranked[0],
                ranked[0] - ranked[1] if len(ranked) > 1 else None,
                step.selection.uniform,
                vocabulary.tokens[step.returned_id],
                vocabulary.decode((*prefix, step.returned_id)),
                step.stop_reason,
            )
        )
    return frame(TURNS, rows)


def _positions(positions: Sequence[int]) -> str:
    first, last = positions[0], positions[-1]
    return str(first) if first == last else f"{first} to {last}"


def logit_rows(vocabulary: Vocabulary, trace: GenerationTrace) -> pd.DataFrame:
    """Return V rows for each step."""
    return frame(
        LOGIT_ROWS,
        (
            (step.index, token_id, token, logit, probability, token_id == step.returned_id)
            for step in trace.steps
            for token_id, (token, logit, probability) in enumerate(
                zip(
                    vocabulary.tokens,
                    step.selection.logits.tolist(),
                    step.selection.probabilities.tolist(),
                    strict=True,
                )
            )
        ),
    )


def by_step(vocabulary: Vocabulary, trace: GenerationTrace, steps: Iterable[int]) -> pd.DataFrame:
    """Return one row per token and one column of logits per step, as the figure shows them."""
    columns = {f"step {s}": trace.steps[s].selection.logits.tolist() for s in steps}
    return pd.DataFrame({"id": range(len(vocabulary)), "token": vocabulary.tokens, **columns})


def stop_rules(checkpoint: Checkpoint, trace: GenerationTrace, step: int) -> pd.DataFrame:
    """Return one row per rule, as each stands at one step."""
    checks = rule_checks(checkpoint, trace, step)
    return frame(STOP_RULES, ((c.rule, c.found, c.applies, c.recorded) for c in checks))


def paths(vocabulary: Vocabulary, pair: TracePair) -> pd.DataFrame:
    """Return one row per step of both runs."""
    tokens = vocabulary.tokens
    return frame(
        PATHS,
        (
            (
                step.step,
                tokens[step.cached_id],
                tokens[step.full_id],
                step.same_token,
                step.same_draw,
                step.cached_inputs,
                step.full_inputs,
                step.max_abs_error,
            )
            for step in pair.steps
        ),
    )
