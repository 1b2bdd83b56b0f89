"""Exercises on shapes: read off the arrays of a pass that was run for the question."""

from __future__ import annotations

import math
import random
from itertools import permutations

import numpy as np

from tinydec.model.checkpoint import Checkpoint
from tinydec.ui.exercise import Task
from tinydec.verification.cached_run import CachedStep, run_cached
from tinydec.verification.phases import axes_of

#: Tensors of a layer that the question may be about, and what they hold.
_TENSORS = {
    "q": "the queries",
    "k": "the keys that the pass makes",
    "keys": "the keys that attention reads",
    "scores": "the scores",
    "attention": "the attention weights",
    "mix": "the mixed values of each head",
}
_LARGEST_BATCH = 3


def _drawn_pass(checkpoint: Checkpoint, rng: random.Random) -> tuple[CachedStep, int]:
    """Return a prefill or a decode step, and B."""
    config = checkpoint.config
    batch = rng.randint(1, _LARGEST_BATCH)
    length = rng.randint(min(2, config.n_positions), min(config.n_positions, 9))
    prompt = rng.randint(1, max(length - 1, 1))
    ids = [[rng.randrange(config.vocab_size) for _ in range(length)] for _ in range(batch)]
    return rng.choice(run_cached(checkpoint, np.array(ids), prompt)), batch


def shape_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for the shape of a tensor in a prefill or a decode step."""
    step, batch = _drawn_pass(checkpoint, rng)
    config, layer = checkpoint.config, rng.randrange(checkpoint.config.n_layer)
    name = rng.choice(list(_TENSORS))
    found = getattr(step.activations.blocks[layer], name).shape
    rows = step.length_after - step.length_before
    answer = _shown(found)
    choices = [answer, *(shape for shape in _mistakes(found, step) if shape != answer)][:4]
    rng.shuffle(choices)
    did = (
        f"prefills **{rows}** {'position' if rows == 1 else 'positions'}"
        if step.phase == "prefill"
        else f"decodes one token with **{step.length_before}** already in the cache"
    )
    return Task(
        f"A decoder has **{config.n_head}** heads of width **{config.d_h}**. It {did}, for "
        f"**{batch}** {'request' if batch == 1 else 'requests side by side'}. What is the shape of "
        f"`{name}` ({_TENSORS[name]}) in one layer?",
        answer,
        "Ask four things in order: how many requests, how many heads, how many rows does this "
        "pass compute or read, and how wide is a row?",
        f"`{name}` has the axes {axes_of(f'h.{layer}.{name}')} with B = {batch}, "
        f"h = {config.n_head}, P = {rows} new, t = {step.length_after} in the cache afterwards, "
        f"d_h = {config.d_h}: **{answer}**. A decode step is a pass with P = 1.",
        tuple(choices),
    )


def _mistakes(shape: tuple[int, ...], step: CachedStep) -> list[str]:
    """Return wrong shapes: rows taken for the cached length, and axes in another order."""
    batch, heads, rows, width = shape
    new, held = step.length_after - step.length_before, step.length_after
    likely = [
        (batch, heads, held if rows == new else new, width),
        (batch, rows, heads, width),
        (batch, heads, width, rows),
        (batch, heads, held + 1, width),
        (batch, heads, rows, width * heads),
    ]
    others = [*permutations(shape), (batch + 1, heads, rows, width)]
    return list(dict.fromkeys(_shown(wrong) for wrong in (*likely, *others)))


def _shown(shape: tuple[int, ...]) -> str:
    return f"({', '.join(str(size) for size in shape)})"


def written_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask how many numbers one pass writes to the caches of all layers."""
    step, batch = _drawn_pass(checkpoint, rng)
    config = checkpoint.config
    rows = step.length_after - step.length_before
    written = sum(math.prod(b.k.shape) + math.prod(b.v.shape) for b in step.activations.blocks)
    did = f"A prefill of **{rows}**" if step.phase == "prefill" else "A decode step of **1**"
    return Task(
        f"{did} {'position' if rows == 1 else 'positions'} runs for **{batch}** "
        f"{'request' if batch == 1 else 'requests'} in a decoder of **{config.n_layer}** "
        f"{'layer' if config.n_layer == 1 else 'layers'}, **{config.n_head}** heads and head width "
        f"**{config.d_h}**. How many numbers does it write into all caches together?",
        written,
        "One new position leaves one key and one value in each layer and head. What is already "
        "in the cache is not written again.",
        f"$2 \\cdot L \\cdot B \\cdot h \\cdot P \\cdot d_h = 2 \\cdot {config.n_layer} \\cdot "
        f"{batch} \\cdot {config.n_head} \\cdot {rows} \\cdot {config.d_h} = {written}$. It does "
        f"not depend on the {step.length_before} positions that were there before.",
    )
