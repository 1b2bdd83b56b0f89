"""Noise of random models and effects of faults, the tolerance between them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from tinydec.evidence.audit import tolerance_of
from tinydec.evidence.csv_format import write_csv
from tinydec.evidence.tolerance_tables import (
    FAULT_EFFECTS,
    NOISE,
    SHARES,
    effects_table,
    noise_table,
    shares_table,
)
from tinydec.figures.log_axis import short
from tinydec.ui import show
from tinydec.ui.current import CurrentRun
from tinydec.ui.equivalence import compute
from tinydec.ui.html import digits
from tinydec.verification.fault_effects import ROUNDING


def tolerance_view(run: CurrentRun) -> None:
    """Noise of random models and effects of faults, the tolerance between them."""
    tolerance = tolerance_of(run.spec)
    found = compute.reasons(run)
    shares = found.at(tolerance)
    show.contract(
        "A tolerance should lie above the rounding of correct models and below the effect of every "
        "fault.",
        r"\text{noise} < \varepsilon < \text{fault}",
        chain(found, run.spec.dtype, tolerance),
    )
    show.figure(
        compute.tolerance_chart(run),
        key="eq.picture",
        alt=f"Noise of {len(found.noise)} correct models and effects of faults on a log axis. "
        f"A tolerance of {short(tolerance)} misses {shares.missed:.0%} of the faults and refuses "
        f"{shares.refused[run.spec.dtype]:.0%} of the correct models in {run.spec.dtype}.",
    )
    moving = sum(effect.moves for effect in found.effects)
    show.look_for(
        f"where the dashed tolerance cuts. At {short(tolerance)} it misses {shares.missed:.1%} of "
        f"{moving} faults (fault and model together) and refuses "
        f"{shares.refused[run.spec.dtype]:.1%} of {len(found.noise)} correct models in "
        f"{run.spec.dtype}. Move the slider up until faults slip through, down until correct "
        "models fail."
    )
    own = [e for e in found.own if e.moves]
    st.caption(
        f"Correct models: {len(found.noise)} drawn from seed {compute.NOISE_SEED}, 1 to 4 layers "
        f"and heads; for the claim's first line {len(found.shipped)} more of the shipped sizes. "
        "Half of each prompt is prefilled, the rest decoded. Faults: on this model and on "
        f"{compute.FAULT_MODELS} random ones of the shipped sizes, in float64, where rounding "
        f"stays below {short(ROUNDING)}. {len(own)} of {len(found.own)} faults move a logit on "
        "this model; the others have to be found by other means: records, digests, draws. An "
        "exact 0 stands at the left end."
    )
    show.table(_share_rows(found, tolerance), label="What each tolerance misses and refuses")
    with st.expander(f"The {len(found.own)} faults on this model"):
        frame = effects_table(sorted(found.own, key=lambda e: -e.effect))
        show.table(
            frame.drop(columns="model"),
            label="Effect of each fault on this model",
            headings={
                "fault_id": "no.",
                "max_abs_error": "largest logit difference",
                "moves_logits": "moves logits",
            },
            verdicts=("moves_logits",),
        )
    with st.container(horizontal=True):
        files: dict[str, Callable[[], bytes]] = {
            "noise.csv": lambda: write_csv(noise_table(found.noise), NOISE),
            "fault_effects.csv": lambda: write_csv(effects_table(found.effects), FAULT_EFFECTS),
            "tolerance_shares.csv": lambda: write_csv(shares_table(found.curve), SHARES),
        }
        for name, data in files.items():
            show.download(name, data, name, key=f"_eq.{name}")


def chain(found: compute.Reasons, dtype: str, tolerance: float) -> str:
    """Return the claim with its numbers, and how many models of other sizes it leaves out."""
    noise = max(model.errors[dtype] for model in found.shipped)
    smallest = found.smallest
    effect = "no fault moves a logit" if smallest is None else digits(smallest.effect)
    beyond = sum(model.errors[dtype] > tolerance for model in found.noise)
    return (
        f"{dtype}, shipped sizes: {digits(noise)} {'<' if noise < tolerance else '≥'} "
        f"{short(tolerance)} {'<' if smallest is None or tolerance < smallest.effect else '≥'} "
        f"{effect}\n"
        f"of {len(found.noise)} correct models of random sizes, some wider or deeper, {beyond} "
        f"round{'s' if beyond == 1 else ''} beyond {short(tolerance)} and would be refused"
    )


def _share_rows(found: compute.Reasons, tolerance: float) -> pd.DataFrame:
    chosen = sorted({*(10.0**e for e in range(-15, 2, 2)), tolerance})
    rows = [found.at(t) for t in chosen]
    return pd.DataFrame(
        {
            "tolerance": [f"{short(t)}{'  ← yours' if t == tolerance else ''}" for t in chosen],
            "faults missed": [f"{row.missed:.1%}" for row in rows],
        }
        | {f"{d} refused": [f"{row.refused[d]:.1%}" for row in rows] for d in rows[0].refused}
    )
