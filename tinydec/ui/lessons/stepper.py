"""Buttons that move the shared step control, which stands in the URL."""

from __future__ import annotations

import streamlit as st

from tinydec.ui.current import set_controls


def stepper(step: int, count: int, *, back: bool = True) -> None:
    """Draw Step, Run and Reset, and Back where asked for; to be called in a horizontal container.

    Args:
        step: the one shown, 0 to ``count`` - 1.
        count: steps of the run.
        back: whether there is a button back.
    """
    last = count - 1
    # The label of a disabled primary button cannot be read in the dark theme.
    strong = "primary" if step < last else "secondary"
    buttons = [
        ("Step", "skip_next", min(step + 1, last), step == last, strong),
        ("Run to end", "fast_forward", last, step == last, "secondary"),
        ("Reset", "replay", 0, step == 0, "secondary"),
    ]
    if back:
        buttons.insert(0, ("Back", "skip_previous", max(step - 1, 0), step == 0, "secondary"))
    for label, icon, target, disabled, kind in buttons:
        st.button(
            label,
            key=f"_stepper.{label}",
            icon=f":material/{icon}:",
            type=kind,  # type: ignore[arg-type]
            disabled=disabled,
            on_click=set_controls,
            kwargs={"step": target},
        )
