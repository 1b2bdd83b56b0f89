"""From a recording alone: the broken contract, where values first differ, and likely causes.

The causes follow the course's two failure tables (first differing value -> contract;
observation -> first check), sharpened by what else the recording holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinydec.verification.audit.checks import Check
from tinydec.verification.audit.report import AuditReport
from tinydec.verification.clues import CLUES
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.fault import Fault
from tinydec.verification.observation import Recording
from tinydec.verification.signs import past_context


@dataclass(frozen=True)
class Symptom:
    """An observation that a person debugging a cache would make, and what to check first."""

    id: str
    observation: str
    first_check: str


#: Symptoms in the order in which they are worth looking at.
SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "reference",
        "The uncached run is wrong already.",
        "checkpoint, vocabulary and mode: no cache can repair a wrong reference",
    ),
    Symptom(
        "embedding",
        "Values differ from the sum of token and position embedding on.",
        "the position index, and whose tokens are consumed",
    ),
    Symptom(
        "first_layer",
        "The embedding agrees, and the first layer's keys or values differ.",
        "projection, normalisation and the order of axes",
    ),
    Symptom(
        "later_layer",
        "The first layer agrees, and a later one differs.",
        "whose cache the later layer reads and appends to",
    ),
    Symptom(
        "length",
        "The cache grows by more or less than one slot for an input.",
        "a doubled or missing append, or a prompt token consumed twice",
    ),
    Symptom(
        "weights",
        "The cache works until the weights change.",
        "keys and values that old weights made",
    ),
    Symptom(
        "neighbours",
        "A row of a batch differs from the same request alone.",
        "padding, masks, and caches mixed across rows or requests",
    ),
    Symptom(
        "selection",
        "The logits agree, and the selected token or its probabilities do not.",
        "temperature, top-k, top-p and the tie rule",
    ),
    Symptom(
        "stream",
        "The probabilities agree, and the draws do not.",
        "the seed, and how many numbers are drawn in which order",
    ),
    Symptom(
        "past_context",
        "A token is consumed past the context.",
        "the context limit: the last returned token is not an input",
    ),
    Symptom(
        "stopping",
        "Tokens agree, and the reason for stopping does not.",
        "the order of the stop rules, row by row",
    ),
)


@dataclass(frozen=True)
class Diagnosis:
    """What a recording says about its first failure.

    Attributes:
        check: the first failing check of the first failing stage.
        first_difference: run, tensor and position of the first value that differs, or None when
            every value agrees.
        symptoms: what can be observed, in order.
        causes: likely faults, the likeliest first.
    """

    check: Check
    first_difference: tuple[str, str, int] | None
    symptoms: tuple[Symptom, ...]
    causes: tuple[Fault, ...]


def diagnose(recording: Recording, report: AuditReport) -> Diagnosis | None:
    """Return a diagnosis of the first failure, or None when every stage passed.

    Args:
        recording: what was observed.
        report: its audit.
    """
    failure = report.first_failure
    if failure is None:
        return None
    seen = tuple(s for s in SYMPTOMS if _OBSERVED[s.id](recording, report, failure))
    return Diagnosis(failure, report.first_difference, seen, _causes(recording, failure))


def _causes(recording: Recording, failure: Check) -> tuple[Fault, ...]:
    named = [clue.fault for clue in CLUES if clue.check == failure.id and clue.fits(recording)]
    others = [clue.fault for clue in CLUES if clue.check == failure.id]
    order = dict.fromkeys(named + others)
    order |= dict.fromkeys(fault.id for fault in FAULTS if fault.stage == failure.stage)
    return tuple(fault_by_id(fault_id) for fault_id in order)


_Observation = Callable[[Recording, AuditReport, Check], bool]


def _tensor(report: AuditReport) -> str:
    return report.first_difference[1] if report.first_difference else ""


def _in_layer(report: AuditReport) -> int | None:
    parts = _tensor(report).split(".")
    return int(parts[1]) if parts[0] == "h" else None


def _is_row(recording: Recording, name: str) -> bool:
    return any(run.name == name for run in recording.rows)


def _check_is(*prefixes: str) -> _Observation:
    return lambda _recording, _report, check: check.id.startswith(prefixes)


#: Whether each symptom is observed.
_OBSERVED: dict[str, _Observation] = {
    "reference": _check_is("checkpoint."),
    "embedding": lambda _, report, __: _tensor(report).endswith("embedding"),
    "first_layer": lambda _, report, __: _in_layer(report) == 0,
    "later_layer": lambda _, report, __: (_in_layer(report) or 0) > 0,
    "length": _check_is("cache.length"),
    "weights": _check_is("position.checkpoint"),
    "neighbours": lambda recording, report, check: (
        check.where.run.startswith("batch")
        or _is_row(recording, check.where.run)
        or bool(report.first_difference and _is_row(recording, report.first_difference[0]))
    ),
    "selection": _check_is("policy.support", "policy.sum", "policy.probabilities", "policy.token"),
    "stream": _check_is("policy.draws", "policy.stream"),
    "past_context": lambda recording, _, check: (
        check.id == "position.refusals" or any(past_context(run) for run in recording.all_runs)
    ),
    "stopping": _check_is("stopping."),
}
