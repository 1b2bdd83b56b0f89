"""What each stop rule says at one step of a finished run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinydec.generation.stopping import CONTEXT, EOS, MAX_NEW_TOKENS, STOP_REASONS, stop_reason
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint


@dataclass(frozen=True)
class RuleCheck:
    """One rule, asked at one step.

    Attributes:
        rule: one of the stop reasons; they stand in the order in which they win.
        found: what the rule looks at, in words.
        applies: whether the rule alone would stop the run here.
        recorded: whether it is the reason that the run records.
    """

    rule: str
    found: str
    applies: bool
    recorded: bool


def rule_checks(checkpoint: Checkpoint, trace: GenerationTrace, step: int) -> tuple[RuleCheck, ...]:
    """Ask every stop rule alone at step ``step``, 0 to the last one.

    Raises:
        IndexError: the run has no such step.
    """
    record = trace.steps[step]
    vocabulary, context = checkpoint.vocabulary, checkpoint.config.n_positions
    token = vocabulary.tokens[record.returned_id]
    consumed, returned = record.length_after, step + 1
    most = trace.max_new_tokens
    stops = vocabulary.decode(trace.stop_token_ids) if trace.stop_token_ids else "none set"
    found = (
        f"returned {token}, ends at {vocabulary.eos}"
        if vocabulary.eos
        else f"returned {token}, no end token",
        f"returned {token}, stop tokens: {stops}",
        f"consumed {consumed} of {context} positions",
        f"returned {returned} of {'any number' if most is None else most}",
    )
    never: dict[str, Any] = {
        "eos_id": None,
        "stop_token_ids": frozenset(),
        "n_positions": consumed + 1,
        "max_new_tokens": None,
    }
    alone: tuple[dict[str, Any], ...] = (
        {"eos_id": vocabulary.eos_id},
        {"stop_token_ids": frozenset(trace.stop_token_ids)},
        {"n_positions": context},
        {"max_new_tokens": most},
    )
    return tuple(
        RuleCheck(
            rule=rule,
            found=text,
            applies=stop_reason(
                record.returned_id, consumed=consumed, returned=returned, **never | switched_on
            )
            is not None,
            recorded=record.stop_reason == rule,
        )
        for rule, text, switched_on in zip(STOP_REASONS, found, alone, strict=True)
    )


def explain_stop(checkpoint: Checkpoint, trace: GenerationTrace) -> str:
    """Return one plain sentence that says why a run stopped, with its numbers."""
    last = trace.steps[-1]
    token = checkpoint.vocabulary.tokens[last.returned_id]
    count = len(trace.returned_ids)
    reasons = {
        EOS: f"the policy selected {token}, the token that ends a sequence",
        CONTEXT: (
            f"all {checkpoint.config.n_positions} positions are consumed: {token} is returned, "
            f"but there is no position left to read it at"
        ),
        MAX_NEW_TOKENS: f"{count} of at most {trace.max_new_tokens} new tokens are returned",
    }
    return reasons.get(trace.stop_reason, f"the policy selected the stop token {token}")
