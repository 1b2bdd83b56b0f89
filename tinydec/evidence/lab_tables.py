"""Tables of the audit and the fault lab: checks, differences, faults and their verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.verification.audit.checks import Check
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.kill_matrix import KillRow
from tinydec.verification.lab.pairing import Difference, TensorPair
from tinydec.verification.lab.symptom_index import Candidate

CHECKS = TableSchema(
    "audit.csv",
    "Every check of the audit, in dependency order",
    (
        integer("stage", "1 to 6; a stage behind a failing one is not judged"),
        text("check", "stable id of the check"),
        text("contract", "what must hold"),
        text("verdict", "passed, failed, not judged or not recorded"),
        text("observed", "the first deviation, or a summary", optional=True, rule="figures"),
        text("expected", "what should have been seen"),
        number("tolerance", "largest accepted difference", optional=True, rule="exact"),
        text("where", "place of the first deviation", optional=True),
        text("reason", "why it was not judged", optional=True),
    ),
)

DIFFERENCES = TableSchema(
    "differences.csv",
    "Recorded facts that differ between the correct session and the faulty one",
    (
        text("run", "a request, a row of a batch, or the session as a whole"),
        integer("step", "step of the run; empty for the run as a whole", optional=True),
        text("what", "the fact, or the step's first tensor that differs"),
        text("correct", "without the fault"),
        text("faulty", "with it"),
    ),
)

FAULTS = TableSchema(
    "faults.csv",
    "The fault classes",
    (
        text("id", "F01 to F42"),
        text("fault", "its name"),
        integer("stage", "the audit stage that must catch it"),
        text("what_goes_wrong", "in a sentence"),
        text("shows_in", "what can see it"),
        text("echoes", "where it was seen"),
        text("guard", "the guard that refuses it", optional=True),
        flag("silent", "whether the logits stay equal"),
        text("needs", "what it needs in order to act", optional=True),
    ),
)

VERDICTS = TableSchema(
    "kill_matrix.csv",
    "Faults switched on one by one, and what the audit made of each",
    (
        text("fault", "F01 to F42"),
        text("name", "its name"),
        text("variant", "another form of the same fault", optional=True),
        integer("stage_expected", "the audit stage that must catch it"),
        integer("stage_found", "the first failing stage", optional=True),
        text("first_tensor", "first one that differs from the uncached run", optional=True),
        integer("first_position", "its position", optional=True),
        number("max_abs_error", "largest logit error against the uncached run", rule="session"),
        flag("greedy_changed", "whether a highest logit is another token's"),
        text("caught_by", "the first failing check", optional=True),
        flag("silent", "whether the logits stay equal although it acts"),
        flag("acts", "whether anything recorded differs from the correct session"),
        text("verdict", "caught, cannot act here, or how it was missed"),
        text("where", "place of the first deviation", optional=True),
        text("observed", "what the check saw", optional=True, rule="figures"),
        text("expected", "what it should have seen", optional=True),
        text("guard", "the guard that refuses it while it is on", optional=True),
        text("guard_message", "what that guard says", optional=True),
        text("needs", "what it needs in order to act", optional=True),
        flag("passed", "caught at its own stage, or it cannot act"),
    ),
)

CANDIDATES = TableSchema(
    "symptom.csv",
    "Faults that show one symptom on this checkpoint",
    (
        text("fault", "id and name"),
        integer("stage", "the audit stage that catches it"),
        text("caught_by", "the first failing check"),
        text("observed", "what the check saw"),
        text("expected", "what it should have seen"),
        text("first_tensor", "first one that differs from the uncached run", optional=True),
        number("max_abs_error", "largest logit error against the uncached run"),
    ),
)

VALUES = TableSchema(
    "first_tensor.csv",
    "The first tensor that differs, value by value",
    (
        text("tensor", "its name"),
        text("index", "place of the value; axes as the tensor has them"),
        number("correct", "without the fault; empty where it has no such place", optional=True),
        number("faulty", "with it", optional=True),
        number("difference", "how far they are apart", optional=True),
    ),
)


def named(fault: Fault, variant: str = "") -> str:
    """Return a fault as tables and menus call it: ``F19 wrong-layer``."""
    return f"{fault.id} {fault.name}" + (f" ({variant})" if variant else "")


def checks(found: Iterable[Check]) -> pd.DataFrame:
    """Return one row for each check."""
    return frame(
        CHECKS,
        [
            (
                check.stage,
                check.id,
                check.title,
                check.verdict,
                check.observed or None,
                check.expected,
                check.tolerance,
                str(check.where) or None,
                check.reason or None,
            )
            for check in found
        ],
    )


def difference_rows(found: Iterable[Difference]) -> pd.DataFrame:
    """Return one row for each fact that differs."""
    return frame(DIFFERENCES, found)


def fault_rows(faults: Iterable[Fault]) -> pd.DataFrame:
    """Return the catalogue."""
    return frame(
        FAULTS,
        [
            (
                fault.id,
                fault.name,
                fault.stage,
                fault.what,
                fault.shows,
                fault.echoes,
                fault.guard,
                fault.silent,
                fault.needs or None,
            )
            for fault in faults
        ],
    )


def verdicts(
    rows: Iterable[KillRow], refusals: Mapping[str, str | None] = MappingProxyType({})
) -> pd.DataFrame:
    """Return one row for each fault that was switched on.

    Args:
        rows: what was found.
        refusals: what the guard of each fault says, by id.
    """
    return frame(VERDICTS, [_verdict_row(row, refusals.get(row.fault.id)) for row in rows])


def outcome(row: KillRow) -> str:
    """Return what became of a fault, in a few words."""
    if row.passed:
        return "caught" if row.acts else "cannot act here"
    if row.stage_found is None:
        return "missed"
    if row.stage_found != row.fault.stage:
        return f"caught at stage {row.stage_found}"
    return "caught, but the logits move" if row.fault.silent else "caught within the tolerance"


def _verdict_row(row: KillRow, refusal: str | None) -> tuple[object, ...]:
    return (
        row.fault.id,
        row.fault.name,
        row.variant or None,
        row.fault.stage,
        row.stage_found,
        row.first_tensor or None,
        row.first_position,
        row.max_abs_error,
        row.greedy_changed,
        row.caught_by or None,
        row.silent,
        row.acts,
        outcome(row),
        row.where or None,
        row.observed or None,
        row.expected or None,
        row.fault.guard,
        refusal,
        row.fault.needs or None,
        row.passed,
    )


def candidates(found: Sequence[Candidate]) -> pd.DataFrame:
    """Return one row for each fault that shows a symptom."""
    return frame(
        CANDIDATES,
        [
            (
                named(entry.fault),
                entry.fault.stage,
                entry.caught_by,
                entry.observed,
                entry.expected,
                entry.first_tensor or None,
                entry.max_abs_error,
            )
            for entry in found
        ],
    )


def values(pair: TensorPair) -> pd.DataFrame:
    """Return every value of a tensor in both sessions; shapes may differ."""
    shape = tuple(max(sizes) for sizes in zip(pair.correct.shape, pair.faulty.shape, strict=True))
    rows = []
    for number_of in range(math.prod(shape)):
        index = _index(number_of, shape)
        one, other = (
            float(array[index])
            if all(i < n for i, n in zip(index, array.shape, strict=True))
            else None
            for array in (pair.correct, pair.faulty)
        )
        apart = None if one is None or other is None else _apart(one, other)
        rows.append((pair.name, ", ".join(map(str, index)), one, other, apart))
    return frame(VALUES, rows)


def _index(count: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        count, place = divmod(count, size)
        index.append(place)
    return tuple(reversed(index))


def _apart(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    difference = abs(one - other)
    return math.inf if math.isnan(difference) else difference
