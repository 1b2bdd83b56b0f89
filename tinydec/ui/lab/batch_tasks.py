"""Batches and stopping: the exercises, on batches drawn anew."""

from __future__ import annotations

import random

from tinydec.generation.batch import run_batch
from tinydec.generation.batch_trace import BatchTrace
from tinydec.generation.schedule import BatchRequest
from tinydec.generation.stopping import STOP_REASONS
from tinydec.generation.trace import DECODE
from tinydec.model.batch_cache import LEFT, RIGHT
from tinydec.model.batch_plan import Plan
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import Policy
from tinydec.ui.exercise import Task
from tinydec.ui.html import code
from tinydec.ui.lab.batches import listed


def _drawn_batch(checkpoint: Checkpoint, rng: random.Random, layout: str) -> BatchTrace:
    context, size = checkpoint.config.n_positions, checkpoint.config.vocab_size
    longest = min(max(context - 1, 1), 6)
    lengths = [1, longest, rng.randint(1, longest)]
    rng.shuffle(lengths)
    requests = []
    for name, length in zip("pqr", lengths, strict=True):
        ids = tuple(rng.randrange(size) for _ in range(length))
        most = rng.choice((1, 2, 3, None)) if context <= 8 else rng.choice((1, 2, 3, 4))
        requests.append(BatchRequest(name, ids, Policy(), max_new_tokens=most))
    return run_batch(checkpoint, requests, (), layout)


def position_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for the position of one token of a padded batch."""
    layout = rng.choice((LEFT, LEFT, LEFT, RIGHT))
    trace = _drawn_batch(checkpoint, rng, layout)
    every = [(step, n) for step in trace.steps for n in range(len(step.request_ids))]
    decoded = [place for place in every if place[0].phase == DECODE]
    tempting = [  # where the slot would be the wrong answer
        [(step, n) for step, n in places if len(set(_last(step.plan, n))) == 2]
        for places in (decoded, every)
    ]
    step, number = rng.choice(tempting[0] or tempting[1] or decoded or every)
    name = step.request_ids[number]
    row = trace.row(name)
    record = row.trace.steps[row.batch_steps.index(step.index)]
    slot, answer = _last(step.plan, number)
    lengths = ", ".join(f"{r.request_id}: {len(r.request.prompt_ids)}" for r in trace.rows)
    token = checkpoint.vocabulary.tokens[record.consumed_ids[-1]]
    return Task(
        question=(
            f"Three prompts stand in one batch, padded on the {layout} (tokens each: {lengths}). "
            f"In batch step {step.index} row `{name}` has consumed {record.length_after - 1} real "
            f"token{'s' * (record.length_after != 2)} and now reads {code(token)}, whose key and "
            f"value go to slot {slot}. Which position does {code(token)} get?"
        ),
        answer=answer,
        hint="Padding takes up slots. Does it take up positions?",
        solution=(
            f"Position {answer}: the number of real tokens that the row consumed before. The slot "
            "also counts padding, so it says nothing about the position."
        ),
    )


def _last(plan: Plan, number: int) -> tuple[int, int]:
    """Return slot and position of the last real query of one row."""
    real = ~plan.query_pads[number] & (plan.query_slots[number] >= 0)
    slots, positions = plan.query_slots[number][real], plan.positions[number][real]
    return int(slots[-1]), int(positions[-1])


def stop_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for the stop reason that one row of a batch records."""
    trace = _drawn_batch(checkpoint, rng, LEFT)
    row = rng.choice(trace.rows)
    vocabulary, context = checkpoint.vocabulary, checkpoint.config.n_positions
    lines = "\n".join(
        f"| `{r.request_id}` | {_cell(vocabulary.decode(r.request.prompt_ids))} "
        f"| {r.request.max_new_tokens or 'no limit'} "
        f"| {_cell(vocabulary.decode(r.trace.returned_ids))} |"
        for r in trace.rows
    )
    others = [r for r in trace.rows if r.batch_steps[-1] > row.batch_steps[-1]]
    still = (
        f"{listed([r.request_id for r in others])} still ran at that moment, which changes nothing."
        if others
        else "No other row ran longer."
    )
    return Task(
        question=(
            f"The context holds {context} inputs. A batch ran to its end:\n\n"
            "| row | prompt | new tokens at most | returned |\n|--|--|--|--|\n"
            f"{lines}\n\nWhich stop reason does row `{row.request_id}` record?"
        ),
        answer=row.stop_reason or "",
        hint=(
            "Judge the row by itself: is its last token `<eos>`? Had it consumed the whole "
            "context? Had it returned as many tokens as it was allowed? In this order."
        ),
        solution=(
            f"`{row.stop_reason}`: it consumed {len(row.trace.consumed_ids)} of {context} inputs "
            f"and returned {len(row.trace.returned_ids)} tokens. {still}"
        ),
        choices=STOP_REASONS,
    )


def _cell(text: str) -> str:
    return code(text, in_table=True)
