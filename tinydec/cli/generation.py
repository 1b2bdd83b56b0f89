"""``generate``: the steps of a run as a table or as JSON."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any
from urllib.parse import urlencode

from tinydec.cli import options
from tinydec.cli.text import Outcome, printable, text_table
from tinydec.generation.generate import generate
from tinydec.generation.stopping import CONTEXT, EOS, STOP_TOKEN
from tinydec.generation.trace import GenerationTrace, StepRecord
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import FROZEN, Policy, RunSpec

#: The page that shows a run, as it stands in a URL.
_PAGE = "generation_loop"
_QUALITY = (
    "This trace tests that the steps run and that the random state repeats; "
    "it does not measure how good the language is."
)


def run(given: Namespace) -> Outcome:
    """Generate as the options say."""
    checkpoint = options.checkpoint(given)
    spec = options.generation_run(given, checkpoint)
    trace = generate(checkpoint, spec)
    if given.json:
        values = trace_values(checkpoint, spec, trace)
        return Outcome(json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False))
    return Outcome(trace_text(checkpoint, spec, trace))


def trace_text(checkpoint: Checkpoint, spec: RunSpec, trace: GenerationTrace) -> str:
    """Return a trace as text: one line per step, the sequence, and why it stopped."""
    header = (
        "step", "phase", "position", "consumed", "returned", "probability", "uniform", "interval",
        "stop",
    )  # fmt: skip
    rows = [_step_row(checkpoint, step) for step in trace.steps]
    cache = "with a cache" if spec.cache else "without a cache"
    note = _ignored(spec.policy)
    lines = [
        (
            f"Checkpoint {checkpoint.digest[:12]} in {spec.dtype}, {cache}; "
            f"{policy_text(spec)}, seed {spec.seed}."
        ),
        *([note] if note else []),
        "",
        text_table(header, rows),
        "",
        printable(checkpoint.vocabulary.decode(trace.token_ids)),
        f"Stop reason: {trace.stop_reason} ({_reason(checkpoint, trace)}).",
        (
            f"{len(trace.consumed_ids)} of {checkpoint.config.n_positions} inputs consumed, "
            f"{len(trace.returned_ids)} tokens returned; the last one was not consumed."
        ),
        _QUALITY,
        *([app_link(spec)] if spec.checkpoint == FROZEN else []),
    ]
    return "\n".join(lines)


def trace_values(checkpoint: Checkpoint, spec: RunSpec, trace: GenerationTrace) -> dict[str, Any]:
    """Return everything a trace recorded as JSON values; generator states as strings."""
    return {
        "run": spec.to_dict(),
        "checkpoint_digest": checkpoint.digest,
        "tokens": checkpoint.vocabulary.decode(trace.token_ids),
        "token_ids": list(trace.token_ids),
        "consumed_ids": list(trace.consumed_ids),
        "returned_ids": list(trace.returned_ids),
        "stop_reason": trace.stop_reason,
        "steps": [_step_values(checkpoint, step) for step in trace.steps],
    }


def app_link(spec: RunSpec) -> str:
    """Return where the app shows the same run of the shipped checkpoint."""
    query = urlencode(spec.to_query())
    return f"In the app: /{_PAGE}{'?' if query else ''}{query}"


def policy_text(spec: RunSpec) -> str:
    """Return a policy in words with its numbers."""
    policy = spec.policy
    if not policy.samples:
        return "greedy (ties by lowest id)"
    limits = [f"temperature {policy.temperature:g}"]
    limits += [] if policy.top_k is None else [f"top-k {policy.top_k}"]
    limits += [] if policy.top_p is None else [f"top-p {policy.top_p:g}"]
    return f"sample with {', '.join(limits)}"


def _ignored(policy: Policy) -> str | None:
    if policy.samples or policy == Policy():
        return None
    return "Greedy takes the highest logit: temperature, top-k and top-p change nothing."


def _reason(checkpoint: Checkpoint, trace: GenerationTrace) -> str:
    last = printable(checkpoint.vocabulary.decode(trace.returned_ids[-1:]))
    if trace.stop_reason in (EOS, STOP_TOKEN):
        return f"the policy returned {last}"
    if trace.stop_reason == CONTEXT:
        return f"all {checkpoint.config.n_positions} positions are consumed, so {last} cannot be"
    return f"{trace.max_new_tokens} tokens were asked for"


def _step_row(checkpoint: Checkpoint, step: StepRecord) -> tuple[str, ...]:
    selection, decode = step.selection, checkpoint.vocabulary.decode
    interval = selection.interval
    return (
        str(step.index),
        step.phase,
        " ".join(map(str, step.positions)),
        decode(step.consumed_ids),
        decode([step.returned_id]),
        f"{selection.probabilities[step.returned_id]:.6f}",
        "" if selection.uniform is None else f"{selection.uniform:.6f}",
        "" if interval is None else f"[{interval[0]:.6f}, {interval[1]:.6f})",
        step.stop_reason or "",
    )


def _step_values(checkpoint: Checkpoint, step: StepRecord) -> dict[str, Any]:
    selection = step.selection
    interval = selection.interval
    return {
        "step": step.index,
        "phase": step.phase,
        "positions": list(step.positions),
        "consumed_ids": list(step.consumed_ids),
        "returned_id": step.returned_id,
        "returned": checkpoint.vocabulary.decode([step.returned_id]),
        "probability": float(selection.probabilities[step.returned_id]),
        "uniform": selection.uniform,
        "interval": None if interval is None else list(interval),
        "kept": list(selection.kept),
        "logits": selection.logits.tolist(),
        "probabilities": selection.probabilities.tolist(),
        "state_before": _state(selection.state_before),
        "state_after": _state(selection.state_after),
        "stop_reason": step.stop_reason,
    }


def _state(state: Any) -> dict[str, str]:
    return {name: str(value) for name, value in state._asdict().items()}
