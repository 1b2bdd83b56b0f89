"""Tables of the tolerance: noise of correct models, effects of faults, and the shares between."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.verification.fault_effects import FaultEffect, Shares
from tinydec.verification.noise import ModelNoise

NOISE = TableSchema(
    "noise.csv",
    "Random models, both paths correct: the largest logit difference, which is rounding",
    (
        integer("model", "its number; with the seed it determines the model"),
        integer("layers", "L"),
        integer("heads", "h"),
        integer("width", "d"),
        integer("context", "T, the length of the prompts"),
        integer("vocabulary", "V"),
        integer("parameters", "scalars in all tensors"),
        text("dtype", "number format of the arithmetic"),
        number("max_abs_error", "largest difference of a logit"),
    ),
)

FAULT_EFFECTS = TableSchema(
    "fault_effects.csv",
    "Every fault on this model and on random ones of the shipped sizes, in float64",
    (
        text("fault_id", "F01 to F42"),
        text("fault", "its name"),
        text("model", "the model at hand, or a random one"),
        number("max_abs_error", "largest difference of a logit from the uncached run"),
        flag("moves_logits", "whether that is more than rounding"),
    ),
)

SHARES = TableSchema(
    "tolerance_shares.csv",
    "What each tolerance would miss and refuse",
    (
        number("tolerance", "largest accepted difference"),
        number("faults_missed", "share of faults that move logits and pass", optional=True),
        text("dtype", "number format of the correct models"),
        number("correct_refused", "share of correct models that fail", optional=True),
    ),
)


def noise_table(models: Sequence[ModelNoise]) -> pd.DataFrame:
    """Return one row per model and number format."""
    return frame(
        NOISE,
        (
            (
                m.index,
                m.config.n_layer,
                m.config.n_head,
                m.config.n_embd,
                m.config.n_positions,
                m.config.vocab_size,
                m.config.parameter_count(),
                dtype,
                error,
            )
            for m in models
            for dtype, error in m.errors.items()
        ),
    )


def effects_table(effects: Sequence[FaultEffect]) -> pd.DataFrame:
    """Return one row per fault and model."""
    return frame(FAULT_EFFECTS, ((e.fault_id, e.name, e.model, e.effect, e.moves) for e in effects))


def shares_table(found: Sequence[Shares]) -> pd.DataFrame:
    """Return one row per tolerance and number format."""
    return frame(
        SHARES,
        (
            (s.tolerance, _known(s.missed), dtype, _known(refused))
            for s in found
            for dtype, refused in s.refused.items()
        ),
    )


def _known(share: float) -> float | None:
    return None if share != share else share
