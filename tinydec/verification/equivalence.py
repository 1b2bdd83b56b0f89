"""Equivalence: every prefix through both paths, in every split into prefill and decode.

The decoder without a cache is the reference. A prefix passes in one split when the final logits,
every named intermediate and every stored key and value agree within the tolerance, every cache
has the shape and length it should have after every step, and the highest logit is the same
(unless the reference's two highest lie closer together than twice the tolerance).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.trace import snapshot
from tinydec.model.activations import Activations, freeze, tensor_names
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.model.guards import GUARDS
from tinydec.model.seams import CORRECT, Seams
from tinydec.verification.alignment import first_difference, position_errors
from tinydec.verification.cache_records import CacheRecord, cache_records
from tinydec.verification.cached_run import CachedStep, run_cached
from tinydec.verification.compare import TOLERANCES, absolute_difference, ulp_distance
from tinydec.verification.prefixes import PrefixCase, controlled_prefixes, distinct_count

Array = NDArray[Any]
Floats = NDArray[np.float64]


def split_mode(prefill: int, length: int) -> str:
    """Return a split of ``length`` tokens in words, such as ``prefill 1 + decode 3``."""
    return f"prefill {prefill} + decode {length - prefill}"


@dataclass(frozen=True, eq=False)
class SplitResult:
    """One prefix through the cached path in one split.

    Attributes:
        case: the prefix.
        prefill_length: P tokens were prefilled, the other T - P decoded one by one.
        logits: (V,) the cached path's final row.
        max_abs_error: largest difference from the full row.
        mean_abs_error: mean difference.
        max_ulp: largest number of representable numbers in between.
        full_argmax, cached_argmax: ids of the highest logits, ties by lowest id.
        margin: how far the full row's highest logit is above the next.
        errors: (N, T) largest difference of every tensor at every position.
        first_difference: the first tensor beyond the tolerance and its position, or None.
        records: one per step and layer.
        steps: what was recorded, of a batch in which this prefix is row ``row``.
    """

    case: PrefixCase
    prefill_length: int
    logits: Array
    max_abs_error: float
    mean_abs_error: float
    max_ulp: int
    tolerance: float
    full_argmax: int
    cached_argmax: int
    margin: float
    errors: Floats
    first_difference: tuple[str, int] | None
    records: tuple[CacheRecord, ...]
    steps: tuple[CachedStep, ...]
    row: int

    def __post_init__(self) -> None:
        freeze(self.logits, self.errors)

    @property
    def passed(self) -> bool:
        """Whether logits, intermediates, caches and the highest logit agree; see the module."""
        same_choice = self.cached_argmax == self.full_argmax or self.margin < 2 * self.tolerance
        agrees = self.max_abs_error <= self.tolerance and self.first_difference is None
        return agrees and same_choice and all(record.passed for record in self.records)

    @property
    def mode(self) -> str:
        """The split in words, such as ``prefill 1 + decode 3``."""
        return split_mode(self.prefill_length, self.case.length)

    @property
    def shapes_valid(self) -> bool:
        """Whether every cache had the expected shapes and lengths after every step."""
        return all(record.shapes_valid for record in self.records)


@dataclass(frozen=True, eq=False)
class PrefixResult:
    """One prefix: the reference and every split."""

    case: PrefixCase
    logits: Array  # (V,) the full forward's final row
    full: Activations
    row: int  # of the batch that ``full`` was computed in
    splits: tuple[SplitResult, ...]

    @property
    def token_by_token(self) -> SplitResult:
        """The split that prefills one token and decodes the rest."""
        return self.splits[0]

    @property
    def max_abs_error(self) -> float:
        """Largest logit error over the splits."""
        return max(split.max_abs_error for split in self.splits)

    @property
    def worst(self) -> SplitResult:
        """A split that fails, if there is one, else that with the largest logit error."""
        return max(self.splits, key=lambda split: (not split.passed, split.max_abs_error))

    @property
    def passed(self) -> bool:
        """Whether the prefix passes in every split."""
        return all(split.passed for split in self.splits)


@dataclass(frozen=True, eq=False)
class EquivalenceReport:
    """All prefixes of one checkpoint in one number format."""

    checkpoint_digest: str
    dtype: str
    tolerance: float
    prefixes: tuple[PrefixResult, ...]

    @property
    def rows(self) -> tuple[SplitResult, ...]:
        """Every prefix in every split (40 for the 16 controlled prefixes)."""
        return tuple(split for prefix in self.prefixes for split in prefix.splits)

    @property
    def max_abs_error(self) -> float:
        """Largest logit error over all rows."""
        return max(row.max_abs_error for row in self.rows)

    @property
    def passed_count(self) -> int:
        """Prefixes that pass in every split."""
        return sum(prefix.passed for prefix in self.prefixes)

    @property
    def distinct(self) -> int:
        """Different token sequences among the prefixes."""
        return distinct_count(tuple(prefix.case for prefix in self.prefixes))

    @property
    def passed(self) -> bool:
        """Whether every prefix passes in every split."""
        return self.passed_count == len(self.prefixes)


def verify_prefixes(
    checkpoint: Checkpoint,
    *,
    dtype: str = "float32",
    tolerance: float | None = None,
    cases: Sequence[PrefixCase] | None = None,
    every_split: bool = True,
    side_by_side: bool = False,
) -> EquivalenceReport:
    """Compare both paths on every prefix.

    Args:
        checkpoint: the decoder, cast to ``dtype`` first.
        dtype: number format of the arithmetic.
        tolerance: largest accepted difference; the declared one of the dtype unless given.
        cases: the prefixes; the controlled ones unless given.
        every_split: also run every other split than token by token.
        side_by_side: run prefixes of one length as one batch, which is faster; alone, each
            cache has B = 1.

    Raises:
        InputError: an unknown dtype.
    """
    cast = checkpoint.cast(dtype)
    bound = TOLERANCES[dtype] if tolerance is None else tolerance
    chosen = controlled_prefixes(checkpoint) if cases is None else tuple(cases)
    results: dict[PrefixCase, PrefixResult] = {}
    for group in _groups(chosen, side_by_side):
        length = group[0].length
        splits = range(1, (length if every_split else 1) + 1)
        results |= zip(group, _verify_group(cast, group, splits, bound), strict=True)
    prefixes = tuple(results[case] for case in chosen)
    return EquivalenceReport(checkpoint.digest, dtype, bound, prefixes)


def compare_split(
    checkpoint: Checkpoint,
    group: Sequence[PrefixCase],
    full: Activations,
    prefill_length: int,
    tolerance: float,
    seams: Seams = CORRECT,
    guards: frozenset[str] = GUARDS,
) -> tuple[SplitResult, ...]:
    """Run B prefixes of one length through the cached path and hold them against ``full``.

    Raises:
        GuardError: a guard refused an input.
    """
    ids = np.array([case.token_ids for case in group])  # (B, T)
    steps = run_cached(checkpoint, ids, prefill_length, seams, guards)
    errors = position_errors(full, [step.activations for step in steps])  # (B, N, T)
    records = cache_records(full, steps, tolerance)  # by row
    names = tensor_names(len(full.blocks))
    cached = steps[-1].activations.last_logits  # (B, V)
    reference = full.last_logits  # (B, V)
    differences = absolute_difference(reference, cached)  # (B, V)
    worsts = differences.max(axis=1).tolist()
    means = differences.mean(axis=1).tolist()
    ulps = ulp_distance(reference, cached).max(axis=1).tolist()
    tops, choices = reference.argmax(axis=1).tolist(), cached.argmax(axis=1).tolist()
    margins = _margins(reference)
    agrees = bool((errors <= tolerance).all())  # then no row has a first difference
    results = []
    for row, case in enumerate(group):
        first = None if agrees else first_difference(errors[row], names, tolerance)
        results.append(
            SplitResult(
                case=case,
                prefill_length=prefill_length,
                logits=cached[row],
                max_abs_error=worsts[row],
                mean_abs_error=means[row],
                max_ulp=ulps[row],
                tolerance=tolerance,
                full_argmax=tops[row],
                cached_argmax=choices[row],
                margin=margins[row],
                errors=errors[row],
                first_difference=first,
                records=records[row],
                steps=steps,
                row=row,
            )
        )
    return tuple(results)


def _groups(cases: Sequence[PrefixCase], side_by_side: bool) -> tuple[tuple[PrefixCase, ...], ...]:
    if not side_by_side:
        return tuple((case,) for case in cases)
    lengths = dict.fromkeys(case.length for case in cases)
    return tuple(tuple(c for c in cases if c.length == length) for length in lengths)


def _verify_group(
    checkpoint: Checkpoint, group: Sequence[PrefixCase], splits: range, tolerance: float
) -> tuple[PrefixResult, ...]:
    full = snapshot(full_forward(checkpoint, np.array([case.token_ids for case in group])))
    by_split = [compare_split(checkpoint, group, full, p, tolerance) for p in splits]
    return tuple(
        PrefixResult(case, full.last_logits[row], full, row, tuple(s[row] for s in by_split))
        for row, case in enumerate(group)
    )


def _margins(logits: Array) -> list[float]:
    """Return how far the highest logit of each row (B, V) is above the next."""
    if logits.shape[1] == 1:
        return [np.inf] * len(logits)
    highest = np.partition(logits, -2, axis=1)[:, -2:].astype(np.float64)  # (B, V) -> (B, 2)
    margins: list[float] = (highest[:, 1] - highest[:, 0]).tolist()
    return margins
