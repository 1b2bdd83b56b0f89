"""The session that is recorded: which requests run, with which policies and prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tinydec.corpus import TOKENS
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import Policy


@dataclass(frozen=True)
class ScenarioRun:
    """One request of a session.

    Attributes:
        name: what findings call it.
        prompt: token strings.
        policy: how it selects.
        seed: seeds its generator.
        max_new_tokens: most tokens to return, or None.
        stop_tokens: further token strings that end it.
    """

    name: str
    prompt: tuple[str, ...]
    policy: Policy
    seed: int
    max_new_tokens: int | None = None
    stop_tokens: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class BatchRow(ScenarioRun):
    """One request of a batch, and the step before which it joins."""

    joins: int = 0


@dataclass(frozen=True)
class Scenario:
    """The requests of one session.

    Attributes:
        runs: requests that run one by one.
        rows: requests that run side by side, once in each layout.
        neighbour_shift: beside each single request stands another one, whose prompt is each
            token's id plus this, modulo V.
    """

    runs: tuple[ScenarioRun, ...]
    rows: tuple[BatchRow, ...] = ()
    neighbour_shift: int = 1


def frozen_scenario() -> Scenario:
    """Return a session on the controlled vocabulary in which every single-request fault can act.

    One sampled run with a temperature other than 1; one greedy run that ends with ``<eos>`` at
    the last position; one prompt that fills the context.
    """
    return Scenario(
        (
            ScenarioRun("sampled", ("<bos>", "Y"), Policy("sample", 0.7, 3, 0.95), 41),
            ScenarioRun("greedy", ("<bos>", "A"), Policy(), 41),
            ScenarioRun("full context", ("<bos>", "A", "A", "A"), Policy(), 41),
        ),
        (
            BatchRow("a", ("<bos>",), Policy("sample", 0.9, 3), 41, max_new_tokens=1),
            BatchRow("b", ("<bos>", "A"), Policy(), 3),
            BatchRow("c", ("<bos>", "X", "Y"), Policy("sample", 1.3, 5, 0.95), 5),
            BatchRow("d", ("<bos>", "Y"), Policy("sample", 0.7, 4), 7),
            BatchRow("e", ("<bos>",), Policy("sample", 1.1), 11, joins=1),
        ),
    )


def drawn_scenario(checkpoint: Checkpoint, seed: int) -> Scenario:
    """Return a session on any checkpoint, drawn from a seed; no prompt exceeds the context."""
    config, tokens = checkpoint.config, checkpoint.vocabulary.tokens
    generator = np.random.default_rng(seed)

    def prompt(length: int) -> tuple[str, ...]:
        return tuple(tokens[i] for i in generator.integers(config.vocab_size, size=length))

    longest = max(2, config.n_positions - 2)
    length = int(generator.integers(2, longest + 1)) if longest > 2 else min(2, config.n_positions)
    top_k = min(3, config.vocab_size)
    number = int(generator.integers(2**31))
    sampled = Policy("sample", 0.7, top_k, 0.95)
    return Scenario(
        (
            ScenarioRun("sampled", prompt(length), sampled, number, max_new_tokens=6),
            ScenarioRun("greedy", prompt(min(longest, config.n_positions)), Policy(), number),
            ScenarioRun("full context", prompt(config.n_positions), Policy(), number),
        ),
        _drawn_rows(generator, prompt, config.n_positions, top_k),
    )


def _drawn_rows(
    generator: np.random.Generator,
    prompt: Callable[[int], tuple[str, ...]],
    context: int,
    top_k: int,
) -> tuple[BatchRow, ...]:
    """Return five rows of unequal lengths; the first one ends first, the last one joins late."""
    longest = max(context - 1, 1)
    lengths = [1, longest, *(int(n) for n in generator.integers(1, longest + 1, size=3))]
    policies = (
        Policy("sample", 0.9, top_k),
        Policy(),
        Policy("sample", 1.3, None, 0.95),
        Policy("sample", 0.7, top_k),
        Policy("sample", 1.1),
    )
    limits = (1, None, 5, 4, 3)
    return tuple(
        BatchRow(name, prompt(length), policy, int(generator.integers(2**31)), limit, joins)
        for name, length, policy, limit, joins in zip(
            "abcde", lengths, policies, limits, (0, 0, 0, 0, 1), strict=True
        )
    )


def scenario_for(checkpoint: Checkpoint, seed: int = 0) -> Scenario:
    """Return the session for the controlled vocabulary, or a drawn one."""
    if checkpoint.vocabulary.tokens == TOKENS and checkpoint.config.n_positions == 4:
        return frozen_scenario()
    return drawn_scenario(checkpoint, seed)
