"""Policies: from a logits row and a uniform number to a token, as pure functions.

The rules, in float64: subtract the row's maximum, divide by the temperature, softmax; keep the
top k and renormalise; keep the top p and renormalise; invert the cumulative distribution in
token-id order. Ties go to the lowest token id throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.generation.seams import CORRECT_POLICY, PolicySeams
from tinydec.generation.selection import SelectedRows
from tinydec.generation.selection import Selection as Selection
from tinydec.generation.stream import Draw, GeneratorState, UniformStream
from tinydec.runspec import Policy

Floats = NDArray[np.float64]


class NotFiniteError(InputError):
    """Logits that are NaN or infinite: nothing can be selected from them."""


class Distribution(NamedTuple):
    """What a policy makes of R logits rows, stage by stage: (R, V) arrays, all read-only."""

    scaled: Floats  # (logits - maximum) / temperature
    softmax: Floats  # probabilities after the temperature
    top_k: Floats  # after top-k, renormalised
    probabilities: Floats  # after top-p, renormalised
    kept: NDArray[np.bool_]  # tokens that can be selected
    cdf: Floats  # running sum of the probabilities, 1 from the last probability above 0 on


def distribution(
    logits: NDArray[Any], policy: Policy, seams: PolicySeams = CORRECT_POLICY
) -> Distribution:
    """Return what ``policy`` makes of logits rows; draws nothing.

    Under greedy the kept set is the highest logit alone, with probability 1; the softmax
    beside it is at temperature 1.

    Args:
        logits: (R, V), finite.
        policy: the rule.
        seams: interventions; none by default.

    Raises:
        InputError: logits that are not finite or not (R, V); a ``top_k`` above V.
    """
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise InputError(f"logits: expected axes (R, V), found shape {logits.shape}")
    if not np.isfinite(logits).all():
        raise NotFiniteError("logits: expected finite values, found NaN or infinity")
    size = logits.shape[1]
    policy.check_vocabulary(size)
    row = logits.astype(np.float64, order="C")  # sums along V must not depend on the layout
    temperature = policy.temperature if policy.samples else 1.0
    with np.errstate(over="ignore"):  # a tiny temperature sends the rest to -inf, rightly
        centred = row - row.max(axis=1, keepdims=True)
        scaled = centred * temperature if seams.multiplies_temperature else centred / temperature
    softmax = _normalised(np.exp(scaled))
    count = size if policy.top_k is None else policy.top_k
    if not policy.samples:
        count = 1
    order = _order(row, seams)
    kept = _first_in_order(order, np.arange(size) < count)
    if seams.keeps_ties:
        kept = row >= np.take_along_axis(row, order, axis=1)[:, count - 1 : count]
    normalised = _normalised if seams.renormalises else np.asarray
    top_k = softmax if count == size else normalised(np.where(kept, softmax, 0.0))
    probabilities = top_k
    if policy.samples and policy.top_p is not None and policy.top_p < 1:
        ranked = np.take_along_axis(top_k, order, axis=1)
        short = _sums_before(ranked) < policy.top_p  # those before a token do not reach p yet
        kept = _first_in_order(order, short & (np.arange(size) < count))
        probabilities = normalised(np.where(kept, top_k, 0.0))
    found = Distribution(scaled, softmax, top_k, probabilities, kept, _cdf(probabilities))
    for array in found:
        array.setflags(write=False)
    return found


def _order(row: Floats, seams: PolicySeams) -> NDArray[np.intp]:
    """Return token ids (R, V), highest logit first, ties by lowest id."""
    if not seams.ties_take_last:
        return np.argsort(-row, axis=1, kind="stable")
    reverse = np.argsort(-row[:, ::-1], axis=1, kind="stable")
    order: NDArray[np.intp] = row.shape[1] - 1 - reverse
    return order


def _normalised(weights: Floats) -> Floats:
    result: Floats = weights / weights.sum(axis=1, keepdims=True)
    return result


def _first_in_order(order: NDArray[np.intp], by_rank: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Turn flags by rank, (V,) or (R, V), into flags by token id, (R, V)."""
    kept = np.zeros(order.shape, np.bool_)
    np.put_along_axis(kept, order, np.broadcast_to(by_rank, order.shape), axis=1)
    return kept


def _sums_before(values: Floats) -> Floats:
    """Return, for each value of a row, the sum of those before it, rounded once.

    Eight tokens of probability 0.1 reach 0.8, but added up plainly they miss it by the rounding
    of each addition; Knuth's two-sum gives those errors, which are added back.
    """
    total = np.cumsum(values, axis=1)
    before = np.zeros_like(total)
    before[:, 1:] = total[:, :-1]
    added = total - before
    errors = (before - (total - added)) + (values - added)
    before[:, 1:] += np.cumsum(errors, axis=1)[:, :-1]
    return before


def _cdf(probabilities: Floats) -> Floats:
    cdf = np.minimum(np.cumsum(probabilities, axis=1), 1.0)
    size = probabilities.shape[1]
    last = size - 1 - (probabilities[:, ::-1] > 0).argmax(axis=1)  # (R,): highest possible id
    cdf[np.arange(size) >= last[:, np.newaxis]] = 1.0  # rounding must not leave a gap at the end
    return cdf


def choose_rows(
    logits: NDArray[Any],
    policy: Policy,
    draws: Sequence[Draw | GeneratorState],
    seams: PolicySeams = CORRECT_POLICY,
) -> list[Selection]:
    """Select one token for each of R rows under one policy, from numbers already drawn.

    Args:
        logits: (R, V), finite.
        policy: the rule for all rows.
        draws: for each row its draw, or under greedy the state of its untouched generator.
        seams: interventions; none by default.

    Raises:
        InputError: see :func:`distribution`; or draws that do not match rows and policy.
    """
    return list(select_columns(logits, policy, draws, seams))


def select_columns(
    logits: NDArray[Any],
    policy: Policy,
    draws: Sequence[Draw | GeneratorState],
    seams: PolicySeams = CORRECT_POLICY,
) -> SelectedRows:
    """Do what :func:`choose_rows` does and leave the result in columns.

    Raises:
        InputError: see :func:`choose_rows`.
    """
    found = distribution(logits, policy, seams)
    if len(draws) != len(logits):
        raise InputError(f"draws: expected {len(logits)}, one for each row, found {len(draws)}")
    original = logits.copy()
    original.setflags(write=False)
    columns = policy, original, found.probabilities, found.kept
    if not policy.samples:
        states = [draw for draw in draws if not isinstance(draw, Draw)]
        if len(states) != len(draws):
            raise InputError("draws: expected none under greedy, found a uniform number")
        tokens = found.kept.argmax(axis=1)
        return SelectedRows(*columns, tokens.tolist(), (), None, states)
    drawn = [draw for draw in draws if isinstance(draw, Draw)]
    if len(drawn) != len(draws):
        raise InputError("draws: expected one uniform number for each row, found none")
    uniforms = [draw.uniform for draw in drawn]
    for uniform in uniforms:
        if not 0 <= uniform < 1:
            raise InputError(f"draws: expected a number from 0 to below 1, found {uniform!r}")
    column = np.array(uniforms)[:, np.newaxis]  # (R, 1)
    tokens = (found.kept & (column < found.cdf)).argmax(axis=1).tolist()
    return SelectedRows(*columns, tokens, drawn, _intervals(found.cdf, tokens))


def _intervals(cdf: Floats, tokens: list[int]) -> list[tuple[float, float]]:
    """Return each row's interval of the token that it selected.

    The distribution is flat over tokens that are not kept, so the value at the id before is
    the one at the kept token before.
    """
    value = cdf.item
    return [
        (value(row, token - 1) if token else 0.0, value(row, token))
        for row, token in enumerate(tokens)
    ]


def select(logits: NDArray[Any], policy: Policy, state: GeneratorState) -> Selection:
    """Select a token from one row (V,), going on from a generator state.

    Raises:
        InputError: see :func:`distribution`.
    """
    return select_rows(logits[np.newaxis, :], [policy], [state])[0]  # (V,) -> (1, V)


def select_rows(
    logits: NDArray[Any], policies: Sequence[Policy], states: Sequence[GeneratorState]
) -> list[Selection]:
    """Select one token for each of R rows, each with its own policy and generator state.

    Rows with the same policy are computed together; the result of a row does not depend on
    its neighbours.

    Raises:
        InputError: see :func:`distribution`; or other numbers of policies or states than rows.
    """
    for name, given in (("policies", policies), ("states", states)):
        if len(given) != len(logits):
            raise InputError(f"{name}: expected {len(logits)}, one a row, found {len(given)}")
    selections: dict[int, Selection] = {}
    for policy in dict.fromkeys(policies):
        rows = [row for row, other in enumerate(policies) if other == policy]
        draws = [
            UniformStream.resume(states[row]).draw() if policy.samples else states[row]
            for row in rows
        ]
        selections |= zip(rows, choose_rows(logits[rows], policy, draws), strict=True)
    return [selections[row] for row in range(len(logits))]


def replay(selection: Selection) -> Selection:
    """Recompute a selection from its record alone: logits, policy, generator state before."""
    return select(selection.logits, selection.policy, selection.state_before)


def build_policy(
    kind: str,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    size: int,
    seams: PolicySeams = CORRECT_POLICY,
) -> Policy:
    """Return a policy for a vocabulary of ``size`` tokens, refusing numbers outside their domain.

    Raises:
        InputError: a number outside its domain, or a ``top_k`` above ``size``.
    """
    if seams.clamps_domain:
        temperature = max(temperature, 1e-3)
        top_k = None if top_k is None else min(max(top_k, 1), size)
        top_p = None if top_p is None else min(max(top_p, 1e-3), 1.0)
    policy = Policy(kind, temperature, top_k, top_p)
    policy.check_vocabulary(size)
    return policy
