"""Controls of the page, the length that the shared step stands for, the formula in numbers."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from tinydec.memory.report import PayloadFormula
from tinydec.runspec import DTYPES
from tinydec.ui.compute import current_trace
from tinydec.ui.current import CurrentRun, current_step, set_controls
from tinydec.ui.html import grouped

BIND: Literal["query-params"] = "query-params"
BATCHES = (1, 2, 4, 8, 16)

_DTYPE = "_mem_dtype"


def batch_control() -> int:
    """Draw the batch size and return it."""
    chosen = st.segmented_control(
        "Requests side by side, B", BATCHES, default=1, key="mem_batch", bind=BIND, required=True
    )
    return chosen or 1


def format_control(run: CurrentRun) -> None:
    """Draw the number format, in step with the shared control."""
    st.session_state[_DTYPE] = run.spec.dtype
    st.segmented_control(
        "Number format of the cache", DTYPES, key=_DTYPE, required=True, on_change=_set_dtype
    )


def tokens_now(run: CurrentRun) -> int:
    """Return the inputs that the run has consumed after the shared step."""
    trace = current_trace(run)
    return trace.steps[current_step(len(trace.steps))].length_after


def in_numbers(formula: PayloadFormula) -> str:
    """Return the payload formula in numbers, spelled as on every page."""
    return grouped(f"{formula.numbers}\n{formula.bytes_numbers}".replace(" x ", " · "))


def _set_dtype() -> None:
    set_controls(dtype=st.session_state[_DTYPE])
