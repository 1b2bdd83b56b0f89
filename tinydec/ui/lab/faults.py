"""The fault lab: predictions, the first tensor that parts as grids, and what is said of a fault."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinydec.evidence.lab_tables import named
from tinydec.figures.log_axis import short
from tinydec.model.activations import CACHE_TENSORS, SCORE_TENSORS
from tinydec.model.vocabulary import Vocabulary
from tinydec.ui.exercise import Task
from tinydec.ui.html import digits, spelled
from tinydec.ui.lab.exhibits import Exhibit
from tinydec.ui.number_grid import Grid
from tinydec.verification.audit.checks import STAGES
from tinydec.verification.compare import absolute_difference
from tinydec.verification.faults import FAULTS
from tinydec.verification.lab.fault import BATCH, Fault
from tinydec.verification.lab.kill_matrix import KillRow
from tinydec.verification.lab.pairing import StepPair, TensorPair

YES, NO = "yes", "no"

#: Cells drawn of a larger tensor.
_MOST_ROWS, _MOST_COLUMNS = 6, 8


# Predictions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """One prediction beside what happened; ``said`` is None where nothing was predicted."""

    question: str
    said: str | None
    happened: str

    @property
    def right(self) -> bool:
        """Whether the prediction came true."""
        return self.said == self.happened


def stage_name(stage: int | None) -> str:
    """Return a stage as the predictions spell it."""
    return "none" if stage is None else f"{stage} {STAGES[stage]}"


def marks(
    exhibit: Exhibit, stage: str | None, parted: str | None, greedy: str | None
) -> tuple[Mark, ...]:
    """Hold three predictions against what the audit and the recording say."""
    row = exhibit.row
    moved = not row.max_abs_error <= exhibit.session.report.tolerance
    return (
        Mark("First failing stage", stage, stage_name(row.stage_found)),
        Mark("Cached and full logits part", parted, YES if moved else NO),
        Mark("The highest logit changes", greedy, YES if row.greedy_changed else NO),
    )


# Words -------------------------------------------------------------------------------------------


def caught_numbers(exhibit: Exhibit | None, revealed: bool) -> str:
    """Return the lab's formula in numbers, for a hidden fault (None) and an unrevealed one too."""
    if exhibit is None:
        return f"first failing stage: ?, one of {len(STAGES)}"
    if not revealed:
        name = named(exhibit.fault, exhibit.variant)
        return f"{name}: first failing stage ?, one of {len(STAGES)}"
    return verdict_numbers(exhibit.row)


def verdict_numbers(row: KillRow) -> str:
    """Return whether a fault is caught at its own stage, with the numbers."""
    name = named(row.fault, row.variant)
    if not row.acts:
        return f"{name} cannot act here"
    if not row.stage_found:
        return f"{name}: no stage fails, {row.fault.stage} should"
    sign = "=" if row.stage_found == row.fault.stage else "≠"
    return f"{name}: stage {row.stage_found} {sign} {row.fault.stage}, by {row.caught_by}"


def acting_text(exhibit: Exhibit) -> str:
    """Return what the audit and the logits say, or why nothing happens."""
    row, fault = exhibit.row, exhibit.fault
    tolerance = exhibit.session.report.tolerance
    if not row.acts:
        needs = fault.needs or "something that this session does not have"
        return f"Cannot act here: nothing recorded differs on this checkpoint. It needs {needs}."
    error = digits(row.max_abs_error, 3)
    if row.stage_found is None:
        return f"The audit misses it: with {short(tolerance)} accepted, every stage passes."
    if row.max_abs_error <= tolerance:
        logits = (
            "Within the faulty session cached and full logits agree "
            f"({error} ≤ {short(tolerance)}): comparing them would not find it."
        )
    else:
        greedy = "and" if row.greedy_changed else "and yet not"
        logits = (
            f"Within the faulty session cached and full logits part by {error} "
            f"({short(tolerance)} is accepted), {greedy} the highest of them changes."
        )
    where = f" at {row.where}" if row.where else ""
    return (
        f"The check {row.caught_by} saw “{spelled(row.observed)}” instead of "
        f"“{spelled(row.expected)}”{where}. "
        f"{logits}"
    )


def guard_text(exhibit: Exhibit) -> str:
    """Return what a guard says, or that none sees this fault."""
    fault = exhibit.fault
    if fault.guard is None:
        return (
            "No guard sees it: a guard knows digest, request, layer, position and room, and these "
            f"are all in order. It shows in: {fault.shows}."
        )
    if exhibit.refusal is None:
        return f"The {fault.guard} guard has nothing to refuse here."
    return (
        f"With the {fault.guard} guard on, the session ends before any wrong number is computed: "
        f"“{exhibit.refusal}”. What you see here ran with that guard off."
    )


def logits_text(exhibit: Exhibit, revealed: bool) -> str:
    """Return what the left figure says, for a screen reader."""
    if exhibit.logits is None:
        return "No logits."
    place, correct, faulty = exhibit.logits
    if not revealed:
        return f"Final logits of the correct session, {place}. The faulty ones are not revealed."
    with np.errstate(invalid="ignore"):
        apart = digits(float(np.abs(correct.astype(np.float64) - faulty).max()), 3)
    return f"Final logits of the correct and the faulty session, {place}, up to {apart} apart."


def tensors_text(exhibit: Exhibit, revealed: bool) -> str:
    """Return what the right figure says, for a screen reader."""
    if not revealed:
        return "How far each tensor is off: not revealed."
    first = exhibit.shown.first if exhibit.shown else None
    if first is None:
        return "No tensor of the step differs from the correct session."
    return f"{first.name} is the first tensor to differ, by {digits(first.error, 3)}."


# The first tensor --------------------------------------------------------------------------------


def first_grids(pair: StepPair, vocabulary: Vocabulary, tolerance: float) -> list[Grid]:
    """Return the first tensor that parts as two grids, correct and faulty.

    Of a tensor with heads the head with the largest difference is shown; of a large one a window
    that holds the first differing value. Cells that differ are framed in both.
    """
    tensor = pair.first
    if tensor is None:
        return []
    head = _head(tensor)
    one, other = (
        array if head is None else array[head] for array in (tensor.correct, tensor.faulty)
    )
    apart = _apart(one, other, tolerance)
    row, column = _first_place(apart)
    rows = _window(apart.shape[0], row, _MOST_ROWS)
    columns = _window(apart.shape[1], column, _MOST_COLUMNS)
    finite = np.concatenate([a[np.isfinite(a)] for a in (one, other)])
    limit = float(np.abs(finite).max(initial=0.0)) or None
    title = tensor.name if head is None else f"{tensor.name}, head {head}"
    return [
        Grid(
            name=name,
            title=f"{title}: {name}",
            values=_cut(array, rows, columns),
            rows=[_row_name(tensor.name, pair.correct.start, r) for r in rows],
            columns=[_column_name(tensor.name, vocabulary, c) for c in columns],
            limit=limit,
            role=role,
            marked=[
                (r - rows.start, c - columns.start) for r in rows for c in columns if apart[r, c]
            ],
        )
        for name, array, role in (("correct", one, "full"), ("faulty", other, "error"))
    ]


def _head(tensor: TensorPair) -> int | None:
    if tensor.correct.ndim < 3:
        return None
    if tensor.correct.shape != tensor.faulty.shape:
        return 0
    difference = absolute_difference(tensor.correct, tensor.faulty)
    return int(np.unravel_index(int(difference.argmax()), difference.shape)[0])


def _apart(
    one: NDArray[np.floating], other: NDArray[np.floating], tolerance: float
) -> NDArray[np.bool_]:
    """Return which places differ, over the larger of both shapes."""
    shape = tuple(max(sizes) for sizes in zip(one.shape, other.shape, strict=True))
    found = np.ones(shape, np.bool_)
    common = tuple(slice(min(sizes)) for sizes in zip(one.shape, other.shape, strict=True))
    difference = absolute_difference(one[common], other[common])
    difference[np.isnan(one[common]) & np.isnan(other[common])] = 0.0
    found[common] = ~(difference <= tolerance)
    return found


def _first_place(apart: NDArray[np.bool_]) -> tuple[int, int]:
    places = np.argwhere(apart)
    row, column = (0, 0) if not len(places) else places[0].tolist()
    return row, column


def _window(count: int, place: int, most: int) -> range:
    first = min(max(place - most // 2, 0), max(count - most, 0))
    return range(first, min(first + most, count))


def _cut(array: NDArray[np.floating], rows: range, columns: range) -> NDArray[np.float64]:
    """Return a window of an array in float64; NaN where the array does not reach."""
    found = np.full((len(rows), len(columns)), np.nan)
    part = array[rows.start : rows.stop, columns.start : columns.stop]
    found[: part.shape[0], : part.shape[1]] = part
    return found


def _row_name(tensor: str, start: int, row: int) -> str:
    if tensor.rpartition(".")[2] in CACHE_TENSORS:
        return f"slot {row}"
    return f"input {start + row}"


def _column_name(tensor: str, vocabulary: Vocabulary, column: int) -> str:
    if tensor in ("logits", "probabilities"):
        return vocabulary.tokens[column]
    if tensor.rpartition(".")[2] in SCORE_TENSORS:
        return f"key {column}"
    return str(column)


# Exercises ---------------------------------------------------------------------------------------


def silent_task(record: Callable[[Fault], Exhibit], rng: random.Random) -> Task:
    """Ask which of four faults a comparison of cached and full logits would miss."""
    faults = [fault for fault in FAULTS if fault.part != BATCH]
    rng.shuffle(faults)
    silent = [fault for fault in faults if fault.silent]
    loud = [fault for fault in faults if not fault.silent and fault.stage <= 4]
    answer = next((f for f in silent if record(f).row.silent), None)
    others = [f for f in loud[:6] if _moves(record(f))][:3]
    if answer is None or not others:
        return Task("No silent fault can act on this checkpoint.", 0, "None acts.", "0")
    choices = [answer, *others]
    rng.shuffle(choices)
    lines = "\n".join(f"- `{fault.name}`: {fault.what}" for fault in choices)
    errors = ", ".join(
        f"`{fault.name}` {digits(record(fault).row.max_abs_error, 3)}" for fault in choices
    )
    found = record(answer).row
    return Task(
        question=(
            "Your only test compares cached and full logits within the same session. Which of "
            f"these faults does it miss?\n\n{lines}"
        ),
        answer=answer.name,
        hint="Ask of each: does it change one path only, or both alike, or nothing that adds up?",
        solution=(
            f"`{answer.name}`. Largest differences here: {errors}. Only structure gives it away: "
            f"`{found.caught_by}` saw `{spelled(found.observed)}`."
        ),
        choices=tuple(fault.name for fault in choices),
    )


def _moves(exhibit: Exhibit) -> bool:
    row = exhibit.row
    return row.acts and not row.max_abs_error <= exhibit.session.report.tolerance
