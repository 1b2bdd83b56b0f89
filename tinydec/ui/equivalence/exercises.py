"""Exercises of the equivalence, their answers computed by the core."""

from __future__ import annotations

import random

import numpy as np

from tinydec.corpus import BOS, PATTERNS
from tinydec.model.storage import load_checkpoint
from tinydec.ui.exercise import Task
from tinydec.ui.html import spelled
from tinydec.verification.compare import absolute_difference
from tinydec.verification.faults import DELIBERATE


def draw_error(rng: random.Random) -> Task:
    """Ask for the largest error of two short rows."""
    full = [rng.randint(-400, 400) / 100 for _ in range(4)]
    cached = [value + rng.choice((-1, 1)) * rng.randint(0, 30) / 100 for value in full]
    differences = absolute_difference(np.array(full), np.array(cached))
    answer = float(differences.max())
    rows = (" ".join(spelled(f"{value:.2f}") for value in row) for row in (full, cached))
    return Task(
        "Two logits rows of one prefix, full and cached:\n\n"
        + "".join(f"`{row}`  \n" for row in rows)
        + "\n"
        "What is the largest absolute error?",
        round(answer, 2),
        "Subtract token by token, drop the sign, take the largest. The tokens' order is fixed: "
        "sorting the rows first would compare different tokens.",
        "Differences: " + ", ".join(f"{d:.2f}" for d in differences) + f". Largest: {answer:.2f}.",
        tolerance=0.0051,
    )


def draw_act(rng: random.Random) -> Task:
    """Ask on which prefix a failure cannot be seen."""
    config = load_checkpoint().config
    fault = next(f for f in DELIBERATE if f.name == "positions-reset")
    pattern = (BOS, *rng.choice(PATTERNS))
    lengths = [*rng.sample(range(2, len(pattern) + 1), 2), 1]
    rng.shuffle(lengths)
    choices = {" ".join(pattern[:n]): fault.cannot_act(config, n) for n in lengths}
    answer = next(text for text, reason in choices.items() if reason is not None)
    return Task(
        "A cache gives every input position 0. On which prefix can no comparison notice?",
        answer,
        "Which position would each token of the prefix have in a correct run?",
        f"`{answer}`: {choices[answer]}. Any longer prefix has a token whose position is not 0.",
        tuple(choices),
    )
