"""Tables of the three runs: policies, token traces, probabilities and stop reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import Column, TableSchema, flag, integer, number, text
from tinydec.generation.policy import Selection, distribution
from tinydec.generation.stream import GeneratorState
from tinydec.generation.trace import GenerationTrace, StepRecord

Row = tuple[Any, ...]

_RUN: tuple[Column, ...] = (
    text("run", "greedy, sample, or context (greedy on a prompt that fills the context)"),
    text("path", "cached, or full (the whole prefix again at every step)"),
)

POLICIES = TableSchema(
    "policies.csv",
    "How each run selects its tokens",
    (
        text("run", "greedy, sample, or context (greedy on a prompt that fills the context)"),
        text("policy", "greedy or sample"),
        number("temperature", "divides the logits when sampling", rule="exact"),
        integer("top_k", "keeps exactly that many tokens; empty keeps all", optional=True),
        number("top_p", "keeps the fewest that reach it", optional=True, rule="exact"),
        text("tie_rule", "which of several equally high logits comes first"),
        text("generator", "source of the uniform numbers; empty when none is drawn", optional=True),
        integer("seed", "seed of the run's own generator"),
        text("prompt", "the prompt's tokens"),
        integer("max_new_tokens", "most tokens to return; empty for no limit", optional=True),
        text("dtype", "number format of the arithmetic"),
    ),
)

TRACES = TableSchema(
    "traces.csv",
    "The token traces: which tokens were returned, and which were consumed",
    (
        *_RUN,
        integer("index", "place in the sequence of prompt and returned tokens"),
        integer("token_id", "id of the token"),
        text("token", "the same as text"),
        flag("returned", "selected by the policy; false for the prompt"),
        flag("consumed", "read by the decoder; the last returned token never is"),
        integer("position", "position at which it was consumed", optional=True),
        integer("returned_step", "step that returned it", optional=True),
        integer("consumed_step", "step that consumed it", optional=True),
    ),
)

PROBABILITIES = TableSchema(
    "probabilities.csv",
    "Every step's selection: from logits to the chosen token",
    (
        *_RUN,
        integer("step", "0 consumes the prompt"),
        integer("position", "position whose logits are used"),
        integer("token_id", "id of the token"),
        text("token", "the same as text"),
        number("logit", "original logit"),
        number("scaled", "(logit - highest) / temperature", rule="scaled"),
        number("softmax", "probability before top-k and top-p", rule="scaled"),
        number("probability", "probability after the policy; 0 when not kept", rule="scaled"),
        flag("kept", "whether the policy can select it"),
        number("cdf_low", "start of its interval", optional=True, rule="scaled"),
        number("cdf_high", "end of its interval", optional=True, rule="scaled"),
        number("uniform", "the number drawn", optional=True, rule="exact"),
        flag("chosen", "whether it was selected"),
        text("state_before", "generator before the draw"),
        text("state_after", "generator after it; greedy draws nothing"),
    ),
)

STOPS = TableSchema(
    "stops.csv",
    "Why each run stopped",
    (
        *_RUN,
        text("prompt", "the prompt's tokens"),
        text("tokens", "prompt and returned tokens"),
        text("stop_reason", "eos, context, stop_token or max_new_tokens"),
        integer("step", "step at which it stopped"),
        integer("returned", "tokens returned"),
        integer("consumed", "inputs consumed"),
        integer("context", "most inputs that can be consumed"),
        text("last_token", "the token returned last"),
        flag("last_consumed", "whether it was consumed; never"),
    ),
)


def policies(report: AuditReport) -> pd.DataFrame:
    """Return one row per run."""
    rows = []
    for run in report.runs:
        spec = run.spec
        rows.append(
            (
                run.name,
                spec.policy.kind,
                spec.policy.temperature,
                spec.policy.top_k,
                spec.policy.top_p,
                "lowest token id",
                "PCG64, one number per token" if spec.policy.samples else None,
                spec.seed,
                " ".join(spec.prompt),
                spec.max_new_tokens,
                spec.dtype,
            )
        )
    return frame(POLICIES, rows)


def traces(report: AuditReport) -> pd.DataFrame:
    """Return one row per token of each run and path."""
    return frame(TRACES, _per_trace(report, _trace_rows))


def probabilities(report: AuditReport) -> pd.DataFrame:
    """Return V rows for each step of each run and path."""
    return frame(PROBABILITIES, _per_trace(report, _probability_rows))


def stops(report: AuditReport) -> pd.DataFrame:
    """Return one row per run and path."""
    return frame(STOPS, _per_trace(report, _stop_rows))


def state_text(state: GeneratorState) -> str:
    """Return a generator state as text, in hexadecimal: a spreadsheet would round the digits."""
    return (
        f"state {state.state:#034x} increment {state.increment:#034x} "
        f"has_uint32 {state.has_uint32} uinteger {state.uinteger}"
    )


def parse_state(text: str) -> GeneratorState:
    """Return the state that :func:`state_text` wrote; a ``ValueError`` for any other text."""
    words = text.split()
    if words[::2] != ["state", "increment", "has_uint32", "uinteger"] or len(words) != 8:
        raise ValueError(f"expected a generator state, found {text!r}")
    return GeneratorState(*(int(word, 0) for word in words[1::2]))


def intervals(selection: Selection) -> tuple[tuple[float, float] | None, ...]:
    """Return each token's interval of the cumulative distribution; None where it has none."""
    found = distribution(selection.logits[None, :], selection.policy)  # (V,) -> (1, V)
    low, result = 0.0, []
    for kept, high in zip(found.kept[0].tolist(), found.cdf[0].tolist(), strict=True):
        drawn = kept and selection.policy.samples
        result.append((low, high) if drawn else None)
        low = high  # a token that is not kept adds nothing
    return tuple(result)


def _per_trace(report: AuditReport, rows: Any) -> Iterator[Row]:
    for run in report.runs:
        for path, trace in run.traces:
            yield from ((run.name, path, *row) for row in rows(report, trace))


def _trace_rows(report: AuditReport, trace: GenerationTrace) -> Iterator[Row]:
    tokens = report.checkpoint.vocabulary.tokens
    consumed = [step.index for step in trace.steps for _ in step.consumed_ids]
    prompt = len(trace.prompt_ids)
    for index, token_id in enumerate(trace.token_ids):
        was_consumed = index < len(consumed)
        yield (
            index,
            token_id,
            tokens[token_id],
            index >= prompt,
            was_consumed,
            index if was_consumed else None,
            index - prompt if index >= prompt else None,
            consumed[index] if was_consumed else None,
        )


def _probability_rows(report: AuditReport, trace: GenerationTrace) -> Iterator[Row]:
    for step in trace.steps:
        yield from _step_rows(report.checkpoint.vocabulary.tokens, step)


def _step_rows(tokens: tuple[str, ...], step: StepRecord) -> Iterator[Row]:
    selection = step.selection
    found = distribution(selection.logits[None, :], selection.policy)  # (V,) -> (1, V)
    columns = (
        selection.logits.tolist(),
        found.scaled[0].tolist(),
        found.softmax[0].tolist(),
        selection.probabilities.tolist(),
    )
    kept, spans = set(selection.kept), intervals(selection)
    before, after = state_text(selection.state_before), state_text(selection.state_after)
    for token_id, (token, *values) in enumerate(zip(tokens, *columns, strict=True)):
        yield (
            step.index,
            step.positions[-1],
            token_id,
            token,
            *values,
            token_id in kept,
            *(spans[token_id] or (None, None)),
            selection.uniform,
            token_id == selection.token_id,
            before,
            after,
        )


def _stop_rows(report: AuditReport, trace: GenerationTrace) -> Iterator[Row]:
    checkpoint = report.checkpoint
    last = len(trace.token_ids) - 1
    yield (
        checkpoint.vocabulary.decode(trace.prompt_ids),
        checkpoint.vocabulary.decode(trace.token_ids),
        trace.stop_reason,
        trace.steps[-1].index,
        len(trace.returned_ids),
        len(trace.consumed_ids),
        checkpoint.config.n_positions,
        checkpoint.vocabulary.tokens[trace.token_ids[last]],
        last < len(trace.consumed_ids),
    )
