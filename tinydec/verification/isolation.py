"""Isolation: every row of a batch equals the solo run of its request, whoever its neighbours are.

In float64 tokens, draws and stop reasons must be the same exactly. In narrower formats logits
differ by rounding, so that a near-tie may fall the other way: another token is excused only
where the solo selection was decided by less than twice the logit error, and the row is not
followed any further, since from there on it is another run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tinydec.generation.batch_trace import CANCELLED, NOT_FINITE, BatchTrace, RowTrace
from tinydec.generation.generate import run_request
from tinydec.generation.policy import distribution
from tinydec.generation.request import Request
from tinydec.generation.schedule import BatchRequest
from tinydec.generation.selection import Selection
from tinydec.generation.trace import GenerationTrace, StepRecord
from tinydec.model.checkpoint import Checkpoint
from tinydec.verification.compare import TOLERANCES, absolute_difference


@dataclass(frozen=True)
class IsolationRecord:
    """One row of a batch held against its solo run.

    Attributes:
        row: the request id.
        layout: the batch's.
        neighbours: who shared the batch with it.
        steps: how many of its steps were compared.
        max_abs_error: largest logit difference; infinite where one is NaN.
        tolerance: largest accepted one.
        tokens_equal: it consumed and returned the same tokens at the same positions.
        draws_equal: it drew the same numbers and left its generator in the same state.
        stop_equal: the recorded reasons are the same, and it ended when its solo run does.
        excused: a token differs, by a margin below twice the logit error.
        first_difference: the first step that differs beyond what is excused, or None.
    """

    row: str
    layout: str
    neighbours: tuple[str, ...]
    steps: int
    max_abs_error: float
    tolerance: float
    tokens_equal: bool
    draws_equal: bool
    stop_equal: bool
    excused: bool
    first_difference: int | None

    @property
    def passed(self) -> bool:
        """Whether logits are within the tolerance and the rest is equal, or excused."""
        same = self.tokens_equal or self.excused
        return (
            self.max_abs_error <= self.tolerance and same and self.draws_equal and self.stop_equal
        )


def solo_trace(checkpoint: Checkpoint, request: BatchRequest) -> GenerationTrace:
    """Run a batch's request alone, with a cache.

    Raises:
        InputError: a prompt, policy or token id that the checkpoint refuses.
    """
    return run_request(
        Request(
            checkpoint,
            request.prompt_ids,
            request.policy,
            request.seed,
            max_new_tokens=request.max_new_tokens,
            stop_token_ids=request.stop_token_ids,
            request_id=request.request_id,
        )
    )


def isolation(
    checkpoint: Checkpoint,
    trace: BatchTrace,
    *,
    tolerance: float | None = None,
    solo: Mapping[BatchRequest, GenerationTrace] | None = None,
) -> tuple[IsolationRecord, ...]:
    """Hold every row of a batch against its solo run.

    Args:
        checkpoint: what the batch ran on, in the same dtype.
        trace: the batch.
        tolerance: largest accepted logit error; the one declared for the dtype unless given.
        solo: solo runs that are known already.

    Returns:
        One record for each request, in their order.
    """
    bound = TOLERANCES[trace.dtype] if tolerance is None else tolerance
    known = solo or {}
    exact = trace.dtype == "float64"
    return tuple(
        _compare(
            row,
            known.get(row.request) or solo_trace(checkpoint, row.request),
            trace,
            bound,
            exact,
        )
        for row in trace.rows
    )


def _compare(
    row: RowTrace, solo: GenerationTrace, trace: BatchTrace, tolerance: float, exact: bool
) -> IsolationRecord:
    found, expected = row.trace.steps, solo.steps
    error = 0.0
    tokens = draws = stops = True
    excused = False
    first: int | None = None
    compared = 0
    for step, alone in zip(found, expected, strict=False):
        distance = _distance(step.selection, alone.selection)
        error = max(error, distance)
        draws &= _draw(step) == _draw(alone)
        same_inputs = _inputs(step) == _inputs(alone)
        same_token = step.returned_id == alone.returned_id
        tokens &= same_inputs and same_token
        if same_inputs and not same_token and not exact:
            excused = margin(alone.selection) < 2 * distance
        stops &= excused or step.stop_reason == alone.stop_reason
        if first is None and not (
            distance <= tolerance and draws and (tokens or excused) and stops
        ):
            first = compared
        compared += 1
        if excused:
            break
    if not excused and row.end != CANCELLED:
        complete = len(found) == len(expected)
        tokens &= complete
        draws &= row.final_state == expected[-1].selection.state_after
        stops &= complete and row.stop_reason == solo.stop_reason
        if row.end == NOT_FINITE:  # the step that could not be recorded
            error = np.inf
        if first is None and not (complete and draws and stops):
            first = compared
    return IsolationRecord(
        row=row.request_id,
        layout=trace.layout,
        neighbours=trace.neighbours(row.request_id),
        steps=compared,
        max_abs_error=float(error),
        tolerance=tolerance,
        tokens_equal=tokens,
        draws_equal=draws,
        stop_equal=stops,
        excused=excused,
        first_difference=first,
    )


def _inputs(step: StepRecord) -> tuple[object, ...]:
    return step.consumed_ids, step.positions


def _distance(found: Selection, expected: Selection) -> float:
    return float(absolute_difference(found.logits, expected.logits).max())


def _draw(step: StepRecord) -> tuple[object, ...]:
    selection = step.selection
    return selection.uniform, selection.state_before, selection.state_after


def margin(selection: Selection) -> float:
    """Return by how much, in logits, a selection was decided.

    Greedy: the gap between the two highest logits. Sampling: the least of the gap at the edge
    of top-k, and, times the temperature, how far the number lies from the ends of its interval
    and the sums at the edge of top-p from p. A change of all logits by at most e moves a sum of
    probabilities by at most e / (2 T): the margin is a lenient bound.
    """
    policy = selection.policy
    row = selection.logits.astype(np.float64)
    ordered = np.sort(row)[::-1]
    gaps = ordered[:-1] - ordered[1:]
    if not policy.samples or selection.interval is None or selection.uniform is None:
        return float(gaps[0]) if len(gaps) else np.inf
    low, high = selection.interval
    inner = [edge for edge in (low, high) if 0 < edge < 1]
    margins = [policy.temperature * abs(selection.uniform - edge) for edge in inner]
    if policy.top_k is not None and policy.top_k < len(row):
        margins.append(float(gaps[policy.top_k - 1]))
    if policy.top_p is not None and policy.top_p < 1:
        ranked = np.sort(distribution(row[np.newaxis], policy).top_k[0])[::-1]
        edges = np.abs(np.cumsum(ranked) - policy.top_p)
        margins.append(policy.temperature * float(edges.min()))
        margins.append(float(gaps[gaps > 0].min(initial=np.inf)))
    return min(margins, default=np.inf)
