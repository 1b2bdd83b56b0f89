"""Checks of a policy that only call it: they hold for the package and fail for broken rules."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tests.generation.reference_policy import Chooser, intervals, kept_tokens, rank
from tinydec.generation.policy import Selection, choose_rows
from tinydec.generation.stream import Draw, GeneratorState, UniformStream
from tinydec.runspec import Policy

Selector = Callable[[NDArray, Policy, GeneratorState], Selection]

STATE = UniformStream(0).state
LAST = math.nextafter(1.0, 0.0)
#: Nearer to a threshold than this, two correct float64 computations may differ.
CLOSE = 1e-11


def choose(row: NDArray, policy: Policy, draw: Draw | GeneratorState) -> Selection:
    """The package's policy on one row."""
    return choose_rows(row[np.newaxis, :], policy, [draw])[0]


def given(chooser: Chooser, row: NDArray, policy: Policy, uniform: float) -> Selection:
    draw = Draw(uniform, STATE, STATE) if policy.samples else STATE
    return chooser(row, policy, draw)


def check_probabilities(chooser: Chooser, row: NDArray, policy: Policy) -> None:
    """They sum to one, are 0 outside the kept set and equal those of the reference."""
    found = given(chooser, row, policy, 0.5)
    ranked, expected = kept_tokens([float(x) for x in row], policy)
    assert abs(math.fsum(found.probabilities) - 1) < 1e-12
    outside = [i for i in range(len(row)) if i not in found.kept]
    assert not found.probabilities[outside].any()
    if not near_top_p(row, policy):
        assert found.kept == tuple(sorted(ranked))
        np.testing.assert_allclose(found.probabilities, expected, rtol=CLOSE, atol=1e-300)


def near_top_p(row: NDArray, policy: Policy) -> bool:
    """Whether rounding alone decides how many tokens reach p."""
    if policy.top_p is None:
        return False
    ranked, before = kept_tokens([float(x) for x in row], replace(policy, top_p=None))
    sums = np.cumsum([before[token] for token in ranked])
    return bool((abs(sums - policy.top_p) < CLOSE).any())


def check_kept(chooser: Chooser, row: NDArray, policy: Policy) -> None:
    """Top-k keeps exactly the k first, top-p the fewest of them that reach p; no skipping."""
    found = given(chooser, row, policy, 0.5)
    ranked = rank([float(x) for x in row])[: policy.top_k if policy.samples else 1]
    if policy.samples and policy.top_p is not None and policy.top_p < 1:
        before = given(chooser, row, replace(policy, top_p=None), 0.5).probabilities
        sums = [
            float(sum(Fraction(float(before[i])) for i in ranked[:count]))
            for count in range(1, len(ranked) + 1)
        ]
        count = next((n for n, total in enumerate(sums, 1) if total >= policy.top_p), len(ranked))
        ranked = ranked[:count]
    assert found.kept == tuple(sorted(ranked))


def check_tiles(chooser: Chooser, row: NDArray, policy: Policy) -> None:
    """Walk [0, 1) from interval to interval: each starts where the last one ended, up to 1."""
    if not policy.samples:
        return
    walked: list[int] = []
    uniform = 0.0
    while uniform < 1:
        found = given(chooser, row, policy, uniform)
        assert found.interval is not None
        low, high = found.interval
        assert low == uniform < high
        assert found.probabilities[found.token_id] > 0
        assert abs((high - low) - found.probabilities[found.token_id]) < 1e-14
        walked.append(found.token_id)
        uniform = high
    assert uniform == 1
    assert walked == sorted(walked)
    missed = [token for token in found.kept if token not in walked]
    assert (found.probabilities[missed] < 1e-15).all()  # too small to own a float


def check_token(chooser: Chooser, row: NDArray, policy: Policy, uniform: float) -> None:
    """The token is possible, its recorded interval holds the number, the reference agrees."""
    found = given(chooser, row, policy, uniform)
    assert found.token_id in found.kept
    assert found.probabilities[found.token_id] > 0
    if not policy.samples:
        assert (found.uniform, found.interval) == (None, None)
        assert found.token_id == rank([float(x) for x in row])[0]
        return
    assert found.interval is not None
    assert found.uniform == uniform
    low, high = found.interval
    assert 0 <= low <= uniform < high <= 1
    pieces = intervals(list(found.kept), [float(p) for p in found.probabilities])
    assert abs(np.array(pieces[found.token_id]) - found.interval).max() < 1e-14
    edges = np.array([edge for piece in pieces.values() for edge in piece if edge > 0])
    if not (abs(edges - uniform) < 1e-14).any():
        low, high = pieces[found.token_id]
        assert low <= uniform < high


def check_draws(selector: Selector, row: NDArray, policy: Policy, seed: int) -> None:
    """Sampling consumes exactly one number of NumPy's own generator, greedy none."""
    found = selector(row, policy, UniformStream(seed).state)
    generator = np.random.default_rng(seed)
    assert found.state_before == state_of(generator)
    assert found.uniform == (generator.random() if policy.samples else None)
    assert found.state_after == state_of(generator)
    assert UniformStream.resume(found.state_after).draw().uniform == generator.random()


def state_of(generator: np.random.Generator) -> GeneratorState:
    values = generator.bit_generator.state
    return GeneratorState(
        values["state"]["state"],
        values["state"]["inc"],
        values["has_uint32"],
        values["uinteger"],
    )


def check_all(chooser: Chooser, row: NDArray, policy: Policy, uniform: float) -> None:
    check_probabilities(chooser, row, policy)
    check_kept(chooser, row, policy)
    check_tiles(chooser, row, policy)
    for number in (uniform, 0.0, LAST):
        check_token(chooser, row, policy, number)
