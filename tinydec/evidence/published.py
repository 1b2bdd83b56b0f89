"""The course's published values beside what is measured here at this moment."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tinydec.errors import InputError
from tinydec.evidence.audit import SEEDED_POLICY, AuditReport
from tinydec.runspec import shown

PUBLISHED_PATH = Path(__file__).resolve().parents[2] / "assets" / "published.json"

#: What is said of a measurement that the published figure is not about.
OTHER_RUN = "Measured in another set-up than the published one: {}. "


@dataclass(frozen=True)
class PublishedValue:
    """One published value.

    Attributes:
        id: which measurement it stands beside.
        quantity: what it is, in words.
        value: a number, or the text of a trace.
        unit: of the number; ``tokens`` for a trace.
        stated_in: where the course says it.
        same_expected: whether this project's checkpoint should give the same.
        note: why the two may differ, or why not.
    """

    id: str
    quantity: str
    value: float | str
    unit: str
    stated_in: str
    same_expected: bool
    note: str


@dataclass(frozen=True)
class Comparison:
    """A published value with what was measured; None where this model has no such figure."""

    published: PublishedValue
    measured: float | str | None
    same: bool
    note: str


def load_published(path: Path = PUBLISHED_PATH) -> tuple[str, tuple[PublishedValue, ...]]:
    """Return the source of all values, and the values.

    Raises:
        InputError: no readable JSON of that form.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        source, values = found["source"], [_value(entry) for entry in found["values"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path.name}: expected published values, found: {error}") from None
    if not isinstance(source, str):
        raise InputError(f"{path.name}: expected a text as source, found {shown(source)}")
    return source, tuple(values)


def compare_published(report: AuditReport) -> tuple[Comparison, ...]:
    """Hold every published value against this audit's measurement."""
    _, values = load_published()
    measured = measurements(report)
    remark = _remark(report)
    return tuple(
        Comparison(
            published=value,
            measured=measured[value.id],
            same=measured[value.id] == value.value,
            note=remark + value.note,
        )
        for value in values
    )


def measurements(report: AuditReport) -> dict[str, float | str | None]:
    """Return this audit's figure for every published value, by id."""
    vocabulary = report.checkpoint.vocabulary
    by_length = {measure.tokens: measure.valid_bytes for measure in report.memory}
    return {
        "parameters": float(report.checkpoint.config.parameter_count()),
        "prefixes_passed": float(report.equivalence.passed_count),
        "tolerance": report.tolerance,
        "max_abs_error": report.equivalence.max_abs_error,
        "wrong_position_error": _largest_error(report, "positions-reset"),
        "wrong_layer_error": _largest_error(report, "wrong-layer"),
        "greedy_trace": vocabulary.decode(report.run("greedy").cached.token_ids),
        "sampled_trace": vocabulary.decode(report.run("sample").cached.token_ids),
        "cache_bytes_per_token": float(by_length[1] - by_length[0]),
        "cache_bytes_at_4": float(by_length[4]) if 4 in by_length else None,
    }


def _largest_error(report: AuditReport, name: str) -> float | None:
    errors = [
        failure.result.max_abs_error
        for failure in report.failures
        if failure.fault.name == name and failure.cannot_act is None
    ]
    return max(errors, default=None)


def _remark(report: AuditReport) -> str:
    spec = report.spec
    others = [
        name
        for name, usual in (
            ("another checkpoint", report.is_frozen),
            (f"prompt {' '.join(spec.prompt)}", spec.prompt == ("<bos>",)),
            ("another policy", spec.policy == SEEDED_POLICY),
            (f"seed {spec.seed}", spec.seed == 41),
            (spec.dtype, spec.dtype == "float32"),
        )
        if not usual
    ]
    return OTHER_RUN.format(", ".join(others)) if others else ""


def _value(entry: Any) -> PublishedValue:
    value = PublishedValue(**entry)
    for field in fields(value):
        found = getattr(value, field.name)
        if field.name == "value":
            good = isinstance(found, str) or (type(found) in (int, float) and math.isfinite(found))
        else:
            good = isinstance(found, bool if field.name == "same_expected" else str)
        if not good:
            raise ValueError(f"{field.name} {shown(found)}")
    return value
