"""One selected token with everything that it was computed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    computing them all. ``rows[i]`` is row i's selection, the same object every time; the first
    one asked for makes them all.
    """

    __slots__ = (
        "_drawn", "_intervals", "_kept", "_logits", "_made", "_policy", "_probabilities",
        "_states", "token_ids",
    )  # fmt: skip

    def __init__(
        self,
        policy: Policy,
        logits: NDArray[Any],
        probabilities: Floats,
        kept: NDArray[np.bool_],
        token_ids: list[int],
        drawn: Sequence[Draw],
        intervals: list[tuple[float, float]] | None,
        states: Sequence[GeneratorState] = (),
    ) -> None:
        """Keep the columns; the arrays must be read-only.

        Args:
            policy: the rule.
            logits: (R, V).
            probabilities: (R, V).
            kept: (R, V), the tokens that could have been selected.
            token_ids: R, those that were.
            drawn: R numbers, or none under greedy.
            intervals: R, where the numbers fell, or None under greedy.
            states: under greedy the R states of the untouched generators.
        """
        self.token_ids = token_ids
        self._policy = policy
        self._logits = logits
        self._probabilities = probabilities
        self._kept = kept
        self._drawn = tuple(drawn)
        self._states = tuple(states)
        self._intervals = intervals
        self._made: list[Selection] | None = None

    def __len__(self) -> int:
        return len(self.token_ids)

    @overload
    def __getitem__(self, row: int) -> Selection: ...

    @overload
    def __getitem__(self, row: slice) -> list[Selection]: ...

    def __getitem__(self, row: int | slice) -> Selection | list[Selection]:
        return self._all()[row]

    def __iter__(self) -> Iterator[Selection]:
        return iter(self._all())

    def _all(self) -> list[Selection]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> list[Selection]:
        """Make all of them: one by one, each would pay for its own look into every column."""
        policy = self._policy
        # An iterator over an array gives read-only rows of it: views, not copies.
        rows = zip(self._logits, self._probabilities, self._kept_ids(), self.token_ids, strict=True)
        if self._intervals is None:
            return [
                Selection(policy, *row, None, None, state, state)
                for row, state in zip(rows, self._states, strict=True)
            ]
        return [
            Selection(policy, *row, uniform, interval, before, after)
            for row, interval, (uniform, before, after) in zip(
                rows, self._intervals, self._drawn, strict=True
            )
        ]

    def _kept_ids(self) -> Iterator[tuple[int, ...]]:
        ids = self._kept.nonzero()[1].tolist()  # row by row
        if len(self) == 1:
            yield tuple(ids)
            return
        ends = np.add.reduce(self._kept, axis=1, dtype=np.intp).cumsum().tolist()
        start = 0
        for end in ends:
            yield tuple(ids[start:end])
            start = end
