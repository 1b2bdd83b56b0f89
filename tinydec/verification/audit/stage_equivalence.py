"""Stage 4: the cached path held against the uncached one, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinydec.model.activations import (
    CACHE_TENSORS,
    HEAD_TENSORS,
    Activations,
    BlockActivations,
    freeze,
    tensor_names,
)
from tinydec.verification.alignment import first_difference, position_errors
from tinydec.verification.audit.checks import Check, Finding, Where, judge
from tinydec.verification.observation import NOT_FINITE_KIND, Recording, RunObservation

Floats = NDArray[np.float64]

#: Which tensors each check looks at, by the end of their names; the rest are intermediates.
_GROUPS = {
    "kv": ("k", "v", "keys", "values"),
    "attention": ("scores", "attention"),
    "logits": ("logits",),
}


@dataclass(frozen=True, eq=False)
class Divergence:
    """How far one run is from its reference.

    Attributes:
        run: name of the run.
        errors: (N, T) largest difference of each tensor at each position.
        first: first tensor beyond the tolerance and its position, or None.
        logit_error: largest difference of any logits row.
    """

    run: str
    errors: Floats
    first: tuple[str, int] | None
    logit_error: float

    def __post_init__(self) -> None:
        freeze(self.errors)


def divergence(run: RunObservation, tolerance: float) -> Divergence | None:
    """Hold a run against its references; None when nothing can be compared.

    Each step is held against the uncached run of the checkpoint that it computed with.
    """
    if not run.steps or not run.references:
        return None
    steps = [step.activations for step in run.steps]
    some = next(iter(run.references.values()))
    total = min(len(some.positions), _total(steps))
    errors = np.zeros((len(tensor_names(len(some.blocks))), total))
    fitted = _first_positions(steps, total)
    owners = [
        step.checkpoint.digest
        for step, kept in zip(run.steps, fitted, strict=False)
        for _ in kept.positions
    ]
    for digest in dict.fromkeys(owners):
        reference = _cut_reference(run.references[digest], total)
        found = position_errors(reference, fitted)[0]
        columns = [position for position, owner in enumerate(owners) if owner == digest]
        errors[:, columns] = found[:, columns]
    names = tensor_names(len(some.blocks))
    return Divergence(
        run.name,
        errors,
        first_difference(errors, names, tolerance),
        float(errors[names.index("logits")].max()),
    )


def equivalence_checks(
    recording: Recording, divergences: tuple[Divergence, ...], tolerance: float
) -> tuple[Check, ...]:
    """Judge NaN, K/V, attention, intermediates and logits."""
    bound = f"difference at most {tolerance:.3g}"
    titles = {
        "kv": "every key and value equals the uncached one",
        "attention": "attention rows equal the uncached ones",
        "intermediates": "every other intermediate equals the uncached one",
        "logits": "every logits row equals the uncached one",
    }
    return (
        judge(
            "equivalence.nan",
            4,
            "no intermediate is NaN",
            "no NaN",
            _nan(recording),
            count=sum(len(run.steps) for run in recording.all_runs),
        ),
        *(
            judge(
                f"equivalence.{group}",
                4,
                title,
                bound,
                _beyond(divergences, group, recording, tolerance),
                count=len(divergences),
                tolerance=tolerance,
                passed=_largest(divergences, group, recording),
            )
            for group, title in titles.items()
        ),
    )


def _nan(recording: Recording) -> Iterator[Finding]:
    for count in recording.nan_counts:
        yield Finding(
            f"NaN: {count.padding} in padding, {count.real} in real rows",
            "no NaN",
            Where(count.run, count.step, count.layer),
        )
    for run in recording.all_runs:
        if run.interruption is not None and run.interruption.kind == NOT_FINITE_KIND:
            yield Finding("logits not finite", "no NaN", Where(run.name, run.interruption.step))
    for run in recording.all_runs:
        for step in run.steps:
            for name, array in step.activations.named():
                if np.isnan(array).any():
                    where = Where(run.name, step.index, tensor=name)
                    yield Finding(f"NaN in {name}", "no NaN", where)


def _members(names: tuple[str, ...], group: str) -> list[int]:
    def of(name: str) -> str:
        field = name.rpartition(".")[2]
        return next((g for g, fields in _GROUPS.items() if field in fields), "intermediates")

    return [index for index, name in enumerate(names) if of(name) == group]


def _names(recording: Recording) -> tuple[str, ...]:
    return tensor_names(recording.checkpoint.config.n_layer)


def _beyond(
    divergences: tuple[Divergence, ...], group: str, recording: Recording, tolerance: float
) -> Iterator[Finding]:
    names = _names(recording)
    members = _members(names, group)
    for found in divergences:
        first = first_difference(found.errors[members], [names[m] for m in members], tolerance)
        if first is not None:
            tensor, position = first
            error = found.errors[names.index(tensor), position]
            yield Finding(
                f"{tensor} differs by {error:.3g}",
                f"at most {tolerance:.3g}",
                Where(found.run, position=position, tensor=tensor),
            )


def _largest(divergences: tuple[Divergence, ...], group: str, recording: Recording) -> str:
    members = _members(_names(recording), group)
    largest = max((float(found.errors[members].max()) for found in divergences), default=0.0)
    return f"largest difference {largest:.3g}"


def _first_positions(steps: list[Activations], count: int) -> list[Activations]:
    """Keep the first ``count`` positions of some steps, cutting the last one where needed."""
    kept: list[Activations] = []
    for step in steps:
        room = count - _total(kept)
        if room <= 0:
            break
        kept.append(step if len(step.positions) <= room else _cut(step, room))
    return kept


def _total(steps: list[Activations]) -> int:
    return sum(len(step.positions) for step in steps)


def _cut(step: Activations, count: int) -> Activations:
    """Return the first ``count`` positions of a step of one sequence."""
    blocks = tuple(
        BlockActivations(
            *(
                array
                if name in CACHE_TENSORS
                else array[:, :, :count]
                if name in HEAD_TENSORS
                else array[:count]
                for name, array in zip(block._fields, block, strict=True)
            )
        )
        for block in step.blocks
    )
    return Activations(
        1,
        step.positions[:count],
        step.token_embedding[:count],
        step.position_embedding[:count],
        step.embedding[:count],
        blocks,
        step.ln_f[:count],
        step.logit_rows[:count],
    )


def _cut_reference(full: Activations, count: int) -> Activations:
    """Return the first ``count`` positions of a full forward, keys and scores cut alike."""
    if count == len(full.positions):
        return full
    cut = _cut(full, count)
    return cut._replace(
        blocks=tuple(
            block._replace(
                keys=block.keys[:, :, :count],
                values=block.values[:, :, :count],
                scores=block.scores[..., :count],
                attention=block.attention[..., :count],
            )
            for block in cut.blocks
        )
    )
