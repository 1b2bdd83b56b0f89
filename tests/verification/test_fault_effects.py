"""Effects of the faults, and what a tolerance misses and refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.training import FROZEN_CONFIG
from tinydec.verification.audit.report import audit
from tinydec.verification.audit.stage_checkpoint import trusted_identity
from tinydec.verification.fault_effects import (
    ROUNDING,
    FaultEffect,
    fault_effects,
    random_fault_effects,
    shares,
)
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.recorder import record
from tinydec.verification.lab.scenario import scenario_for
from tinydec.verification.noise import ModelNoise

FROZEN = load_checkpoint()
EFFECTS = {effect.name: effect for effect in fault_effects(FROZEN, "shipped")}


def test_every_fault_has_an_effect() -> None:
    assert [effect.fault_id for effect in EFFECTS.values()] == [fault.id for fault in FAULTS]


@pytest.mark.parametrize("name", ["positions-reset", "wrong-layer", "pad-keys-visible"])
def test_effect_is_the_logit_error_of_an_audit(name: str) -> None:
    cast = FROZEN.cast("float64")
    recording = record(cast, scenario_for(cast), fault_by_id(name).intervention)
    trusted = trusted_identity(cast, lambda _: np.zeros(8))
    assert EFFECTS[name].effect == audit(recording, trusted, ROUNDING).logit_error
    assert EFFECTS[name].effect > 1e-2


def test_silent_faults_move_nothing() -> None:
    silent = [fault.name for fault in FAULTS if fault.silent]
    assert silent
    assert [name for name in silent if EFFECTS[name].moves] == []
    assert sum(effect.moves for effect in EFFECTS.values()) >= 15


def test_faults_of_policy_and_stopping_hold_the_logits() -> None:
    late = [fault.name for fault in FAULTS if fault.stage >= 5]
    assert late
    assert [name for name in late if EFFECTS[name].moves] == []


def test_random_models_are_drawn_from_the_seed() -> None:
    faults = [fault_by_id("wrong-layer"), fault_by_id("mask-top-left")]
    found = random_fault_effects(3, seed=2, faults=faults)
    assert found == random_fault_effects(3, seed=2, faults=faults)
    assert found[:4] == random_fault_effects(2, seed=2, faults=faults)
    assert len({effect.effect for effect in found}) == 6
    assert [effect.model for effect in found[::2]] == ["random 0", "random 1", "random 2"]


def test_random_models_have_the_shipped_sizes() -> None:
    assert FROZEN.config == FROZEN_CONFIG
    assert ModelConfig(8, 4, 4, 2, 2, 8) != FROZEN_CONFIG


def effects(*values: float) -> list[FaultEffect]:
    return [FaultEffect("F00", "made", "m", value) for value in values]


def test_shares_by_hand() -> None:
    noise = [ModelNoise(i, FROZEN_CONFIG, {"float32": e}) for i, e in enumerate((1e-7, 3e-6, 2e-5))]
    # Of the five effects one is rounding; 1e-3 and 1e-2 lie at or below 1e-2.
    found = shares([1e-2, 1e-5, 1e-7], effects(1e-15, 1e-3, 1e-2, 0.5, math.inf), noise)
    assert [s.missed for s in found] == [2 / 4, 0, 0]
    assert [s.refused["float32"] for s in found] == [0, 1 / 3, 2 / 3]
    assert [s.tolerance for s in found] == [1e-2, 1e-5, 1e-7]


def test_shares_of_nothing_are_no_numbers() -> None:
    found = shares([1e-5], effects(0.0), [])[0]
    assert math.isnan(found.missed)
    assert found.refused == {}
