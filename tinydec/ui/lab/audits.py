"""The audit's page: what it says of a session, and the exercise."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tinydec.evidence.lab_tables import named
from tinydec.figures.log_axis import short
from tinydec.model.activations import tensor_names
from tinydec.ui.exercise import Task
from tinydec.ui.html import code, digits, spelled
from tinydec.ui.lab.session import Audited, Bench, Session
from tinydec.verification.audit.checks import PASSED, STAGES
from tinydec.verification.audit.stage_equivalence import Divergence
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.fixture import LEAST_DEPARTURE
from tinydec.verification.lab.fault import Fault


def verdict_numbers(session: Audited) -> str:
    """Return the verdict in one line."""
    report = session.report
    failure = report.first_failure
    checks = sum(check.verdict == PASSED for check in report.checks)
    if failure is None:
        return (
            f"{checks} checks pass, largest logit error {digits(report.logit_error, 3)} "
            f"≤ {short(report.tolerance)}"
        )
    behind = [stage.number for stage in report.stages if stage.reason]
    span = f"{behind[0]} to {behind[-1]}" if len(behind) > 1 else "".join(map(str, behind))
    return f"stage {failure.stage} fails ({failure.id})" + (f"; {span} not judged" if span else "")


def first_divergence(session: Audited) -> Divergence:
    """Return the run in which a value first differs from the uncached one, else the first run."""
    found = session.report.divergences
    return next((entry for entry in found if entry.first is not None), found[0])


def divergence_names(bench: Bench) -> tuple[str, ...]:
    """Return the tensors of a divergence in their order."""
    return tensor_names(bench.lab.checkpoint.config.n_layer)


def divergence_text(divergence: Divergence) -> str:
    """Return where a run first differs, for a caption and a screen reader."""
    if divergence.first is None:
        return (
            f"{_run_name(divergence)}: no tensor is beyond the tolerance; the largest logit "
            f"error is {digits(divergence.logit_error, 3)}."
        )
    tensor, position = divergence.first
    return (
        f"{_run_name(divergence)}: {tensor} at position {position} is the first tensor beyond the "
        f"tolerance, marked; the logits are up to {digits(divergence.logit_error, 3)} off."
    )


def _run_name(divergence: Divergence) -> str:
    name = divergence.run
    return name[:1].upper() + name[1:] if name.startswith("your") else f"Run {name}"


def sharpness_text(bench: Bench) -> str:
    """Return whether the checkpoint is sharp enough for a verdict to mean anything."""
    departure = bench.departure
    layer, head = np.unravel_index(int(departure.argmin()), departure.shape)
    least = digits(float(departure.min()), 3)
    if departure.min() >= LEAST_DEPARTURE:
        return (
            f"Is the checkpoint sharp enough to show a fault? Its flattest head (layer {layer}, "
            f"head {head}) departs from uniform attention by {least}; at least "
            f"{LEAST_DEPARTURE:g} is needed."
        )
    return (
        f"This checkpoint is too flat for the verdict to mean much: layer {layer}, head {head} "
        f"departs from uniform attention by only {least} ({LEAST_DEPARTURE:g} is needed), so "
        "whatever a cache serves, nearly the same average comes out."
    )


def diagnosis_markdown(session: Audited, most: int = 4) -> str:
    """Return the diagnosis of the first failure as Markdown."""
    found = session.diagnosis
    if found is None:
        return "Nothing to diagnose: every stage passed."
    check = found.check
    lines = [
        f"**Broken contract** (stage {check.stage}, `{check.id}`): {check.title}.",
        f"Observed {_code(check.observed)}, expected {_code(check.expected)}"
        + (f", at {_code(str(check.where))}" if str(check.where) else "")
        + ".",
    ]
    if found.first_difference is None:
        lines.append("**First differing tensor:** none; only the record gives it away.")
    else:
        run, tensor, position = found.first_difference
        lines.append(
            f"**First differing tensor:** {_code(tensor)} at position {position}, run {code(run)}."
        )
    lines += [
        f"**Symptom:** {symptom.observation} Check first: {symptom.first_check}."
        for symptom in found.symptoms
    ]
    causes = "\n".join(
        f"{number}. **{named(cause)}**: {cause.what}"
        for number, cause in enumerate(found.causes[:most], start=1)
    )
    return "\n\n".join(lines) + f"\n\n**Likely causes, likeliest first**\n\n{causes}"


def _code(text: str) -> str:
    return code(spelled(text))


# Exercises ---------------------------------------------------------------------------------------


def stage_task(record: Callable[[Fault], Session], rng: random.Random) -> Task:
    """Ask which stage judges a fault, given what it does; the answer is the audit's.

    Args:
        record: returns the session with a fault on.
        rng: draws the fault.
    """
    order = list(FAULTS)
    rng.shuffle(order)
    for fault in order:
        failure = record(fault).report.first_failure
        if failure is not None:
            break
    else:
        return Task("No fault can act on this checkpoint.", 0, "Nothing fails.", "0")
    others = [stage for stage in STAGES if stage > failure.stage]
    behind = f"Stages {', '.join(map(str, others))} are not judged then." if others else ""
    return Task(
        question=(
            f"**What went wrong:** {fault.what} Walk the stages in order: 1 checkpoint, 2 cache, "
            "3 position and ownership, 4 equivalence, 5 policy and random state, 6 stopping. "
            "Which is the first to fail? (its number)"
        ),
        answer=failure.stage,
        hint=(
            "A stage judges one contract and takes what was recorded before it as given: stage 2 "
            "never compares with the uncached run, stage 5 takes the logits as they are."
        ),
        solution=(
            f"Stage {failure.stage}, by the check `{failure.id}`: it saw {_code(failure.observed)} "
            f"where {_code(failure.expected)} was expected. {behind}"
        ),
    )


def two_fault_task(record: Callable[[tuple[Fault, ...]], Session], rng: random.Random) -> Task:
    """Ask for both faults of a session; the audit names the first, then the second.

    Args:
        record: returns the session with some faults on.
        rng: draws which foreign write it is, and the order of the choices.
    """
    layer = fault_by_id("wrong-layer")
    foreign = fault_by_id(rng.choice(("other-request", "slot-overwritten")))
    both, mended = record((layer, foreign)), record((foreign,))
    first, second = both.diagnosis, mended.diagnosis
    if first is None or second is None:
        return Task("This checkpoint has one layer only.", 0, "No fault can act.", "0")
    answer = _pair(first.causes[0], second.causes[0])
    wrong = [
        _pair(fault_by_id(a), fault_by_id(b))
        for a, b in (
            ("duplicate-append", "position-off-by-one"),
            ("not-renormalised", "temperature-inverted"),
            ("overflow-not-refused", "eos-reported-as-length"),
        )
    ]
    choices = [answer, *wrong]
    rng.shuffle(choices)
    return Task(
        question=(
            "One session, two faults. Everything agrees with the uncached run until layer 1 "
            f"(layers count from 0), whose cached length is right; there {_code(first.check.id)} "
            f"reports {_code(first.check.observed)}. That is mended, and the audit runs again: now "
            f"{_code(second.check.id)} reports {_code(second.check.observed)} "
            f"({second.check.where}), as soon as another request is served. Name both."
        ),
        answer=answer,
        hint="A cache has two owners: a layer of the model, and a request. Ask for each of them.",
        solution=(
            f"{_code(named(first.causes[0]))} is named first: {first.causes[0].what} With it "
            f"switched off, stage {second.check.stage} fails and the likeliest cause is "
            f"{_code(named(second.causes[0]))}: {second.causes[0].what} The logits were up to "
            f"{digits(both.report.logit_error, 3)} off with both, "
            f"{digits(mended.report.logit_error, 3)} with the second alone."
        ),
        choices=tuple(choices),
    )


def _pair(one: Fault, other: Fault) -> str:
    return f"{one.name}, then {other.name}"
