"""How far each fault moves the logits, and which share of faults a tolerance would miss.

Effects are measured in float64, where rounding stays near 1e-14: what is left is the fault's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinydec.model.checkpoint import Checkpoint
from tinydec.training import FROZEN_CONFIG
from tinydec.verification.audit.stage_equivalence import divergence
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.faults import FAULTS
from tinydec.verification.lab.fault import BATCH, Fault
from tinydec.verification.lab.recorder import record
from tinydec.verification.lab.scenario import Scenario, scenario_for
from tinydec.verification.noise import ModelNoise, draw_checkpoint

#: Effects up to this are rounding: the fault left the logits alone.
ROUNDING = TOLERANCES["float64"]


@dataclass(frozen=True)
class FaultEffect:
    """One fault on one model.

    Attributes:
        fault_id: F01 to F42.
        name: the fault's name.
        model: what the model is called.
        effect: largest logit difference from the uncached run, over every step of a session;
            infinite where a logit is not a number.
    """

    fault_id: str
    name: str
    model: str
    effect: float

    @property
    def moves(self) -> bool:
        """Whether the fault moved any logit, beyond rounding."""
        return self.effect > ROUNDING


@dataclass(frozen=True)
class Shares:
    """What a tolerance does.

    Attributes:
        tolerance: the largest accepted difference.
        missed: share of faults with an effect at or below it, among those that move logits.
        refused: share of correct models with noise above it, by number format.
    """

    tolerance: float
    missed: float
    refused: dict[str, float]


def fault_effects(
    checkpoint: Checkpoint, model: str, faults: Sequence[Fault] = FAULTS, seed: int = 0
) -> tuple[FaultEffect, ...]:
    """Return how far each fault moves the logits of a checkpoint.

    Args:
        checkpoint: the model; it runs in float64.
        model: what to call it.
        faults: tried one by one.
        seed: draws the session for a vocabulary that is not the controlled one.
    """
    cast = checkpoint.cast("float64")
    scenario = scenario_for(cast, seed)
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(
            FaultEffect(fault.id, fault.name, model, _effect(cast, scenario, fault))
            for fault in faults
        )


def random_fault_effects(
    count: int, seed: int = 0, faults: Sequence[Fault] = FAULTS
) -> tuple[FaultEffect, ...]:
    """Return the effect of each fault on ``count`` random models of the shipped sizes."""
    found: list[FaultEffect] = []
    for index in range(count):
        checkpoint = draw_checkpoint(FROZEN_CONFIG, np.random.default_rng([seed, index]))
        found += fault_effects(checkpoint, f"random {index}", faults, seed=index)
    return tuple(found)


def shares(
    tolerances: Sequence[float], effects: Sequence[FaultEffect], noise: Sequence[ModelNoise]
) -> tuple[Shares, ...]:
    """Return the shares of missed faults and refused correct models for each tolerance.

    Shares of nothing are NaN.
    """
    moving = np.array([effect.effect for effect in effects if effect.moves])
    dtypes = list(noise[0].errors) if noise else []
    errors = {dtype: np.array([model.errors[dtype] for model in noise]) for dtype in dtypes}
    return tuple(
        Shares(
            tolerance,
            _share(moving <= tolerance),
            {dtype: _share(errors[dtype] > tolerance) for dtype in dtypes},
        )
        for tolerance in tolerances
    )


def _effect(checkpoint: Checkpoint, scenario: Scenario, fault: Fault) -> float:
    """Return what an audit calls the logit error of the part of a session where a fault acts."""
    part = replace(scenario, runs=()) if fault.part == BATCH else replace(scenario, rows=())
    recording = record(checkpoint, part, fault.intervention)
    found = (divergence(run, ROUNDING) for run in recording.all_runs)
    return max((entry.logit_error for entry in found if entry is not None), default=0.0)


def _share(hits: NDArray[np.bool_]) -> float:
    return float(hits.mean()) if hits.size else float("nan")
