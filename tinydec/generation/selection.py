"""One selected token with everything that it was computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

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


class SelectedRows(Sequence[Selection]):
    """The selections of R rows under one policy, kept as columns until one is asked for.

    A batch selects for many rows at each step; making an object of each takes longer than
    computing them all. ``rows[i]`` is row i's selection, the same object every time.
    """

    __slots__ = (
        "_draws", "_intervals", "_kept", "_logits", "_made", "_policy", "_probabilities",
        "token_ids",
    )  # fmt: skip

    def __init__(
        self,
        policy: Policy,
        logits: NDArray[Any],
        probabilities: Floats,
        kept: NDArray[np.bool_],
        token_ids: list[int],
        draws: Sequence[Draw | GeneratorState],
        intervals: Floats | None,
    ) -> None:
        """Keep the columns; the arrays must be read-only.

        Args:
            policy: the rule.
            logits: (R, V).
            probabilities: (R, V).
            kept: (R, V), the tokens that could have been selected.
            token_ids: R, those that were.
            draws: R, what was drawn, or under greedy the state of the untouched generator.
            intervals: (2, R), where the numbers fell, or None under greedy.
        """
        self.token_ids = token_ids
        self._policy = policy
        self._logits = logits
        self._probabilities = probabilities
        self._kept = kept
        self._draws = tuple(draws)
        self._intervals = intervals
        self._made: dict[int, Selection] = {}

    def __len__(self) -> int:
        return len(self.token_ids)

    @overload
    def __getitem__(self, row: int) -> Selection: ...

    @overload
    def __getitem__(self, row: slice) -> list[Selection]: ...

    def __getitem__(self, row: int | slice) -> Selection | list[Selection]:
        if isinstance(row, slice):
            return [self[number] for number in range(len(self))[row]]
        number = range(len(self))[row]  # an index from the end, or IndexError
        if number not in self._made:
            self._made[number] = self._make(number)
        return self._made[number]

    def _make(self, row: int) -> Selection:
        draw = self._draws[row]
        uniform, before, after = draw if isinstance(draw, Draw) else (None, draw, draw)
        interval = None
        if self._intervals is not None:
            low, high = self._intervals[:, row].tolist()
            interval = (low, high)
        return Selection(
            self._policy,
            self._logits[row],
            self._probabilities[row],
            tuple(self._kept[row].nonzero()[0].tolist()),
            self.token_ids[row],
            uniform,
            interval,
            before,
            after,
        )
