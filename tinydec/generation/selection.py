"""One selected token with everything that it was computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.stream import Draw, GeneratorState
from tinydec.runspec import Policy

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Selection:
    """One selected token with everything that it was computed from.

    Attributes:
        policy: the rule.
        logits: (V,) the original row, read-only, in the dtype of the decoder.
        probabilities: (V,) float64, read-only; 0 for tokens that are not kept.
        kept: ids that could have been selected, ascending.
        token_id: the selected token.
        uniform: the number drawn, or None under greedy.
        interval: [low, high) of the cumulative distribution that the number fell in, or None.
            The intervals of the kept tokens tile [0, 1) in id order; that of a token whose
            probability underflowed to 0 is empty.
        state_before: the generator before the draw.
        state_after: the generator after it; the same as before under greedy.
    """

    policy: Policy
    logits: NDArray[Any]
    probabilities: Floats
    kept: tuple[int, ...]
    token_id: int
    uniform: float | None
    interval: tuple[float, float] | None
    state_before: GeneratorState
    state_after: GeneratorState

    if not TYPE_CHECKING:  # mypy would take every attribute for granted

        def __getattr__(self, name: str) -> Any:
            """Read ``kept`` off the mask of kept tokens, once."""
            mask = self.__dict__.get("_mask") if name == "kept" else None
            if mask is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            kept = self.__dict__["kept"] = tuple(mask.nonzero()[0].tolist())
            return kept

    def same_as(self, other: Selection) -> bool:
        """Whether every recorded value is the same, arrays bit by bit."""
        return (
            self.policy == other.policy
            and self.kept == other.kept
            and self.token_id == other.token_id
            and (self.uniform, self.interval) == (other.uniform, other.interval)
            and self.state_before == other.state_before
            and self.state_after == other.state_after
            and _same_bits(self.logits, other.logits)
            and _same_bits(self.probabilities, other.probabilities)
        )


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and (
        one.tobytes() == other.tobytes()
    )


def selected(
    policy: Policy,
    logits: NDArray[Any],
    probabilities: Floats,
    mask: NDArray[np.bool_],
    token_id: int,
    draw: Draw | GeneratorState,
    interval: tuple[float, float] | None,
) -> Selection:
    """Return a selection whose ``kept`` is read off a mask when somebody asks for it.

    A frozen dataclass sets its fields one by one by a detour. Filling in all of them at once
    takes half the time, which counts when a batch selects for many rows.

    Args:
        policy: the rule.
        logits: (V,), read-only.
        probabilities: (V,), read-only.
        mask: (V,), read-only: the tokens that could have been selected.
        token_id: the one that was.
        draw: what was drawn, or under greedy the state of the untouched generator.
        interval: where the number fell, or None under greedy.
    """
    selection = object.__new__(Selection)
    uniform, before, after = draw if isinstance(draw, Draw) else (None, draw, draw)
    values = {
        "policy": policy,
        "logits": logits,
        "probabilities": probabilities,
        "token_id": token_id,
        "uniform": uniform,
        "interval": interval,
        "state_before": before,
        "state_after": after,
        "_mask": mask,
    }
    object.__setattr__(selection, "__dict__", values)
    return selection
