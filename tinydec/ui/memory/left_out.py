"""What the payload formula leaves out."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tinydec.evidence.cost_tables import FOOTPRINT, footprint_table
from tinydec.evidence.csv_format import write_csv
from tinydec.memory import format_bytes
from tinydec.ui import show
from tinydec.ui.current import CurrentRun
from tinydec.ui.memory import compute
from tinydec.ui.memory.controls import batch_control, format_control, tokens_now


def left_out_view(run: CurrentRun) -> None:
    """Draw payload, unused slots, records, temporaries and weights on one log axis."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        batch = batch_control()
        format_control(run)
    tokens = tokens_now(run)
    found = compute.footprint(run, tokens, batch)
    rest = found.unused + found.records + found.decode + found.weights
    show.contract(
        "The payload is keys and values alone. Decoding also holds weights, room for tokens to "
        "come, records and temporaries.",
        r"\text{held} = \text{payload} + \text{unused} + \text{records} + \text{temporaries}"
        r" + \text{weights}",
        f"{found.payload} + {found.unused} + {found.records} + {found.decode} + {found.weights} "
        f"= {found.payload + rest} bytes at T = {tokens}, B = {batch}",
    )
    show.figure(
        compute.footprint_chart(run, tokens, batch),
        key="mem.picture",
        alt=f"Bars of bytes: payload {found.payload}, unused slots {found.unused}, records "
        f"{found.records}, temporaries {found.decode} and {found.prefill}, weights "
        f"{found.weights}.",
    )
    config = run.checkpoint.config
    show.look_for(
        f"how small the payload is here: {format_bytes(found.payload)} beside "
        f"{format_bytes(found.records)} of Python records and {format_bytes(found.weights)} of "
        "weights. In a large model it is the other way round: records stay the same, weights are "
        "shared by all requests, and the payload grows with every token of every request."
    )
    frame = footprint_table(found)
    show.table(
        pd.DataFrame(
            {
                "part": frame["part"],
                "bytes": frame["bytes"],
                "against the payload": [
                    f"{value / found.payload:.2f} x" for value in frame["bytes"]
                ],
                "what it is": frame["meaning"],
            }
        ),
        label="What decoding holds",
    )
    st.caption(
        f"Weights: {config.parameter_count()} scalars of "
        f"{found.weights // config.parameter_count()} bytes. Records are what CPython counts for "
        "the cache's own objects, on this version; a serving engine keeps leaner ones. "
        "Temporaries count every intermediate, because these pages keep them all; a program that "
        "frees them early needs less at any moment."
    )
    show.download("footprint.csv", lambda: write_csv(frame, FOOTPRINT), "footprint.csv",
                  key="_mem.footprint")  # fmt: skip
