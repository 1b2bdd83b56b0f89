"""Tables of positions: what each step consumed and returned, and the input that does not fit."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import Column, TableSchema, flag, integer, number, numbers, text
from tinydec.generation.trace import GenerationTrace
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.overflow import REPREFILL, SLIDE, Judged, OverflowReport

POSITIONS = TableSchema(
    "positions.csv",
    "What every step consumed, which rows of the position table it read, what it returned",
    (
        integer("step", "0 consumes the prompt"),
        text("consumed", "inputs that are new in this step"),
        numbers("position_rows", "rows of the position table that they read"),
        integer("consumed_before", "inputs consumed before the step: the first position"),
        integer("next_position", "inputs consumed after it: the next position"),
        text("returned", "token that the policy selected"),
        flag("consumed_later", "whether a later step consumes it"),
        text("stop_reason", "why the run ended here; empty where it goes on", optional=True),
    ),
)

OVERFLOW = TableSchema(
    "overflow.csv",
    "One input more than the context holds, in three ways",
    (
        text("method", "refuse, naive sliding or re-prefill"),
        text("inputs_held", "tokens that the cache stands for afterwards"),
        numbers("key_positions", "position row under which each slot's key was made"),
        number("logit_error", "largest difference from a full forward over the kept window",
               optional=True),
        flag("within_tolerance", "whether that is within the tolerance", optional=True),
        flag("same_argmax", "whether greedy would select the same token", optional=True),
        integer("multiply_adds", "work for this one input, visible pairs alone"),
        text("refusal", "the refusal's words; empty where the input was read", optional=True),
    ),
)  # fmt: skip

WINDOW_LOGITS = TableSchema(
    "overflow_logits.csv",
    "The new input's logits in each way, beside the full forward over the kept window",
    (
        integer("token_id", "id of the token"),
        text("token", "the same as text"),
        number("full forward", "kept window from position 0"),
        number("re-prefill", "kept window read into an empty cache"),
        number("naive sliding", "oldest slot dropped, the other keys as they were"),
    ),
)


def positions(vocabulary: Vocabulary, trace: GenerationTrace) -> pd.DataFrame:
    """Return one row for each step."""
    last = len(trace.steps) - 1
    return frame(
        POSITIONS,
        (
            (
                step.index,
                vocabulary.decode(step.consumed_ids),
                tuple(int(position) for position in step.positions),
                step.length_before,
                step.length_after,
                vocabulary.tokens[step.returned_id],
                step.index < last,
                step.stop_reason,
            )
            for step in trace.steps
        ),
    )


def overflow_table(
    vocabulary: Vocabulary, report: OverflowReport, tolerance: float
) -> pd.DataFrame:
    """Return one row for each method."""
    rows = []
    for outcome in report.outcomes:
        judged = outcome.judged
        verdict: tuple[float | None, bool | None, bool | None] = (None, None, None)
        if judged is not None:
            error = judged.max_abs_error
            verdict = (error, error <= tolerance, judged.same_argmax)
        rows.append(
            (
                outcome.method,
                vocabulary.decode(outcome.token_ids),
                outcome.key_positions,
                *verdict,
                outcome.multiply_adds,
                outcome.refusal or None,
            )
        )
    return frame(OVERFLOW, rows)


def window_logits(vocabulary: Vocabulary, report: OverflowReport) -> pd.DataFrame:
    """Return one row for each token of the vocabulary."""
    columns = (report.reference, *(_judged(report, m).logits for m in (REPREFILL, SLIDE)))
    return frame(
        WINDOW_LOGITS,
        zip(
            range(len(vocabulary)),
            vocabulary.tokens,
            *(column.tolist() for column in columns),
            strict=True,
        ),
    )


def slots_schema(layers: int) -> TableSchema:
    """Return the columns of :func:`slots` for a number of layers."""
    errors: Sequence[Column] = [
        number(f"key_error_layer_{layer}", "largest difference of the slot's slid keys")
        for layer in range(layers)
    ]
    return TableSchema(
        "overflow_slots.csv",
        "Each slot after naive sliding, against the full forward over the kept window",
        (
            integer("slot", "slot of the cache, from 0"),
            text("token", "the token it stands for"),
            integer("made_at", "position row under which its key was made"),
            integer("should_be", "its position in the kept window"),
            *errors,
        ),
    )


def slots(vocabulary: Vocabulary, report: OverflowReport) -> pd.DataFrame:
    """Return one row for each slot after naive sliding."""
    outcome, judged = report.outcome(SLIDE), _judged(report, SLIDE)
    errors = judged.key_errors.T.tolist()  # (L, N) -> N x L
    return frame(
        slots_schema(len(judged.key_errors)),
        (
            (slot, vocabulary.tokens[token_id], made_at, slot, *errors[slot])
            for slot, (token_id, made_at) in enumerate(
                zip(outcome.token_ids, outcome.key_positions, strict=True)
            )
        ),
    )


def _judged(report: OverflowReport, method: str) -> Judged:
    judged = report.outcome(method).judged
    if judged is None:  # the two methods that read the input are always judged
        raise ValueError(f"{method} was not judged")
    return judged
