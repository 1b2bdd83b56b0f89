"""Real models: how their caches grow, and how many requests fit in a memory."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tinydec.evidence.cost_tables import REAL_MODELS
from tinydec.evidence.csv_format import write_csv
from tinydec.memory import format_bytes, payload_formula
from tinydec.ui import show
from tinydec.ui.current import CurrentRun
from tinydec.ui.html import digits
from tinydec.ui.memory import compute
from tinydec.ui.memory.controls import BIND, in_numbers

TOKENS = tuple(2**power for power in range(18))
GIBS = (1, 2, 4, 8, 16, 24, 48, 80, 141, 192, 640)
BLOCKS = {"none": 1, "16": 16, "256": 256}
FIRST = "Llama-3.1-8B"

KINDS = {
    "mha": "every query head has its own keys and values",
    "gqa": "groups of query heads share keys and values",
    "mqa": "all query heads share one key and value",
    "sliding": "some layers keep only the latest positions",
    "mla": "one latent in place of keys and values, so no factor 2",
}


def models_view(_run: CurrentRun) -> None:
    """Draw growth lines with one model on top, and the table of requests that fit."""
    layouts = compute.presets()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Model", list(layouts), index=list(layouts).index(FIRST), key="mem_model", bind=BIND,
            format_func=lambda n: layouts[n].label, width=200,
        )  # fmt: skip
        tokens = st.select_slider(
            "Tokens per request", TOKENS, 4096, key="mem_tokens", bind=BIND, width=150
        )
        gib = st.select_slider("Cache memory, GiB", GIBS, 16, key="mem_gib", bind=BIND, width=150)
        block = BLOCKS[
            st.segmented_control(
                "Paged blocks",
                list(BLOCKS),
                default="none",
                key="mem_block",
                bind=BIND,
                required=True,
            )
            or "none"
        ]
    layout = layouts[name]
    frame = compute.real_models(tokens, gib, block)
    mine = frame[frame["model"] == name].iloc[0]
    length = int(mine["tokens"])
    formula = payload_formula(layout, length)
    show.contract(
        "A real cache grows by kilobytes to a megabyte with each token; fewer heads, windows or a "
        "latent flatten the line.",
        formula.symbols_latex,
        f"{in_numbers(formula)} = {format_bytes(int(mine['payload_bytes']))}",
    )
    show.figure(
        compute.growth_chart(name, tokens, gib),
        key="mem.picture",
        alt=f"Bytes of one request against its tokens on two log axes, {len(layouts)} models. "
        f"{layout.label} takes {format_bytes(int(mine['payload_bytes']))} at {length} tokens; "
        f"{mine['requests']} such requests fit in {gib} GiB.",
    )
    cut = "" if length == tokens else f" Its context ends at {length} tokens, so that is shown."
    sure = "" if layout.verified else " Its sizes are not verified: the table says why."
    show.look_for(
        f"where the thick line meets the dashed {gib} GiB: there one request fills the memory. "
        f"{name} ({layout.attention}: {KINDS[layout.attention]}) needs "
        f"{format_bytes(int(mine['payload_bytes']))} at {length} tokens, so "
        f"{digits(int(mine['requests']))} requests fit; one more token adds "
        f"{format_bytes(int(mine['growth_bytes']))}.{cut}{sure} Weights come on top."
    )
    show.table(
        _rows(frame, gib),
        label="Real models",
        verdicts=("sizes verified",),
        sentences=("notes",),
    )
    st.caption(
        "Dotted lines and a ✗ are models whose sizes could not all be confirmed in their sources; "
        "the notes say what is open. A model with a shorter context is shown at its end. Paged "
        "blocks: each request sets aside whole blocks of so many tokens in each layer."
    )
    show.download("real_models.csv", lambda: write_csv(frame, REAL_MODELS), "real_models.csv",
                  key="_mem.models")  # fmt: skip


def _rows(frame: pd.DataFrame, gib: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": frame["model"],
            "kind": frame["attention"],
            "cache in": frame["dtype"],
            "tokens": frame["tokens"],
            "next token adds": [format_bytes(int(b)) for b in frame["growth_bytes"]],
            "one request": [format_bytes(int(b)) for b in frame["allocated_bytes"]],
            f"fit in {gib} GiB": frame["requests"],
            "sizes verified": frame["verified"].astype(bool),
            "notes": [note if isinstance(note, str) else "" for note in frame["notes"]],
        }
    )
