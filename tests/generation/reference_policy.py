"""The policy rules again, slowly and obviously, one token at a time, with `math` and `fractions`.

Each rule can be broken by name, so that the checks can be seen to fail.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.policy import Selection
from tinydec.generation.stream import Draw, GeneratorState
from tinydec.runspec import Policy

Chooser = Callable[[NDArray, Policy, Draw | GeneratorState], Selection]


@dataclass(frozen=True)
class Rules:
    """The rules of the reference; every default is the contract."""

    multiply_by_temperature: bool = False
    ties_by_highest_id: bool = False
    keep_all_ties: bool = False
    renormalise: bool = True
    top_p_first: bool = False
    stop_before_p: bool = False
    go_beyond_p: bool = False
    close_the_end: bool = True
    close_at_last_kept: bool = False
    invert_by_rank: bool = False
    right_closed: bool = False


CONTRACT = Rules()


def as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return -math.inf if number < 0 else math.inf


def softmax(logits: list[float], temperature: float, rules: Rules = CONTRACT) -> list[float]:
    peak = max(map(Fraction, logits))
    scaled = [
        (Fraction(x) - peak) * Fraction(temperature)
        if rules.multiply_by_temperature
        else (Fraction(x) - peak) / Fraction(temperature)
        for x in logits
    ]
    weights = [math.exp(as_float(value)) for value in scaled]
    return [weight / math.fsum(weights) for weight in weights]


def rank(logits: list[float], rules: Rules = CONTRACT) -> list[int]:
    sign = -1 if rules.ties_by_highest_id else 1
    return sorted(range(len(logits)), key=lambda token: (-logits[token], sign * token))


def only(kept: list[int], probabilities: list[float], rules: Rules) -> list[float]:
    """Set every other token to 0 and renormalise."""
    total = math.fsum(probabilities[token] for token in kept) if rules.renormalise else 1.0
    return [p / total if token in kept else 0.0 for token, p in enumerate(probabilities)]


def first_k(ranked: list[int], logits: list[float], k: int, rules: Rules) -> list[int]:
    if rules.keep_all_ties:
        return [token for token in ranked if logits[token] >= logits[ranked[k - 1]]]
    return ranked[:k]


def fewest(ranked: list[int], probabilities: list[float], p: float, rules: Rules) -> list[int]:
    """Return the first tokens whose probabilities, added exactly and rounded once, reach p."""
    for count in range(1, len(ranked) + 1):
        total = float(sum(Fraction(probabilities[token]) for token in ranked[:count]))
        if total > p or (total == p and not rules.go_beyond_p):
            return ranked[: max(1, count - 1)] if rules.stop_before_p else ranked[:count]
    return ranked


def kept_tokens(
    logits: list[float], policy: Policy, rules: Rules = CONTRACT
) -> tuple[list[int], list[float]]:
    """Return the kept tokens, most probable first, and the probabilities of all."""
    ranked = rank(logits, rules)
    if policy.kind == "greedy":
        return ranked[:1], [float(token == ranked[0]) for token in range(len(logits))]
    probabilities = softmax(logits, policy.temperature, rules)
    for stage in ("p", "k") if rules.top_p_first else ("k", "p"):
        if stage == "k" and policy.top_k is not None:
            ranked = first_k(ranked, logits, min(policy.top_k, len(ranked)), rules)
        elif stage == "p" and policy.top_p is not None and policy.top_p < 1:
            ranked = fewest(ranked, probabilities, policy.top_p, rules)
        probabilities = only(ranked, probabilities, rules)
    return ranked, probabilities


def intervals(
    order: list[int], probabilities: list[float], rules: Rules = CONTRACT
) -> dict[int, tuple[float, float]]:
    """Return each kept token's piece of [0, 1), one after another in the given order."""
    possible = [token for token in order if probabilities[token] > 0]
    last = order[-1] if rules.close_at_last_kept else possible[-1]
    total, low, found = Fraction(0), 0.0, {}
    for token in order:
        total += Fraction(probabilities[token])
        closes = rules.close_the_end and order.index(token) >= order.index(last)
        high = 1.0 if closes else min(1.0, float(total))
        found[token] = (low, high)
        low = high
    return found


def reference_chooser(rules: Rules = CONTRACT) -> Chooser:
    """Return a chooser that follows these rules."""

    def choose(row: NDArray, policy: Policy, draw: Draw | GeneratorState) -> Selection:
        logits = [float(x) for x in row]
        ranked, probabilities = kept_tokens(logits, policy, rules)
        kept, values = tuple(sorted(ranked)), np.array(probabilities)
        if not isinstance(draw, Draw):
            return Selection(policy, row, values, kept, ranked[0], None, None, draw, draw)
        pieces = intervals(ranked if rules.invert_by_rank else sorted(ranked), probabilities, rules)
        u = draw.uniform
        token = next(
            (
                token
                for token, (low, high) in pieces.items()
                if (low < u <= high if rules.right_closed else low <= u < high)
            ),
            ranked[-1],
        )
        return Selection(policy, row, values, kept, token, u, pieces[token], *draw[1:])

    return choose
