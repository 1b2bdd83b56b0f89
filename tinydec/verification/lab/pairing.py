"""Two recordings of one session side by side: every fact that differs, and the first tensor.

The audit reads one recording and knows nothing of a correct one. This module is for people: it
holds a faulty session against the same session without a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.stream import GeneratorState
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.compare import largest_difference, recorded_difference
from tinydec.verification.observation import Recording, RunObservation, StepObservation

Array = NDArray[Any]

#: Where a fact stands that belongs to the session as a whole.
SESSION = "session"


class Difference(NamedTuple):
    """One fact that is not the same in both recordings."""

    run: str
    step: int | None
    what: str
    correct: str
    faulty: str


@dataclass(frozen=True, eq=False)
class TensorPair:
    """One tensor of one step, as both recordings hold it.

    Attributes:
        name: as :meth:`Activations.named` spells it, or ``probabilities``.
        correct: without a fault, without the batch axis: (P, n), (h, P, n) or (h, t, d_h).
        faulty: with it.
        error: largest difference; infinite where shapes differ or one of two is NaN.
    """

    name: str
    correct: Array
    faulty: Array
    error: float


@dataclass(frozen=True, eq=False)
class StepPair:
    """One step of one run in both recordings.

    Attributes:
        run: name of the run.
        correct: the step without a fault.
        faulty: the step with it.
        tensors: every tensor, in the order of computation.
        first: the first one further apart than the tolerance, or None.
    """

    run: str
    correct: StepObservation
    faulty: StepObservation
    tensors: tuple[TensorPair, ...]
    first: TensorPair | None


def differences(
    correct: Recording, faulty: Recording, tolerance: float, most: int | None = None
) -> tuple[Difference, ...]:
    """Return the recorded facts that differ, in the order of the session.

    Of the tensors of a step only the first one that differs is listed; what comes after it
    follows from it.

    Args:
        correct: the session without a fault.
        faulty: the same session with it.
        tolerance: largest difference of two numbers that counts as none.
        most: how many are returned at most; None for all.
    """
    return tuple(islice(_differences(correct, faulty, tolerance), most))


def step_pairs(correct: Recording, faulty: Recording, tolerance: float) -> Iterator[StepPair]:
    """Yield the steps that both recordings have, run by run."""
    for one, other in zip(correct.all_runs, faulty.all_runs, strict=False):
        for a, b in zip(one.steps, other.steps, strict=False):
            yield step_pair(one.name, a, b, tolerance)


def first_pair(correct: Recording, faulty: Recording, tolerance: float) -> StepPair | None:
    """Return the first step in which a tensor differs, or None."""
    pairs = step_pairs(correct, faulty, tolerance)
    return next((pair for pair in pairs if pair.first is not None), None)


def step_pair(
    run: str, correct: StepObservation, faulty: StepObservation, tolerance: float
) -> StepPair:
    """Hold every tensor of a step against its twin."""
    tensors = tuple(
        TensorPair(name, a, b, largest_difference(a, b))
        for (name, a), (_, b) in zip(_tensors(correct), _tensors(faulty), strict=True)
    )
    first = next((pair for pair in tensors if not pair.error <= tolerance), None)
    return StepPair(run, correct, faulty, tensors, first)


def reference_pair(correct: RunObservation, faulty: RunObservation) -> TensorPair:
    """Hold the uncached logits of a run's prompt, computed twice, against their twins: (2, V)."""
    a, b = correct.prompt_logits, faulty.prompt_logits
    return TensorPair("uncached logits", a, b, largest_difference(a, b))


def _tensors(step: StepObservation) -> Iterator[tuple[str, Array]]:
    for name, array in step.activations.named():
        yield name, array[0]  # the batch axis is 1
    yield "probabilities", step.selection.probabilities[np.newaxis]


# Facts -------------------------------------------------------------------------------------------


def _differences(correct: Recording, faulty: Recording, tolerance: float) -> Iterator[Difference]:
    yield from _unequal(SESSION, None, _session_facts(correct), _session_facts(faulty))
    vocabulary = correct.checkpoint.vocabulary
    for one, other in zip(correct.all_runs, faulty.all_runs, strict=False):
        reference = reference_pair(one, other)
        if not reference.error <= tolerance:
            yield Difference(one.name, None, *_tensor_fact(reference))
        for a, b in zip(one.steps, other.steps, strict=False):
            first = step_pair(one.name, a, b, tolerance).first
            if first is not None:
                yield Difference(one.name, a.index, *_tensor_fact(first))
            yield from _unequal(one.name, a.index, _facts(a, vocabulary), _facts(b, vocabulary))
        yield from _unequal(one.name, None, _run_facts(one), _run_facts(other))


def _unequal(
    run: str, step: int | None, correct: dict[str, str], faulty: dict[str, str]
) -> Iterator[Difference]:
    for what in dict.fromkeys((*correct, *faulty)):
        one, other = correct.get(what, "nothing"), faulty.get(what, "nothing")
        if one != other:
            yield Difference(run, step, what, one, other)


def _tensor_fact(pair: TensorPair) -> tuple[str, str, str]:
    if pair.correct.shape != pair.faulty.shape:
        return (f"{pair.name}, shape", f"{pair.correct.shape}", f"{pair.faulty.shape}")
    difference = recorded_difference(pair.correct, pair.faulty)
    place = np.unravel_index(int(difference.argmax()), difference.shape)
    index = ", ".join(str(int(i)) for i in place)
    return (
        f"{pair.name}[{index}], by {pair.error:.3g}",
        f"{pair.correct[place]:.6g}",
        f"{pair.faulty[place]:.6g}",
    )


def _session_facts(recording: Recording) -> dict[str, str]:
    parts = recording.checkpoint.part_digests
    facts = {
        "config digest": parts.config[:12],
        "vocabulary digest": parts.vocabulary[:12],
        "tensors digest": parts.tensors[:12],
        "mode": recording.mode,
    }
    facts |= {f"after {post.operation}": post.found for post in recording.post_conditions}
    facts |= {probe.name: _refusal(probe.refused, probe.outcome) for probe in recording.probes}
    for row in recording.crafted:
        facts[row.name] = f"keeps {list(row.selection.kept)}, takes {row.selection.token_id}"
    for count in recording.nan_counts:
        place = f"NaN in {count.run}, step {count.step}, layer {count.layer}"
        facts[place] = f"{count.padding} in padding, {count.real} in real rows"
    for number, refusal in enumerate(recording.refusals):
        facts[f"batch refused ({number})"] = f"{refusal.kind}: {refusal.message}"
    return facts


def _refusal(refused: str | None, outcome: str) -> str:
    return "refused" if refused is not None else f"let through: {outcome}"


def _run_facts(run: RunObservation) -> dict[str, str]:
    stop = run.interruption
    return {
        "steps": str(len(run.steps)),
        "broken off by": "nothing" if stop is None else f"{stop.kind}: {stop.message}",
        "generator at the end": short_state(run.final_state),
    }


def _facts(step: StepObservation, vocabulary: Vocabulary) -> dict[str, str]:
    """Return what is known of a step besides its tensors, as texts."""
    layer, selection = step.layers[0], step.selection
    writers = {tag.request_id for layer in step.layers for tag in layer.slot_tags if tag}
    return {
        "computed with": f"checkpoint {step.checkpoint.digest[:12]}",
        "cache filled by": f"checkpoint {step.owner.checkpoint_digest[:12]}",
        "inputs": " ".join(vocabulary.tokens[i] for i in step.inputs),
        "positions": _listed(step.activations.positions),
        "cached length": f"{layer.length_before} → {layer.length_after}",
        "slots hold inputs": _listed("none" if t is None else t.order for t in layer.slot_tags),
        "slots written by": _listed(sorted(writers)),
        "layers' caches": _listed(layer.tag for layer in step.layers),
        "kept tokens": _listed(vocabulary.tokens[i] for i in selection.kept[:8]),
        "number drawn": "none" if selection.uniform is None else f"{selection.uniform:.6f}",
        "returned": vocabulary.tokens[selection.token_id],
        "generator after": short_state(selection.state_after),
        "stop reason": step.stop_reason or "none",
    }


def _listed(values: Any) -> str:
    return " ".join(str(value) for value in values)


def short_state(state: GeneratorState) -> str:
    """Return the last 32 of a generator's 128 bits, as hexadecimal digits."""
    return f"…{state.state & 0xFFFFFFFF:08x}"
