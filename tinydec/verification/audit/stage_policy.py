"""Stage 5: probabilities, draws and tokens, with the recorded logits taken as given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tinydec.generation.policy import Selection, replay
from tinydec.generation.stream import UniformStream
from tinydec.verification.audit.checks import Check, Finding, Where, judge
from tinydec.verification.observation import Recording, RunObservation

_Place = tuple[Where, Selection, Selection]

#: Largest accepted difference of a probability recomputed in float64.
PROBABILITY_TOLERANCE = 1e-12


def policy_checks(recording: Recording) -> tuple[Check, ...]:
    """Judge support, probabilities, draws, tokens and refusals."""
    places = [(where, kept, replay(kept)) for where, kept in _selections(recording)]
    runs = recording.all_runs
    probes = [probe for probe in recording.probes if probe.contract == "policy"]
    contracts: tuple[tuple[str, str, Callable[[_Place], tuple[str, str] | None]], ...] = (
        ("support", "the policy keeps the tokens that it should", _support),
        ("sum", "probabilities sum to one", _sum),
        ("probabilities", "probabilities follow from the logits", _probabilities),
        ("draws", "a sampled token consumes one uniform number, greedy none", _draws),
        ("token", "the token follows from probabilities and number", _token),
    )
    return (
        *(
            judge(
                f"policy.{name}",
                5,
                title,
                "what the logits give when recomputed",
                _findings(places, contract),
                count=len(places),
                tolerance=PROBABILITY_TOLERANCE if name in ("sum", "probabilities") else None,
            )
            for name, title, contract in contracts
        ),
        judge(
            "policy.stream",
            5,
            "each request draws from its own generator, and only while it runs",
            "one unbroken chain of states from the seed",
            _broken_chains(runs),
            count=len(runs),
        ),
        judge(
            "policy.domain",
            5,
            "numbers outside their domain are refused",
            "a refusal",
            (
                Finding(f"let through: {probe.outcome}", "a refusal", Where(probe.name))
                for probe in probes
                if probe.refused is None
            ),
            count=len(probes),
        ),
    )


def _selections(recording: Recording) -> Iterator[tuple[Where, Selection]]:
    for row in recording.crafted:
        yield Where(row.name), row.selection
    for run in recording.all_runs:
        for step in run.steps:
            yield Where(run.name, step.index), step.selection


def _findings(
    places: list[_Place], contract: Callable[[_Place], tuple[str, str] | None]
) -> Iterator[Finding]:
    for place in places:
        deviation = contract(place)
        if deviation is not None:
            yield Finding(*deviation, place[0])


def _support(place: _Place) -> tuple[str, str] | None:
    _, found, expected = place
    if found.kept == expected.kept:
        return None
    return f"keeps {list(found.kept)}", f"{list(expected.kept)}"


def _sum(place: _Place) -> tuple[str, str] | None:
    total = float(place[1].probabilities.sum())
    return None if abs(total - 1) <= PROBABILITY_TOLERANCE else (f"sum {total:.6g}", "1")


def _probabilities(place: _Place) -> tuple[str, str] | None:
    _, found, expected = place
    error = float(np.abs(found.probabilities - expected.probabilities).max())
    if error <= PROBABILITY_TOLERANCE:
        return None
    return f"differ by {error:.3g}", f"at most {PROBABILITY_TOLERANCE:.3g}"


def _draws(place: _Place) -> tuple[str, str] | None:
    _, found, expected = place
    if found.state_after == expected.state_after and found.uniform == expected.uniform:
        return None
    if not found.policy.samples:
        return "a number was drawn", "none under greedy"
    return "another number or state than the first draw gives", "one draw from the state before"


def _token(place: _Place) -> tuple[str, str] | None:
    _, found, expected = place
    if found.token_id == expected.token_id:
        return None
    return f"token {found.token_id}", f"token {expected.token_id}"


def _broken_chains(runs: tuple[RunObservation, ...]) -> Iterator[Finding]:
    for run in runs:
        state = UniformStream(run.seed).state
        for step in run.steps:
            if step.selection.state_before != state:
                yield Finding(
                    "a state that the request's own draws do not lead to",
                    "the state after its last draw" if step.index else f"seed {run.seed}",
                    Where(run.name, step.index),
                )
            state = step.selection.state_after
        if run.final_state != state:
            yield Finding(
                "the generator moved on after the last token",
                "the state after the last draw",
                Where(run.name, len(run.steps)),
            )
