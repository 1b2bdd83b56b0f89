"""Positions: what the page computes, shows and asks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinydec.figures.log_axis import short
from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.guards import ContextOverflowError
from tinydec.model.prefill import prefill
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import Card, code, digits, prose
from tinydec.ui.lessons.readable import joined
from tinydec.ui.lessons.window import window
from tinydec.ui.number_grid import Grid
from tinydec.verification.cached_run import run_cached
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.overflow import (
    REFUSE,
    SLIDE,
    OverflowReport,
    fill_context,
    overflow,
    with_context,
)

_REQUEST = "exercise"


@dataclass(frozen=True, eq=False)
class PositionRun:
    """A run, and what its inputs read from the two embedding tables.

    Attributes:
        trace: the run.
        token_rows: (t, d) rows of the token table, read by the cached path.
        position_rows: (t, d) rows of the position table, read by it.
        embedding: (t, d) their sums, which enter layer 0.
    """

    trace: GenerationTrace
    token_rows: NDArray[np.floating]
    position_rows: NDArray[np.floating]
    embedding: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class OverflowView:
    """One input more than the context holds.

    Attributes:
        report: the three ways.
        tolerance: largest accepted difference of a logit.
        added: tokens that had to be generated greedily, past the run's end, to fill the context.
    """

    report: OverflowReport
    tolerance: float
    added: int

    @property
    def rows(self) -> int:
        """N, the inputs that fit."""
        return len(self.report.filled)


def position_run(checkpoint: Checkpoint, spec: RunSpec) -> PositionRun:
    """Generate the run and read its inputs once more, with every intermediate.

    Raises:
        InputError: see :func:`tinydec.generation.generate.new_request`.
    """
    trace = generate(checkpoint, spec)
    steps = run_cached(
        checkpoint.cast(spec.dtype), np.array([trace.consumed_ids]), len(trace.prompt_ids)
    )
    found = [step.activations for step in steps]
    return PositionRun(
        trace,
        np.concatenate([a.token_embedding for a in found]),  # steps x (P, d) -> (t, d)
        np.concatenate([a.position_embedding for a in found]),
        np.concatenate([a.embedding for a in found]),
    )


def overflow_view(
    checkpoint: Checkpoint, spec: RunSpec, token_ids: tuple[int, ...]
) -> OverflowView:
    """Fill the context with a run's tokens and try one input more."""
    cast = checkpoint.cast(spec.dtype)
    ids = fill_context(cast, token_ids)
    tolerance = TOLERANCES[spec.dtype] if spec.tolerance is None else spec.tolerance
    return OverflowView(overflow(cast, ids), tolerance, len(ids) - len(token_ids))


# Picture -------------------------------------------------------------------------------------


def embedding_grids(
    checkpoint: Checkpoint, found: PositionRun, step: int
) -> tuple[list[Grid], str]:
    """Return token rows, the position table and their sums, this step's rows marked, and a note.

    Args:
        checkpoint: supplies the position table in the file's number format.
        found: the run.
        step: rows consumed later stay empty; of the position table all rows stand there.
    """
    record = found.trace.steps[step]
    rows = checkpoint.config.n_positions
    part = window(rows, checkpoint.config.n_embd, record.length_after - 1)
    shape = (part.end - part.first, part.columns)
    ids, tokens = found.trace.consumed_ids, checkpoint.vocabulary.tokens
    read = range(part.first, min(record.length_after, part.end))
    numbers = [str(p) for p in range(part.first, part.end)]
    named = [f"{p} {tokens[ids[p]][:8]}" if p in read else f"{p}" for p in map(int, numbers)]
    fresh = range(max(record.length_before, part.first), read.stop)
    marked = [(p - part.first, c) for p in fresh for c in range(part.columns)]
    columns = [str(c) for c in range(part.columns)]
    table = checkpoint.weights.wpe[part.first : part.end, : part.columns]
    sums = found.embedding
    limit = float(max(np.abs(a).max() for a in (found.token_rows, table, sums)))

    def filled(values: NDArray[np.floating]) -> NDArray[np.floating]:
        cells = np.full(shape, np.nan, values.dtype)
        cells[: len(read)] = values[part.first : read.stop, : part.columns]
        return cells

    grids = (
        ("wte", "token rows read", filled(found.token_rows), named),
        ("wpe", f"position table: {rows} rows", table, numbers),
        ("embedding", "sum, into layer 0", filled(sums), numbers),
    )
    return [
        Grid(name, title, values, labels, columns, limit, 2, "", marked)
        for name, title, values, labels in grids
    ], part.note


def chip_notes(found: PositionRun) -> list[str]:
    """Return the text under each token of the run: its position, or that it has none."""
    consumed = len(found.trace.consumed_ids)
    total = len(found.trace.token_ids)
    return [f"position {p}" if p < consumed else "not consumed" for p in range(total)]


# Words ---------------------------------------------------------------------------------------


def numbers(checkpoint: Checkpoint, found: PositionRun, step: int) -> str:
    """Return the contract's formula with the numbers of this step."""
    record = found.trace.steps[step]
    rows = checkpoint.config.n_positions
    end = f"next position = {record.length_after}"
    if record.length_after == rows:
        end = f"no row {rows}, the last is {rows - 1}"
    read = joined(tuple(map(int, record.positions)))
    return (
        f"consumed before step {step}: {record.length_before}, reads row {read}\n"
        f"consumed after it: {record.length_after}, {end}"
    )


def limit_text(checkpoint: Checkpoint, found: PositionRun) -> str:
    """Say how many tokens were consumed and returned, and what the limit leaves."""
    trace, rows = found.trace, checkpoint.config.n_positions
    consumed, returned = len(trace.consumed_ids), len(trace.returned_ids)
    text = (
        f"At the end of the run: {consumed} input{'s' * (consumed != 1)} consumed, {returned} "
        f"token{'s' * (returned != 1)} returned, the last of which is never consumed. "
    )
    if consumed == rows:
        return text + (
            f"The last input stands at position {rows - 1}, the table's last row. Its logits still "
            f"return a token, but that token would need row {rows}."
        )
    return text + f"The run stopped ({trace.stop_reason}) with {rows - consumed} rows unread."


def overflow_cards(view: OverflowView) -> list[Card]:
    """Return one card for each way."""
    cards = []
    for outcome in view.report.outcomes:
        if outcome.method == REFUSE:
            verdict = "cache as it was" if outcome.unchanged else "cache changed"
            cards.append(Card("Refuse", "no logits", verdict, outcome.unchanged))
        elif outcome.judged is not None:
            error = outcome.judged.max_abs_error
            good = error <= view.tolerance
            verdict = f"{'within' if good else 'beyond'} {short(view.tolerance)}"
            name = outcome.method.capitalize()
            cards.append(Card(name, f"off by {digits(error, 3)}", verdict, good))
    return cards


def overflow_text(view: OverflowView, tokens: Sequence[str]) -> str:
    """Say which inputs fill the context and which comes on top."""
    report = view.report
    text = (
        f"The first {view.rows} inputs fill the context. Input number {view.rows + 1} has no "
        "position row. Refuse it; or drop the oldest slot and keep the other keys as they are "
        "(naive sliding); or drop the oldest token and read the rest again from position 0 "
        "(re-prefill). The yardstick is a full forward over the tokens that are kept"
    )
    if view.added:
        text += f"; the last {view.added} of them were added greedily, to get past the limit"
    if len(report.kept) <= 8:
        kept = " ".join(tokens[i] for i in report.kept)
        text += f": {code(kept)}"
    return text + "."


def slide_text(view: OverflowView) -> str:
    """Say why naive sliding goes wrong and what the refusal says, with the numbers."""
    refuse, slide = view.report.outcome(REFUSE), view.report.outcome(SLIDE)
    text = (
        f"After naive sliding the slots hold keys made at positions {joined(slide.key_positions)}; "
        f"in the kept window they stand at {joined(tuple(range(view.rows)))}. "
    )
    if slide.judged is not None:
        error = digits(slide.judged.max_abs_error, 3)
        text += (
            f"Greedy still selects the same token, so only the logits tell: they are off by up to "
            f"{error}. "
            if slide.judged.same_argmax
            else f"Greedy selects another token, and the logits are off by up to {error}. "
        )
    return f"{text}The refusal says: *{prose(refuse.refusal or '')}*."


# Exercises -----------------------------------------------------------------------------------


def returned_task(checkpoint: Checkpoint) -> Callable[[random.Random], Task]:
    """Return the exercise: how many tokens can be returned before the context ends the run?"""

    def draw(rng: random.Random) -> Task:
        rows = rng.randint(1, min(checkpoint.config.n_positions, 9))
        prompt = rng.randint(1, rows)
        short = with_context(checkpoint, rows)
        cache = KVCache(short, _REQUEST)
        prefill(short, cache, [0] * prompt, _REQUEST)
        returned = 1
        try:
            while True:
                decode_step(short, cache, [0], _REQUEST)
                returned += 1
        except ContextOverflowError:
            pass
        return Task(
            f"A decoder has **{rows}** position rows and no stop token. Its prompt has "
            f"**{prompt}** {'token' if prompt == 1 else 'tokens'}. How many tokens does it return "
            "before the context ends the run?",
            returned,
            "Every pass returns one token. Count the passes: the prefill, and one for each "
            "position that is left.",
            f"The prefill uses positions 0 to {prompt - 1} and returns 1. "
            f"{rows} − {prompt} = {rows - prompt} positions are left, and each returns 1 more: "
            f"${rows - prompt} + 1 = {returned}$. The last one is never consumed.",
        )

    return draw


def slide_task(checkpoint: Checkpoint) -> Callable[[random.Random], Task]:
    """Return the exercise: under which position was a slot's key made, after naive sliding?"""

    def draw(rng: random.Random) -> Task:
        most = min(9, checkpoint.config.n_positions)
        rows = rng.randint(min(2, most), most)
        ids = [rng.randrange(checkpoint.config.vocab_size) for _ in range(rows + 1)]
        outcome = overflow(with_context(checkpoint, rows), ids).outcome(SLIDE)
        slot = rng.randrange(rows)
        made = outcome.key_positions[slot]
        return Task(
            f"A context of **{rows}** inputs is full, with one key in each slot. Input number "
            f"{rows + 1} comes, and the cache slides naively: it drops slot 0, moves the others "
            f"down by one and appends the new key. At which position was the key made that now "
            f"stands in slot **{slot}**?",
            made,
            "Moving a key does not compute it again.",
            (
                f"Slot {slot} is the new one. Position {rows} does not exist, so the new input "
                f"reads the last row: {made}."
                if slot == rows - 1
                else f"It stood in slot {slot + 1} before, where it was made at position {made}."
            ),
        )

    return draw
