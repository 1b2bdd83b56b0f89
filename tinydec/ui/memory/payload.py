"""Bytes of this checkpoint's cache against the number of consumed tokens."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from tinydec.evidence.cost_tables import PAYLOAD
from tinydec.evidence.csv_format import write_csv
from tinydec.memory import format_bytes, payload_formula
from tinydec.runspec import DTYPES
from tinydec.ui import show
from tinydec.ui.audits import course_audit, csv_bytes
from tinydec.ui.current import CurrentRun
from tinydec.ui.memory import compute
from tinydec.ui.memory.controls import batch_control, format_control, in_numbers, tokens_now


def payload_view(run: CurrentRun) -> None:
    """Draw the 64 T line, the measured bytes on it, every number format, and the batch."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        batch = batch_control()
        format_control(run)
    tokens = tokens_now(run)
    layout = compute.layout_of(run)
    formula = payload_formula(layout, tokens, batch)
    frame = compute.payload(run, batch)
    mine = frame[frame["dtype"] == run.spec.dtype]
    now = mine[mine["tokens"] == tokens].iloc[0]
    show.contract(
        "Every consumed token adds one key and one value to each layer and head, so the payload "
        "grows in a straight line.",
        rf"\text{{scalars}} = {formula.symbols_latex}",
        in_numbers(formula),
    )
    slope = compute.growth(layout, batch)
    show.figure(
        compute.payload_chart(run, batch, tokens),
        key="mem.picture",
        alt=f"Bytes of the cache against consumed tokens: {slope} bytes for each token in "
        f"{run.spec.dtype}, {now['measured_bytes']} bytes measured at T = {tokens}.",
    )
    equal = bool(mine["equal"].all())
    show.look_for(
        f"the green marks, read off the arrays, {'on' if equal else 'off'} the blue line "
        f"{slope} T. The dashed line is what is set aside from the start: "
        f"{format_bytes(int(now['allocated_bytes']))} for {layout.max_context} tokens. The "
        f"vertical line is this run's step, T = {tokens}: change the shared step to move it. "
        "Half the bytes for a scalar, half the slope; twice the batch, twice the slope."
    )
    if not run.spec.cache:
        st.caption(
            "The cache is switched off: this run keeps 0 bytes. Shown is what it would keep."
        )
    missing = [dtype for dtype in DTYPES if dtype not in set(frame["dtype"])]
    if missing:
        st.caption(
            f"This checkpoint's weights are too large for {' and '.join(missing)}: there the line "
            "is the formula alone, and no cache was filled."
        )
    show.table(_by_length(frame, run.spec.dtype), label="Payload by length", verdicts=("equal",))
    with st.container(horizontal=True):
        show.download("payload.csv", lambda: write_csv(frame, PAYLOAD), "payload.csv",
                      key="_mem.payload")  # fmt: skip
        show.download("memory.csv", partial(_memory_csv, run), "memory.csv", key="_mem.memory")


def _memory_csv(run: CurrentRun) -> bytes:
    return csv_bytes(course_audit(run), "memory.csv")


def _by_length(frame: pd.DataFrame, dtype: str) -> pd.DataFrame:
    mine = frame[frame["dtype"] == dtype]
    columns: dict[str, list[object]] = {
        "T": mine["tokens"].tolist(),
        "scalars": mine["scalars"].tolist(),
    }
    for name in dict.fromkeys(frame["dtype"]):
        columns[f"{name}, bytes"] = frame[frame["dtype"] == name]["formula_bytes"].tolist()
    columns[f"measured, {dtype}"] = mine["measured_bytes"].tolist()
    columns["equal"] = mine["equal"].tolist()
    return pd.DataFrame(columns)
