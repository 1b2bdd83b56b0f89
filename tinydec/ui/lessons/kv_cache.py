"""KV cache: what the page computes, shows and asks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from tinydec.evidence import kv_tables
from tinydec.generation.generate import generate
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.prefill import prefill
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import digits, prose
from tinydec.ui.lessons.window import window
from tinydec.ui.number_grid import Grid
from tinydec.verification.cache_operations import OWNER, OperationResult, try_operations
from tinydec.verification.cached_run import CachedStep, run_cached
from tinydec.verification.perturbation import Perturbation, perturb_past
from tinydec.verification.row_history import RowHistory, row_histories

_PARTS = (("K", "keys", "key"), ("V", "values", "value"))

#: Pixels of a grid: for each number of a row, and for labels and the gap beside it.
_CELL, _FRAME = 62, 60
_REQUEST = "exercise"


@dataclass(frozen=True)
class Consumed:
    """The inputs of a run: the prompt's tokens and those that were fed back."""

    token_ids: tuple[int, ...]
    prompt_length: int

    @property
    def steps(self) -> int:
        """Steps of the run; step 0 reads the prompt."""
        return len(self.token_ids) - self.prompt_length + 1

    def until(self, step: int) -> tuple[int, ...]:
        """Return the inputs consumed when a step is over."""
        return self.token_ids[: self.prompt_length + step]


@dataclass(frozen=True, eq=False)
class CacheView:
    """The cache after one step.

    Attributes:
        step: what was stored then, and by whom.
        histories: every row from its first copy to this step.
        limit: largest magnitude of any key or value of the whole run.
    """

    step: CachedStep
    histories: tuple[RowHistory, ...]
    limit: float


def consumed(checkpoint: Checkpoint, spec: RunSpec) -> Consumed:
    """Generate the run and return its inputs; the last returned token is never one of them.

    Raises:
        InputError: see :func:`tinydec.generation.generate.new_request`.
    """
    trace = generate(checkpoint, spec)
    return Consumed(trace.consumed_ids, len(trace.prompt_ids))


def cache_view(checkpoint: Checkpoint, spec: RunSpec, inputs: Consumed, step: int) -> CacheView:
    """Run the cached path over the run's inputs and return what it held after a step."""
    steps = run_cached(
        checkpoint.cast(spec.dtype), np.array([inputs.token_ids]), inputs.prompt_length
    )
    last = [getattr(layer, name) for layer in steps[-1].stored for _, name, _ in _PARTS]
    return CacheView(
        step=steps[step],
        histories=row_histories(steps[: step + 1]),
        limit=float(max(np.abs(part).max() for part in last)),
    )


def moves(
    checkpoint: Checkpoint, spec: RunSpec, ids: tuple[int, ...], amount: float
) -> Perturbation:
    """Change each past row in turn; see :func:`perturb_past`."""
    return perturb_past(checkpoint.cast(spec.dtype), ids, amount)


def label(checkpoint: Checkpoint, spec: RunSpec, inputs: Consumed, step: int) -> pd.DataFrame:
    """Fill a cache as the run does up to a step, and return what it says of itself."""
    cast = checkpoint.cast(spec.dtype)
    cache = KVCache(cast, OWNER)
    ids, first = inputs.until(step), inputs.prompt_length
    prefill(cast, cache, [ids[:first]], OWNER)
    for token_id in ids[first:]:
        decode_step(cast, cache, [token_id], OWNER)
    return kv_tables.label(cache)


def operations(
    checkpoint: Checkpoint, spec: RunSpec, ids: tuple[int, ...]
) -> tuple[OperationResult, ...]:
    """Try a cache's operations, keeping all inputs but the last; see :func:`try_operations`."""
    return try_operations(checkpoint.cast(spec.dtype), ids, len(ids) - 1)


# Picture -------------------------------------------------------------------------------------


def cache_grids(
    view: CacheView, inputs: Consumed, layers: range, heads: range
) -> tuple[list[Grid], str]:
    """Return a grid for K and V of each layer and head, new rows marked, and a note.

    Args:
        view: the cache after a step.
        inputs: of the run; rows that are still to come stay empty.
        layers: the layers shown.
        heads: the heads shown.
    """
    step, total = view.step, len(inputs.token_ids)
    width = step.stored[0].keys.shape[3]
    part = window(total, width, step.length_after - 1)
    rows = [str(p) for p in range(part.first, part.end)]
    fresh = range(max(step.length_before, part.first), min(step.length_after, part.end))
    marked = [(p - part.first, c) for p in fresh for c in range(part.columns)]
    grids = []
    for layer in layers:
        for tensor, name, role in _PARTS:
            held = getattr(step.stored[layer], name)[0]  # (B, h, t, d_h) -> (h, t, d_h)
            for head in heads:
                values = np.full((part.end - part.first, part.columns), np.nan, held.dtype)
                there = held[head, part.first : part.end, : part.columns]
                values[: len(there)] = there
                grids.append(
                    Grid(
                        name=f"{tensor}.{layer}.{head}",
                        title=f"layer {layer} · {tensor} · head {head}",
                        values=values,
                        rows=rows,
                        columns=[str(c) for c in range(part.columns)],
                        limit=view.limit,
                        decimals=2,
                        role=role,
                        marked=marked,
                    )
                )
    return grids, part.note


def grid_width(heads: int, d_h: int) -> int | Literal["stretch"]:
    """Return the width at which K and V of one layer stand in one row, if they fit."""
    wanted = 2 * heads * (_FRAME + _CELL * min(d_h, 8))
    return wanted if wanted <= 1100 else "stretch"


# Words ---------------------------------------------------------------------------------------


def numbers(checkpoint: Checkpoint, view: CacheView) -> str:
    """Return the contract's formula with the numbers of this step."""
    config, t = checkpoint.config, view.step.length_after
    scalars = sum(h.scalars for h in view.histories)
    return (
        f"t = {t}: K, V of each layer {view.step.stored[0].keys.shape}\n"
        f"2 · {config.n_layer} · 1 · {config.n_head} · {t} · {config.d_h} = {digits(scalars)} "
        f"numbers, {digits(sum(layer.nbytes for layer in view.step.stored))} bytes"
    )


def history_text(view: CacheView) -> str:
    """Say what the comparison of rows with their first copies found."""
    compared = sum(h.compared_steps * h.scalars for h in view.histories)
    changed = sum(len(h.changed_steps) for h in view.histories)
    if not compared:
        return "No later step has run yet, so there is nothing to compare."
    verdict = "every one has the same bits" if not changed else f"{changed} comparisons differ"
    return (
        f"After each later step every row is compared with the copy taken when it was written: "
        f"{digits(compared)} numbers so far, and {verdict}."
    )


def moves_text(found: Perturbation) -> str:
    """Say what the perturbation found, with its numbers."""
    keys = max(move.key_logits for move in found.moves)
    scores = max(move.query_scores for move in found.moves)
    return (
        f"The decode step at position {found.position} is computed again with a query row for "
        f"every position. Adding {found.amount:g} to a past query moves that query's own scores "
        f"by up to {digits(scores, 3)}, and the next logits by {digits(found.largest_query_move)}. "
        f"Adding it to a past key moves the next logits by up to {digits(keys, 3)}."
    )


def refusals_text(found: Sequence[OperationResult]) -> str:
    """Return the refusals in their own words."""
    lines = [f"- {one.operation}: *{prose(one.message)}*" for one in found if one.message]
    return "The refusals in their own words:\n\n" + "\n".join(lines)


def _inputs(count: int) -> str:
    return f"{count} input{'' if count == 1 else 's'}"


# Exercises -----------------------------------------------------------------------------------


def operation_task(checkpoint: Checkpoint) -> Callable[[random.Random], Task]:
    """Return the exercise: fill, truncate, decode; which position comes next?"""

    def draw(rng: random.Random) -> Task:
        config = checkpoint.config
        context = min(config.n_positions, 9)
        filled = rng.randint(min(2, context), context)
        keep = rng.randint(min(1, filled - 1), filled - 1)
        more = rng.randint(min(1, context - keep), context - keep)
        cache = KVCache(checkpoint, _REQUEST)
        ids = [rng.randrange(config.vocab_size) for _ in range(filled + more)]
        prefill(checkpoint, cache, ids[:filled], _REQUEST)
        cache.truncate(keep)
        for token_id in ids[filled:]:
            decode_step(checkpoint, cache, [token_id], _REQUEST)
        return Task(
            f"A cache holds **{_inputs(filled)}**. It is truncated to **{keep}**, then **{more}** "
            f"more {'is' if more == 1 else 'are'} decoded. At which position would the next "
            "input stand?",
            cache.length,
            "The next position is the number of inputs that the cache holds.",
            f"${keep} + {more} = {cache.length}$ positions are taken, counted from 0, so the next "
            f"is {cache.length}"
            + (
                f", which this decoder refuses: it has {config.n_positions} positions."
                if cache.length == config.n_positions
                else "."
            ),
        )

    return draw


def discard_task(checkpoint: Checkpoint) -> Callable[[random.Random], Task]:
    """Return the exercise: which past row could be thrown away? The context holds 2 or more."""

    def draw(rng: random.Random) -> Task:
        config = checkpoint.config
        length = rng.randint(min(3, config.n_positions), min(config.n_positions, 6))
        ids = [rng.randrange(config.vocab_size) for _ in range(length)]
        found = perturb_past(checkpoint, ids, 1.0)
        places = [rng.randrange(length - 1) for _ in range(3)]
        effects = {
            f"the key of position {places[0]}": found.moves[places[0]].key_logits,
            f"the value of position {places[1]}": found.moves[places[1]].value_logits,
            f"the query of position {places[2]}": found.moves[places[2]].query_logits,
        }
        choices = list(effects)
        rng.shuffle(choices)
        answer = min(effects, key=lambda choice: effects[choice])
        lines = "\n".join(
            f"- {choice}: the largest move is {digits(effects[choice], 3)}" for choice in choices
        )
        return Task(
            f"The cache holds **{_inputs(length - 1)}**, and one more is decoded. Which of these "
            "could be changed in every layer without moving any of the next logits?",
            answer,
            "Ask what the new query reads: it is compared with keys and averages values.",
            f"Adding 1 to each of them, measured just now:\n\n{lines}\n\nA query is compared with "
            "keys once, in the pass that made it. No later pass reads it.",
            tuple(choices),
        )

    return draw
