"""Tables of the tolerance, read back from their CSV."""

from __future__ import annotations

import math

from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.evidence.tolerance_tables import (
    FAULT_EFFECTS,
    NOISE,
    SHARES,
    effects_table,
    noise_table,
    shares_table,
)
from tinydec.training import FROZEN_CONFIG
from tinydec.verification.fault_effects import FaultEffect, Shares
from tinydec.verification.noise import ModelNoise

MODELS = (
    ModelNoise(0, FROZEN_CONFIG, {"float32": 1.5e-6, "float64": 0.0}),
    ModelNoise(1, FROZEN_CONFIG, {"float32": 2.5e-6, "float64": 3e-15}),
)
EFFECTS = (FaultEffect("F19", "wrong-layer", "this model", 0.1 + 0.2),
           FaultEffect("F28", "masked-row-nan", "random 0", math.inf))  # fmt: skip


def test_noise_has_a_row_for_each_model_and_format() -> None:
    found = read_csv(write_csv(noise_table(MODELS), NOISE), NOISE)
    assert found["max_abs_error"].tolist() == [1.5e-6, 0.0, 2.5e-6, 3e-15]
    assert found["model"].tolist() == [0, 0, 1, 1]
    assert found["parameters"].tolist() == [368] * 4
    assert found["width"].tolist() == [4] * 4


def test_effects_keep_every_digit_and_infinity() -> None:
    found = read_csv(write_csv(effects_table(EFFECTS), FAULT_EFFECTS), FAULT_EFFECTS)
    assert found["max_abs_error"].tolist() == [0.30000000000000004, math.inf]
    assert found["moves_logits"].tolist() == [True, True]


def test_a_share_of_nothing_is_an_empty_cell() -> None:
    data = write_csv(shares_table([Shares(1e-5, math.nan, {"float32": 0.25})]), SHARES)
    assert data.decode().splitlines()[1] == "1e-05,,float32,0.25"
