"""Exercises on one decode step: a score and an attention weight, from the core's own numbers."""

from __future__ import annotations

import math
import random

from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import code
from tinydec.ui.lessons.decode_step import lesson
from tinydec.verification.explain import Element, Recording
from tinydec.verification.prefixes import controlled_prefixes


def _prefix_run(checkpoint: Checkpoint, rng: random.Random) -> tuple[Recording, tuple[str, ...]]:
    """Return a prefix of at least two tokens where there is one, prefilled with a cache."""
    cases = [case.token_ids for case in controlled_prefixes(checkpoint)]
    ids = rng.choice([case for case in cases if len(case) > 1] or cases)
    tokens = tuple(checkpoint.vocabulary.tokens[i] for i in ids)
    spec = RunSpec(prompt=tokens, max_new_tokens=1)
    return lesson(checkpoint, spec).recording, tokens


def weight_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for one attention weight from a row of scores."""
    recording, tokens = _prefix_run(checkpoint, rng)
    config = checkpoint.config
    layer, head = rng.randrange(config.n_layer), rng.randrange(config.n_head)
    query, key = len(tokens) - 1, rng.randrange(len(tokens))
    scores = [
        recording.value(Element(0, f"h.{layer}.scores", query, i, head)) for i in range(query + 1)
    ]
    answer = recording.value(Element(0, f"h.{layer}.attention", query, key, head))
    given = ", ".join(f"{score:.3f}" for score in scores)
    exponentials = [math.exp(score - max(scores)) for score in scores]
    written = " + ".join(f"{e:.3f}" for e in exponentials)
    return Task(
        f"Layer {layer}, head {head}: after {code(' '.join(tokens))} the last query's scores "
        f"against positions 0 to {query} are {given}. Which attention weight does position {key} "
        "get? (Three decimals.)",
        answer,
        "Subtract the largest score, take the exponential of each, divide by their sum.",
        f"The largest score is {max(scores):.3f}; the exponentials are {written} = "
        f"{sum(exponentials):.3f}. Position {key}: {exponentials[key]:.3f} / "
        f"{sum(exponentials):.3f} = **{answer:.3f}**.",
        tolerance=0.002,
    )


def score_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for one score from a query and a cached key."""
    recording, tokens = _prefix_run(checkpoint, rng)
    config = checkpoint.config
    layer, head = rng.randrange(config.n_layer), rng.randrange(config.n_head)
    query, key = len(tokens) - 1, rng.randrange(len(tokens))
    q = [recording.value(Element(0, f"h.{layer}.q", query, i, head)) for i in range(config.d_h)]
    k = [recording.value(Element(0, f"h.{layer}.keys", key, i, head)) for i in range(config.d_h)]
    answer = recording.value(Element(0, f"h.{layer}.scores", query, key, head))
    products = " + ".join(f"({a:.3f})({b:.3f})" for a, b in zip(q, k, strict=True))
    return Task(
        f"Layer {layer}, head {head}, prefix {code(' '.join(tokens))}: the query at position "
        f"{query} is ({', '.join(f'{x:.3f}' for x in q)}), the cached key at position {key} is "
        f"({', '.join(f'{x:.3f}' for x in k)}). What is the score? (Two decimals.)",
        answer,
        f"Multiply component by component, add, and divide by √d_h = √{config.d_h}.",
        f"({products}) / √{config.d_h} = **{answer:.3f}**.",
        tolerance=0.01,
    )
