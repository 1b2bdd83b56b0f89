"""What many seeds select from one logits row: vectorised over the seeds, no record kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.policy import Floats, distribution
from tinydec.generation.stream import UniformStream
from tinydec.runspec import Policy, check_integer


def first_uniforms(count: int, first_seed: int = 0) -> Floats:
    """Return the first number that each of ``count`` consecutive seeds draws.

    Args:
        count: seeds, >= 1.
        first_seed: the lowest of them.

    Returns:
        (N,) float64 in [0, 1), read-only.

    Raises:
        InputError: a count below 1, or a seed that is not an integer >= 0.
    """
    check_integer("count", count, 1)
    check_integer("seed", first_seed, 0)
    drawn = np.array([UniformStream(first_seed + n).draw().uniform for n in range(count)])
    drawn.setflags(write=False)
    return drawn


def tokens_drawn(
    logits: NDArray[np.floating], policy: Policy, uniforms: Floats
) -> NDArray[np.intp]:
    """Return the token that each uniform number selects from one row.

    The same as :func:`tinydec.generation.policy.select` for each of them. The distribution is
    flat over tokens that cannot be selected, so the first id whose value exceeds the number is
    one that can.

    Args:
        logits: (V,), finite.
        policy: the rule; under greedy the numbers are not looked at.
        uniforms: (N,) in [0, 1).

    Returns:
        (N,) token ids.

    Raises:
        InputError: see :func:`tinydec.generation.policy.distribution`.
    """
    found = distribution(logits[np.newaxis, :], policy)  # (V,) -> (1, V)
    if not policy.samples:
        return np.full(len(uniforms), found.kept[0].argmax())
    return np.searchsorted(found.cdf[0], uniforms, side="right")


def token_counts(
    logits: NDArray[np.floating], policy: Policy, uniforms: Floats
) -> NDArray[np.intp]:
    """Return how often each token (V,) is selected; see :func:`tokens_drawn`."""
    return np.bincount(tokens_drawn(logits, policy, uniforms), minlength=len(logits))
