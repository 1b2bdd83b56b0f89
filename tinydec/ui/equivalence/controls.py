"""The page's second handle on two shared controls: number format and tolerance."""

from __future__ import annotations

import math

import streamlit as st

from tinydec.evidence.audit import tolerance_of
from tinydec.figures.log_axis import short
from tinydec.runspec import DTYPES
from tinydec.ui.current import CurrentRun, set_controls
from tinydec.verification.compare import TOLERANCES

#: One and three of each power of ten, as the shared control allows, and the declared ones.
STEPS = tuple(
    sorted(
        {1.0, *TOLERANCES.values()}
        | {float(f"{digit}e{power}") for power in range(-16, 0) for digit in (1, 3)}
    )
)

_DTYPE, _TOLERANCE = "_eq_dtype", "_eq_tolerance"


def nearest_step(tolerance: float) -> float:
    """Return the step that is nearest on the logarithmic axis."""
    return min(STEPS, key=lambda step: abs(math.log10(step) - math.log10(tolerance)))


def format_control(run: CurrentRun) -> None:
    """Draw the number format, in step with the shared control."""
    st.session_state[_DTYPE] = run.spec.dtype
    st.segmented_control(
        "Number format",
        DTYPES,
        key=_DTYPE,
        required=True,
        on_change=_set_dtype,
        label_visibility="collapsed",
    )


def tolerance_control(run: CurrentRun) -> None:
    """Draw the tolerance as a slider, and the way back to the declared one."""
    st.session_state[_TOLERANCE] = nearest_step(tolerance_of(run.spec))
    st.select_slider(
        "Tolerance",
        STEPS,
        key=_TOLERANCE,
        format_func=short,
        on_change=_set_tolerance,
        width=190,
    )
    st.button(
        "Declared",
        on_click=set_controls,
        kwargs={"tolerance": None},
        disabled=run.spec.tolerance is None,
        help="Back to the tolerance that is declared for the number format.",
        key="_eq_declared",
    )


def _set_dtype() -> None:
    set_controls(dtype=st.session_state[_DTYPE])


def _set_tolerance() -> None:
    set_controls(tolerance=st.session_state[_TOLERANCE])
