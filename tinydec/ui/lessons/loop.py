"""Generation loop: presets that reach each stop reason, and the exercises."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd

from tinydec.figures.log_axis import short
from tinydec.generation.generate import generate
from tinydec.generation.stop_rules import explain_stop, rule_checks
from tinydec.generation.stopping import (
    CONTEXT,
    EOS,
    MAX_NEW_TOKENS,
    STOP_REASONS,
    STOP_TOKEN,
)
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import GREEDY, SAMPLE, Policy, RunSpec
from tinydec.ui.domains import LONGEST_PROMPT
from tinydec.ui.exercise import Task
from tinydec.ui.html import code, digits, prose
from tinydec.verification.prefixes import controlled_prefixes
from tinydec.verification.trace_pair import TracePair

#: Shorter headings for the table of turns.
HEADINGS = {
    "consumed now": "new inputs",
    "highest logit": "highest",
    "uniform": "u, the number drawn",
    "stop reason": "stop",
}


def presets(checkpoint: Checkpoint, spec: RunSpec) -> dict[str, dict[str, Any]]:
    """Return, for each stop reason, the shared controls that lead to it.

    The prompts are chosen for the shipped checkpoint. With another one the same buttons set the
    nearest thing, and the page says where the run did stop.
    """
    vocabulary, context = checkpoint.vocabulary, checkpoint.config.n_positions
    first = vocabulary.bos or vocabulary.tokens[0]
    others = [t for t in vocabulary.tokens if t not in (vocabulary.bos, vocabulary.eos)]
    full = " ".join([first, *others[:1] * (min(context, LONGEST_PROMPT) - 1)])
    # A token that this greedy run does return, so that it is a stop token that is met.
    begun = generate(checkpoint, RunSpec(prompt=(first,), max_new_tokens=2, dtype=spec.dtype))
    met = [vocabulary.tokens[i] for i in begun.returned_ids if i != vocabulary.eos_id]
    plain = {"policy": GREEDY, "max_new_tokens": None, "stop_tokens": "", "step": 0}
    return {
        EOS: plain | {"prompt": first},
        CONTEXT: plain | {"prompt": full},
        MAX_NEW_TOKENS: plain | {"prompt": first, "max_new_tokens": 1},
        STOP_TOKEN: plain | {"prompt": first, "stop_tokens": (met or [first])[-1]},
    }


def numbers(vocabulary: Vocabulary, trace: GenerationTrace, step: int) -> str:
    """Return the formula with one step's numbers."""
    record = trace.steps[step]
    selection, last = record.selection, record.length_after - 1
    highest = float(selection.logits.max())
    what = f"highest {digits(highest)}"
    if selection.uniform is not None:
        what = f"u = {selection.uniform:.4f}"
    return (
        f"x{last + 1} = {trace.policy.kind}({len(selection.logits)} logits at position {last}, "
        f"{what}) = {vocabulary.tokens[record.returned_id]}"
    )


def shown_turns(turns: pd.DataFrame) -> pd.DataFrame:
    """Return the table of turns without the column of drawn numbers where none was drawn."""
    return turns.drop(columns="uniform") if turns["uniform"].isna().all() else turns


def figure_text(vocabulary: Vocabulary, trace: GenerationTrace, step: int) -> str:
    """Return what the figure says, for a screen reader."""
    record = trace.steps[step]
    token = vocabulary.tokens[record.returned_id]
    logit = digits(float(record.selection.logits[record.returned_id]))
    return (
        f"Logits of {len(trace.steps)} steps as bars. Step {step} selects {token} "
        f"with a logit of {logit}."
    )


def stop_text(checkpoint: Checkpoint, trace: GenerationTrace) -> str:
    """Return where and why a run stops."""
    return (
        f"This run stops at step {len(trace.steps) - 1} with {trace.stop_reason}: "
        f"{explain_stop(checkpoint, trace)}."
    )


def pair_text(pair: TracePair, tolerance: float) -> str:
    """Return whether the run with a cache and the one without are the same."""
    difference = digits(pair.max_abs_error, 3)
    if pair.same:
        return (
            f"The same tokens, the same draws and the same stop reason. The logits differ by at "
            f"most {difference}, and {short(tolerance)} is accepted."
        )
    other = next((s.step for s in pair.steps if not s.same_token), None)
    place = "in length" if other is None else f"from step {other} on"
    return (
        f"The two runs differ {place}: their logits are {difference} apart there, which is enough "
        f"to turn a near-tie in this number format."
    )


def _drawn_run(checkpoint: Checkpoint, rng: random.Random) -> RunSpec:
    case = rng.choice(controlled_prefixes(checkpoint))
    policy = Policy(rng.choice((GREEDY, SAMPLE)))
    most = rng.choice((1, 2, 3, 4, None))
    return RunSpec(
        prompt=tuple(case.tokens.split()),
        policy=policy,
        seed=rng.randrange(100),
        max_new_tokens=most,
    )


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
            f"{code(' '.join(spec.prompt))} the policy returned "
            f"{code(vocabulary.decode(trace.returned_ids))}, and the run stopped. "
            "Which reason does it record?"
        ),
        answer=trace.stop_reason,
        hint=(
            "Ask the rules in this order: eos, stop_token, context, max_new_tokens. "
            "The first that applies is recorded. The last returned token is never consumed."
        ),
        solution=(
            f"`{trace.stop_reason}`: {prose(explain_stop(checkpoint, trace))}. "
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
            f"is never read. The tokens were {code(checkpoint.vocabulary.decode(trace.token_ids))}."
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
