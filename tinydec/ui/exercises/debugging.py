"""Exercises on debugging: faults switched on in the shipped model, and where they show first."""

from __future__ import annotations

import random
from functools import partial

import numpy as np

from tinydec.generation.trace import snapshot
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.ui.checkpoints import frozen_checkpoint
from tinydec.ui.exercise import Task
from tinydec.ui.html import code
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.equivalence import compare_split
from tinydec.verification.faults import fault_by_id
from tinydec.verification.lab.fault import Fault
from tinydec.verification.prefixes import PrefixCase, controlled_prefixes

#: Faults whose first difference can be reasoned out: name, and the reason in a sentence.
REASONS = {
    "positions-reset": "The position row is the first thing read by position, before any layer.",
    "key-value-swapped": "Keys are right; the values of layer 0 are the first wrong numbers.",
    "wrong-layer": "Layer 0 is untouched; layer 1 reads keys that are not its own.",
    "prefill-not-causal": "Queries and keys are right; a score that had to be hidden is not, as "
    "soon as two positions are prefilled at once.",
    "mask-top-left": "Queries and keys are right; the first pass with one query and several keys "
    "hides all but one score.",
}


def _first_difference(
    checkpoint: Checkpoint, fault: Fault, case: PrefixCase, prefilled: int
) -> tuple[str, int] | None:
    full = snapshot(full_forward(checkpoint, np.array([case.token_ids])))
    bound = TOLERANCES["float32"]
    found = compare_split(checkpoint, (case,), full, prefilled, bound, fault.seams, fault.guards)
    return found[0].first_difference


def _drawn(rng: random.Random) -> tuple[PrefixCase, int, dict[str, tuple[str, int]]]:
    """Return a prefix of 3 or 4 tokens, a prefill length, and where each fault shows first."""
    checkpoint = frozen_checkpoint()
    case = rng.choice([c for c in controlled_prefixes(checkpoint) if c.length > 2])
    prefilled = rng.randint(1, case.length - 1)
    where = partial(_first_difference, checkpoint, case=case, prefilled=prefilled)
    found = {name: where(fault_by_id(name)) for name in REASONS}
    return case, prefilled, {name: place for name, place in found.items() if place is not None}


def _setting(case: PrefixCase, prefilled: int) -> str:
    steps = case.length - prefilled
    return (
        f"The prefix {code(case.tokens)} goes through the cached path: {prefilled} prefilled, then "
        f"{steps} decode {'step' if steps == 1 else 'steps'}."
    )


def where_task(rng: random.Random) -> Task:
    """Ask which tensor differs first when a known fault is on."""
    case, prefilled, places = _drawn(rng)
    name = rng.choice(list(places))
    tensor, position = places[name]
    choices = sorted({found for found, _ in places.values()} | {"logits"})
    rng.shuffle(choices)
    return Task(
        f"{_setting(case, prefilled)} This is wrong with it: *{fault_by_id(name).what}* Compared "
        "with the full forward in the order of computation, which tensor differs first? (`h.1.` is "
        "layer 1; layers count from 0.)",
        tensor,
        "Walk the pass: embeddings, then in each layer queries, keys, values, scores, weights. "
        "Stop at the first number that the fault touches.",
        f"`{tensor}`, at position {position}. {REASONS[name]}",
        tuple(choices),
    )


def cause_task(rng: random.Random) -> Task:
    """Ask which fault explains the first difference that was found."""
    case, prefilled, places = _drawn(rng)
    name = rng.choice(list(places))
    place = places[name]
    # Another fault that shows at the same place would be an answer, too.
    suspects = [other for other, found in places.items() if other == name or found != place]
    sentences = {other: fault_by_id(other).what for other in suspects}
    choices = list(sentences.values())
    rng.shuffle(choices)
    return Task(
        f"{_setting(case, prefilled)} Everything agrees with the full forward up to `{place[0]}` "
        f"at position **{place[1]}**, which is the first to differ. What went wrong?",
        sentences[name],
        "What is needed to compute that tensor, and of that, what was shown to be right?",
        f"{REASONS[name]} ({fault_by_id(name).id}, {name}.)",
        tuple(choices),
    )
