"""Prefill and decode: what the page computes, says and asks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from tinydec.evidence import phase_tables
from tinydec.figures.phases import MARKS, Pairs
from tinydec.generation.generate import generate
from tinydec.memory import StepWork, decode_work, uncached_work
from tinydec.memory.measured import decoder_sizes
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import digits
from tinydec.verification.phases import (
    Pass,
    ShapeRow,
    Split,
    pass_work,
    run_phases,
    shape_rows,
    split_phases,
)
from tinydec.verification.prefixes import controlled_prefixes


@dataclass(frozen=True)
class Plan:
    """Which tokens go through which phase, and what the visitor has to know about it."""

    split: Split
    note: str


@dataclass(frozen=True, eq=False)
class View:
    """The pass over the prompt beside one later pass.

    Attributes:
        first: the pass over the prompt.
        later: the pass beside it; None where the context has room for one input alone.
        step: number of the later pass.
        rows: shapes of every tensor.
        passes: one row for each pass.
        work: multiply-adds by part.
        hidden: multiply-adds that the masked product of the first pass throws away.
    """

    first: Pass
    later: Pass | None
    step: int
    rows: tuple[ShapeRow, ...]
    passes: pd.DataFrame
    work: pd.DataFrame
    hidden: int


def plan(checkpoint: Checkpoint, spec: RunSpec) -> Plan:
    """Generate the run and split it into its phases.

    Raises:
        InputError: see :func:`tinydec.generation.generate.new_request`.
    """
    trace = generate(checkpoint, spec)
    context, note = checkpoint.config.n_positions, ""
    split = split_phases(trace.prompt_ids, trace.returned_ids, context)
    if split.decode_steps == 0:
        note = f"The context holds {context} input, so no decode step follows the prefill."
    elif not split.returned:
        note = (
            f"The prompt fills the context ({context} of {context}), so no returned token can be "
            f"read. Shown instead: prefill of the first {split.prefill_length}, then the prompt's "
            "last token as a decode step."
        )
    elif len(trace.steps) == 1:
        note = (
            f"This run stops after the prefill ({trace.stop_reason}). The decode step shown is "
            "the one that would read the returned token."
        )
    return Plan(split, note)


def view(checkpoint: Checkpoint, spec: RunSpec, split: Split, step: int) -> View:
    """Run the phases of a split and put the first beside pass number ``step``."""
    passes = run_phases(checkpoint.cast(spec.dtype), split, spec.cache)
    config = checkpoint.config
    first = passes[0]
    shown = min(max(step, 1), len(passes) - 1)
    later = passes[shown] if shown else None
    first_work = pass_work(config, first)
    later_work = None if later is None else pass_work(config, later)
    return View(
        first=first,
        later=later,
        step=shown,
        rows=shape_rows(first.activations, None if later is None else later.activations),
        passes=phase_tables.passes(checkpoint.vocabulary, config, passes),
        work=phase_tables.work(first_work, later_work, _other_way(checkpoint, spec, later)),
        hidden=first_work.dense.total - first_work.visible.total,
    )


def _other_way(checkpoint: Checkpoint, spec: RunSpec, later: Pass | None) -> StepWork | None:
    if later is None:
        return None
    other = uncached_work if spec.cache else decode_work
    return other(decoder_sizes(checkpoint.config), later.keys - 1)


# Words ---------------------------------------------------------------------------------------


def first_name(view: View) -> str:
    """Return what the pass over the prompt is called."""
    return f"{'full pass' if view.first.phase == 'full' else 'prefill'} of {view.first.rows}"


def later_name(view: View) -> str:
    """Return what the later pass is called."""
    if view.later is None:
        return "no later pass"
    if view.later.phase == "full":
        return f"full pass of {view.later.rows}"
    return f"decode step {view.step}"


def numbers(view: View) -> str:
    """Return the contract's formula with the shapes of this run, both passes."""
    found = {row.tensor: row for row in view.rows}
    q, keys = found["h.0.q"], found["h.0.keys"]
    text = f"{first_name(view)}: q {_unbroken(q.first)}  K, V {_unbroken(keys.first)}"
    if q.later is None or keys.later is None:
        return text
    later = f"q {_unbroken(q.later)}  K, V {_unbroken(keys.later)}"
    return f"{text}\n{later_name(view)}: {later}"


def _unbroken(shape: tuple[int, ...]) -> str:
    return str(shape).replace(" ", "\u00a0")


def panels(view: View) -> tuple[Pairs, Pairs | None]:
    """Return what the picture shows; titles are short enough for a phone."""
    if view.later is None:
        return _panel("prefill", view.first), None
    if view.later.phase == "full":
        names = (f"full {view.first.rows}", f"full {view.later.rows}")
    else:
        names = ("prefill", f"decode {view.step}")
    return _panel(names[0], view.first), _panel(names[1], view.later)


def _panel(name: str, found: Pass) -> Pairs:
    visible = found.visible()
    return Pairs(f"{name}: {_count(int(visible.sum()), 'pair')}", visible, found.start)


def _count(number: int, noun: str) -> str:
    return f"{digits(number)} {noun}{'' if number == 1 else 's'}"


def legend_html() -> str:
    """Return the legend of the picture: it wraps on a phone, where the chart's own would not."""
    items = "".join(
        f'<li><span aria-hidden="true" style="color: var(--td-{role})">{sign}</span> '
        f"{escape(name)}</li>"
        for name, (_, sign, role) in MARKS.items()
    )
    style = "display:flex;flex-wrap:wrap;gap:0 1.2rem;list-style:none;margin:0;padding:0"
    return f'<ul aria-label="Legend" style="{style};font-size:0.85rem">{items}</ul>'


def alt(view: View) -> str:
    """Return the picture's message for a screen reader."""
    text = f"{first_name(view)}: {int(view.first.visible().sum())} query-key pairs in a triangle"
    if view.later is None:
        return text
    pairs = int(view.later.visible().sum())
    kind = "triangle again" if view.later.phase == "full" else "single row"
    return f"{text}; {later_name(view)}: {pairs} pairs in a {kind}"


def look_for(view: View) -> str:
    """Say what to look for in the picture, with its numbers."""
    if view.later is None:
        return "the triangle: every query sees itself and what came before it."
    if view.later.phase == "full":
        return (
            f"the second triangle. Without a cache the pass computes all {view.later.rows} rows "
            f"again, though only the last one is new."
        )
    start = (
        "one row instead of a triangle. "
        if view.first.rows > 1
        else ("the row of the step; a prompt of one token has no triangle to compare it with. ")
    )
    return start + (
        f"The step has a single query, which reads "
        f"{_count(view.later.start, 'key')} from the cache and 1 key of its own; each further "
        "step makes that row one longer."
    )


def work_text(view: View) -> str:
    """Say what the work of both passes comes to."""
    total = view.work.iloc[-1]
    text = f"Multiply-adds of the {first_name(view)}: {digits(total['first'])}"
    if view.later is not None:
        other = "with" if view.later.phase == "full" else "without"
        text += (
            f"; of the {later_name(view)}: {digits(total['later'])}; of the same step {other} a "
            f"cache: {digits(total['other_way'])}"
        )
    if view.hidden:
        text += (
            f". The first pass multiplies {digits(view.hidden)} more for pairs that the mask then "
            "hides"
        )
    return text + "."


def longer_prompt(checkpoint: Checkpoint) -> str | None:
    """Return a prompt of three tokens to try, if the context leaves room for a step after it."""
    for case in controlled_prefixes(checkpoint):
        if case.length == 3 and checkpoint.config.n_positions > 3:
            return case.tokens
    return None


# Exercise ------------------------------------------------------------------------------------


def pair_task(checkpoint: Checkpoint) -> Callable[[random.Random], Task]:
    """Return the exercise: count the pairs of a prefill and some decode steps."""

    def draw(rng: random.Random) -> Task:
        config = checkpoint.config
        total = rng.randint(min(2, config.n_positions), min(config.n_positions, 9))
        prompt = rng.randint(1, max(total - 1, 1))
        ids = tuple(rng.randrange(config.vocab_size) for _ in range(total))
        passes = run_phases(checkpoint, Split(ids, prompt, True))
        pairs = [int(one.visible().sum()) for one in passes]
        scores = np.concatenate([b.scores for b in passes[0].activations.blocks])  # (L, h, P, P)
        heads = scores.shape[0] * scores.shape[1]
        steps = total - prompt
        rest = " + ".join(map(str, pairs[1:]))
        return Task(
            f"A prompt of **{prompt}** is prefilled, then **{_count(steps, 'decode step')}** "
            f"follow{'s' if steps == 1 else ''}. The decoder has {config.n_layer} layers of "
            f"{config.n_head} heads. How many query-key pairs does the causal mask let through in "
            "all of them together?",
            sum(pairs) * heads,
            f"Prefill is a triangle with {prompt} rows. A decode step is one row: as many pairs "
            "as there are keys, its own among them.",
            f"Prefill: ${prompt} \\cdot {prompt + 1} / 2 = {pairs[0]}$."
            + (f" Decode: ${rest} = {sum(pairs[1:])}$." if steps else "")
            + f" Times ${heads}$ (layers times heads): ${sum(pairs)} \\cdot {heads} = "
            f"{sum(pairs) * heads}$.",
        )

    return draw
