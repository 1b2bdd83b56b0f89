"""Decoding policy: the fixed row, the draw, what moving a slider changes, and the exercises."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.corpus import BOS, TOKENS
from tinydec.evidence.policy_tables import choose_for, policy_text
from tinydec.figures.policy import PolicyPicture
from tinydec.generation.generate import new_request
from tinydec.generation.policy import Selection, distribution
from tinydec.generation.seeds import first_uniforms, token_counts
from tinydec.generation.stream import Draw, GeneratorState, UniformStream
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import GREEDY, SAMPLE, Policy, RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.html import code, digits
from tinydec.ui.lessons.rows import row_choices, row_text
from tinydec.verification.prefixes import controlled_prefixes

#: Seeds 0 to 999 draw from the shown row.
SEEDS = 1000

#: Rows of the page's table; the CSV has all.
MOST_ROWS = 64

#: Where a visit keeps what this page showed last.
MEMORY = "_policy.seen"


def prompt_row(checkpoint: Checkpoint, spec: RunSpec) -> NDArray[np.floating]:
    """Return the final logits row (V,) after the prompt, read-only, in the spec's dtype."""
    return new_request(checkpoint, spec).step().selection.logits


def seed_uniforms(_checkpoint: Checkpoint, _spec: RunSpec) -> NDArray[np.float64]:
    """Return the first number of each of the seeds, (N,); the same for every run."""
    return first_uniforms(SEEDS)


def nth_draw(seed: int, index: int) -> Draw:
    """Return the draw that comes after ``index`` others."""
    stream = UniformStream(seed)
    for _ in range(index):
        stream.draw()
    return stream.draw()


@dataclass(frozen=True, eq=False)
class Study:
    """One fixed row, one draw, and what the policy makes of them.

    Attributes:
        selection: the token and its record.
        draw: the number that a sampling policy consumes; greedy leaves it.
        counts: (V,) how often each token was selected by the seeds.
        picture: everything the figure shows.
    """

    selection: Selection
    draw: Draw
    counts: NDArray[np.intp]
    picture: PolicyPicture


def study(
    vocabulary: Vocabulary,
    row: NDArray[np.floating],
    policy: Policy,
    draw: Draw,
    uniforms: NDArray[np.float64],
) -> Study:
    """Apply a policy to a fixed row (V,) and to many first draws (N,)."""
    selection = choose_for(row, policy, draw)
    found = distribution(row[np.newaxis, :], policy)  # (V,) -> (1, V)
    counts = token_counts(row, policy, uniforms)
    picture = PolicyPicture(
        tokens=vocabulary.tokens,
        logits=row,
        softmax=found.softmax[0],
        top_k=found.top_k[0],
        probabilities=found.probabilities[0],
        kept=found.kept[0],
        cdf=found.cdf[0],
        selected=selection.token_id,
        uniform=selection.uniform,
        shares=counts / len(uniforms),
        titles=_titles(policy, len(uniforms)),
    )
    return Study(selection, draw, counts, picture)


def _titles(policy: Policy, seeds: int) -> tuple[str, str, str, str, str]:
    """Return two short lines for each panel."""
    temperature = policy.temperature if policy.samples else 1.0
    top_k = 1 if not policy.samples else policy.top_k
    top_p = policy.top_p if policy.samples else None
    return (
        "final<br>logits",
        f"softmax<br>τ={temperature:g}",
        f"top-k<br>{'all' if top_k is None else top_k}",
        f"top-p<br>{'all' if top_p is None else f'{top_p:g}'}",
        f"{seeds}<br>seeds",
    )


def near_tie(vocabulary: Vocabulary, row: NDArray[np.floating]) -> str:
    """Return a sentence about the two highest logits."""
    if len(row) < 2:
        return "The vocabulary has one token, so there is nothing to choose."
    first, second = np.argsort(-row.astype(np.float64), kind="stable")[:2].tolist()
    lead = float(row[first]) - float(row[second])
    one, other = vocabulary.tokens[first], vocabulary.tokens[second]
    if lead == 0:
        return f"{one} and {other} are exactly tied; the lower token id, {one}, comes first."
    close = f" A near-tie: greedy always takes {one}." if lead < 0.05 else ""
    return f"{one} leads {other} by {digits(lead, 3)} logits.{close}"


def numbers(vocabulary: Vocabulary, selection: Selection) -> str:
    """Return the selection in one line, with its numbers."""
    token = vocabulary.tokens[selection.token_id]
    if selection.interval is None or selection.uniform is None:
        highest = digits(float(selection.logits.max()))
        return f"highest logit {highest} → {token}"
    low, high = selection.interval
    return f"{low:.4f} ≤ u = {selection.uniform:.4f} < {high:.4f} → {token}"


def stages_caption(study: Study, size: int) -> str:
    """Return how to read the table of stages, and how far the seeds are off."""
    counts, p = study.counts, study.picture.probabilities
    total = int(counts.sum())
    sd = np.sqrt(total * p * (1 - p))
    off = float((np.abs(counts - total * p)[sd > 0] / sd[sd > 0]).max(initial=0.0))
    rest = f" The table shows {MOST_ROWS} of {size} tokens, the CSV all." * (size > MOST_ROWS)
    if off == 0.0:
        return f"All {total} seeds select the same token: nothing is left to chance.{rest}"
    return (
        f"Seeds 0 to {total - 1} each draw once from this row. The count farthest from its "
        f"expectation is {digits(off, 2)} standard deviations away; below 3 is what chance "
        f"allows.{rest}"
    )


def figure_text(vocabulary: Vocabulary, study: Study) -> str:
    """Return what the figure says, for a screen reader."""
    selection = study.selection
    token = vocabulary.tokens[selection.token_id]
    share = digits(float(study.picture.shares[selection.token_id]), 3)
    return (
        f"Logits, softmax, top-k and top-p as bars over the cumulative distribution. "
        f"{len(selection.kept)} of {len(vocabulary)} tokens are kept. "
        f"{numbers(vocabulary, selection)}. Of {SEEDS} seeds a share of {share} selects {token}."
    )


def presets(checkpoint: Checkpoint, spec: RunSpec, index: int) -> dict[str, dict[str, Any]]:
    """Return buttons by label: the shared controls that each sets.

    The near-tie is the shipped checkpoint's, so its button is only there for that vocabulary.
    """
    found: dict[str, dict[str, Any]] = {}
    if not spec.policy.samples:
        found["Sample"] = {"policy": SAMPLE, "top_k": min(3, len(checkpoint.vocabulary))}
    elif index + 1 < checkpoint.config.n_positions:
        found["Next draw"] = {"step": index + 1}
    else:
        found["First draw"] = {"step": 0}
    near = " ".join((BOS, "A", "B"))
    if checkpoint.vocabulary.tokens == TOKENS:
        found["Near-tie: C or D"] = {"prompt": near}
    return found


@dataclass(frozen=True)
class Seen:
    """What the page showed before a control moved: small values only, no array."""

    prompt: tuple[str, ...]
    policy: Policy
    seed: int
    index: int
    state: GeneratorState
    token: str


def moved_text(before: Seen | None, now: Seen) -> str:
    """Return what the last moved control did to the generator and to the token."""
    state = f"{now.state.state & 0xFFFFFFFF:08x}"
    greedy = now.policy.kind == GREEDY
    if before is None or before == now:
        if greedy:
            return (
                "Greedy takes the highest logit whatever the sliders say; press Sample and they "
                f"act. The generator stays at …{state}: greedy draws nothing."
            )
        return (
            f"Move a slider: the generator stays at …{state}, because nothing is drawn until a "
            f"token is selected."
        )
    if before.state != now.state:
        return (
            f"Seed or step moved: seed {now.seed} after {now.index} draws stands at …{state}. "
            f"That is another generator state, so another number comes next."
        )
    if before.policy == now.policy:
        return f"The row changed, the generator did not: it still stands at …{state}."
    if policy_text(before.policy) == policy_text(now.policy):
        return f"Greedy looks at no slider. The generator still stands at …{state}."
    token = f"still {now.token}" if before.token == now.token else f"{before.token} → {now.token}"
    return (
        f"You moved the policy from {policy_text(before.policy)} to {policy_text(now.policy)}. "
        f"Generator: unchanged at …{state}, all 128 bits compared, so 0 numbers consumed. "
        f"Token: {token}."
    )


# Exercises ---------------------------------------------------------------------------------------


def interval_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask which token a uniform number selects from given probabilities."""
    cases = list(controlled_prefixes(checkpoint))
    rng.shuffle(cases)
    for case in cases:
        row = prompt_row(checkpoint, RunSpec(prompt=tuple(case.tokens.split())))
        top_k = min(rng.choice((2, 3, 4)), len(row))
        policy = Policy(SAMPLE, rng.choice((1.0, 2.0, 4.0)), top_k)
        cdf = distribution(row[np.newaxis, :], policy).cdf[0].tolist()
        spans = [(low, high) for low, high in pairwise([0.0, *cdf]) if high > low]
        # Well inside a wide interval, so that rounding to two digits cannot move the number out.
        wide = [(low, high) for low, high in spans if high - low > 0.04]
        if len(wide) > 1:  # otherwise there is hardly a choice
            break
    low, high = rng.choice(wide or spans)
    uniform = low + (high - low) * rng.uniform(0.35, 0.65)
    uniform = round(uniform, 2) if wide else uniform
    state = UniformStream(0).state
    selection = choose_for(row, policy, Draw(uniform, state, state))
    tokens = checkpoint.vocabulary.tokens
    choices = row_choices(selection)
    answer = tokens[selection.token_id]
    start, end = selection.interval or (0.0, 1.0)
    return Task(
        question=(
            f"After {code(case.tokens)}, with {policy_text(policy)}, the probabilities are\n\n"
            f"{row_text(tokens, selection.probabilities, choices)}\n\n"
            f"The generator draws $u = {uniform:g}$. Which token is selected?"
        ),
        answer=answer,
        hint="Add the probabilities up from left to right until the sum first exceeds $u$.",
        solution=(
            f"The running sum goes from {start:.3f} to {end:.3f} at {code(answer)}, and "
            f"{start:.3f} ≤ {uniform:g} < {end:.3f}."
        ),
        choices=tuple(tokens[i] for i in choices),
    )


def temperature_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for the ratio of two probabilities at a temperature."""
    case = rng.choice(controlled_prefixes(checkpoint))
    row = prompt_row(checkpoint, RunSpec(prompt=tuple(case.tokens.split()))).astype(np.float64)
    if len(row) < 2:
        return Task("One token alone has probability…", 1, "It must sum to 1.", "It is 1.")
    first, second = np.argsort(-row, kind="stable")[:2].tolist()
    temperature = rng.choice((0.25, 0.5, 2.0, 4.0))
    softmax = distribution(row[np.newaxis, :], Policy(SAMPLE, temperature)).softmax[0]
    tokens = checkpoint.vocabulary.tokens
    gap = float(row[first] - row[second])
    if softmax[second] == 0:
        return Task(
            f"The logit of {code(tokens[first])} is {gap:.0f} above every other. What is its "
            f"probability at temperature {temperature:g}, to two decimals?",
            1.0,
            "Every other token has a probability of e to the power of minus that lead, at most.",
            "It is 1.00: the others are too small for a float64.",
            tolerance=0.005,
        )
    ratio = float(softmax[first] / softmax[second])
    return Task(
        question=(
            f"After {code(case.tokens)} the logit of {code(tokens[first])} is {gap:.4f} above that "
            f"of {code(tokens[second])}. At temperature {temperature:g}, how many times as likely "
            f"is {code(tokens[first])}? (Accepted within 2 %.)"
        ),
        answer=ratio,
        hint="In a ratio of two softmax values the sum below the line cancels.",
        solution=f"$e^{{{gap:.4f}/{temperature:g}}} = {ratio:.4g}$",
        tolerance=0.02 * ratio,
    )
