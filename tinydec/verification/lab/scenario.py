"""The session that is recorded: which requests run, with which policies and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinydec.corpus import TOKENS
from tinydec.generation.request import Request
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary
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
    """

    name: str
    prompt: tuple[str, ...]
    policy: Policy
    seed: int
    max_new_tokens: int | None = None


@dataclass(frozen=True)
class Scenario:
    """The requests of one session, and the prompt of a neighbour that runs beside each."""

    runs: tuple[ScenarioRun, ...]
    neighbour_shift: int = 1  # the neighbour's prompt is each token's id plus this, modulo V


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
        )
    )


def drawn_scenario(checkpoint: Checkpoint, seed: int) -> Scenario:
    """Return a session on any checkpoint with at least two positions, drawn from a seed."""
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
            ScenarioRun("greedy", prompt(max(2, config.n_positions - 2)), Policy(), number),
            ScenarioRun("full context", prompt(config.n_positions), Policy(), number),
        )
    )


def scenario_for(checkpoint: Checkpoint, seed: int = 0) -> Scenario:
    """Return the session for the controlled vocabulary, or a drawn one."""
    if checkpoint.vocabulary.tokens == TOKENS and checkpoint.config.n_positions == 4:
        return frozen_scenario()
    return drawn_scenario(checkpoint, seed)


def with_reachable_eos(checkpoint: Checkpoint, scenario: Scenario) -> Checkpoint:
    """Name as ``<eos>`` the token that the greedy run selects at its last position.

    A random checkpoint has no token that ends a sequence; this gives it one for which ``eos`` and
    ``context`` apply at the same step. Where that token comes earlier in the run too, the
    checkpoint is returned as it is.
    """
    greedy = next(run for run in scenario.runs if run.name == "greedy")
    request = Request(
        checkpoint, checkpoint.vocabulary.encode(greedy.prompt), greedy.policy, greedy.seed
    )
    while request.stop_reason is None:
        request.step()
    returned = request.trace().returned_ids
    if returned[-1] in returned[:-1]:
        return checkpoint
    tokens = checkpoint.vocabulary.tokens
    vocabulary = Vocabulary(tokens, checkpoint.vocabulary.bos, tokens[returned[-1]])
    return Checkpoint.build(checkpoint.config, vocabulary, checkpoint.tensors)


def encode(checkpoint: Checkpoint, tokens: Sequence[str]) -> tuple[int, ...]:
    """Return ids of token strings under the checkpoint's vocabulary."""
    return checkpoint.vocabulary.encode(tokens)
