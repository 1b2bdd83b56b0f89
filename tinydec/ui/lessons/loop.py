"""Generation loop: presets that reach each stop reason, and the exercises."""

from __future__ import annotations

import random
from typing import Any

from tinydec.generation.generate import generate
from tinydec.generation.stop_rules import explain_stop, rule_checks
from tinydec.generation.stopping import STOP_REASONS
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import GREEDY, SAMPLE, Policy, RunSpec
from tinydec.ui.exercise import Task
from tinydec.ui.lessons.limit import limited
from tinydec.verification.prefixes import controlled_prefixes


def presets(checkpoint: Checkpoint) -> dict[str, dict[str, Any]]:
    """Return buttons by label: the shared controls that lead to each stop reason.

    The prompts are chosen for the shipped checkpoint; with another one the same buttons set the
    nearest thing, and the page says where the run did stop.
    """
    vocabulary, context = checkpoint.vocabulary, checkpoint.config.n_positions
    first = vocabulary.bos or vocabulary.tokens[0]
    others = [t for t in vocabulary.tokens if t not in (vocabulary.bos, vocabulary.eos)]
    filler = others[0] if others else first
    full = " ".join([first, *[filler] * (min(context, 64) - 1)])
    plain = {"policy": GREEDY, "max_new_tokens": None, "stop_tokens": "", "step": 0}
    seeded = {"temperature": 1.0, "top_k": min(3, len(vocabulary)), "top_p": 1.0, "seed": 41}
    return {
        "Ends with eos": plain | {"prompt": first},
        "Fills the context": plain | {"prompt": full},
        "One new token": plain | {"prompt": first, "max_new_tokens": 1},
        "Sampled, seed 41": plain | {"prompt": first, "policy": SAMPLE} | seeded,
    }


def _drawn_run(checkpoint: Checkpoint, rng: random.Random) -> RunSpec:
    case = rng.choice(controlled_prefixes(checkpoint))
    policy = Policy(rng.choice((GREEDY, SAMPLE)))
    most = rng.choice((1, 2, 3, 4, None))
    spec = RunSpec(
        prompt=tuple(case.tokens.split()),
        policy=policy,
        seed=rng.randrange(100),
        max_new_tokens=most,
    )
    return limited(checkpoint, spec)[0]


def stop_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for the recorded stop reason of a run whose tokens are given."""
    spec = _drawn_run(checkpoint, rng)
    trace = generate(checkpoint, spec)
    vocabulary, context = checkpoint.vocabulary, checkpoint.config.n_positions
    applying = [c.rule for c in rule_checks(checkpoint, trace, len(trace.steps) - 1) if c.applies]
    limit = "not set" if spec.max_new_tokens is None else str(spec.max_new_tokens)
    return Task(
        question=(
            f"The context is {context} positions and `max_new_tokens` is {limit}. From the prompt "
            f"`{' '.join(spec.prompt)}` the policy returned "
            f"`{vocabulary.decode(trace.returned_ids)}`, and the run stopped. "
            "Which reason does it record?"
        ),
        answer=trace.stop_reason,
        hint=(
            "Ask the rules in this order: eos, stop_token, context, max_new_tokens. "
            "The first that applies is recorded. The last returned token is never consumed."
        ),
        solution=(
            f"`{trace.stop_reason}`: {explain_stop(checkpoint, trace)}. "
            f"{len(trace.consumed_ids)} of {context} positions were consumed. At this step "
            f"{_listed(applying)}."
        ),
        choices=STOP_REASONS,
    )


def consumed_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask how many inputs a finished run has consumed."""
    spec = _drawn_run(checkpoint, rng)
    trace = generate(checkpoint, spec)
    prompt, returned = len(trace.prompt_ids), len(trace.returned_ids)
    consumed = len(trace.consumed_ids)
    return Task(
        question=(
            f"A run begins with {prompt} prompt token{'s' * (prompt != 1)} and ends after it "
            f"returned {returned} token{'s' * (returned != 1)}. How many inputs has the decoder "
            "consumed?"
        ),
        answer=consumed,
        hint="Each returned token is fed back, except one. Which one, and why?",
        solution=(
            f"{prompt} + {returned} − 1 = {consumed}: the last returned token ends the run, so it "
            f"is never read. The tokens were `{checkpoint.vocabulary.decode(trace.token_ids)}`."
        ),
    )


def _listed(rules: list[str]) -> str:
    if len(rules) == 1:
        return f"only `{rules[0]}` applies"
    names = ", ".join(f"`{rule}`" for rule in rules)
    return (
        f"{names} all apply, and the first of them wins"
        if len(rules) > 2
        else (f"{names} both apply, and the first of them wins")
    )
