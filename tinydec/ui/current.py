"""The run that the shared controls describe at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui import page_switch
from tinydec.ui.checkpoints import session_checkpoint
from tinydec.ui.domains import NAMES, Limits
from tinydec.ui.parameters import Note, settle


@dataclass(frozen=True, eq=False)
class CurrentRun:
    """What to compute.

    Attributes:
        spec: everything that determines the run; always valid for ``checkpoint``.
        checkpoint: the one that ``spec`` names, in the dtype of its file
            (``checkpoint.cast(spec.dtype)`` gives the one that runs).
        step: the shared step control, >= 0; use :func:`current_step` to keep it in a run.
        notes: what was replaced by a default; the frame has shown them already.
    """

    spec: RunSpec
    checkpoint: Checkpoint
    step: int
    notes: tuple[Note, ...]


def current_run() -> CurrentRun:
    """Return the run that the shared controls describe."""
    identity, checkpoint = session_checkpoint()
    values: dict[str, Any] = {n: st.session_state[n] for n in NAMES if n in st.session_state}
    settled = settle(values, Limits.of(checkpoint), identity)
    return CurrentRun(settled.spec, checkpoint, settled.step, settled.notes)


def current_step(count: int) -> int:
    """Return the shared step, kept within a run of ``count`` steps (0 to ``count`` - 1).

    Says so under the controls when the step asked for lies beyond the run.
    """
    step = current_run().step
    if step < count:
        return step
    st.caption(
        f"Step {step} was asked for; this run has {count} "
        f"{'step' if count == 1 else 'steps'}, so step {count - 1} is shown."
    )
    return count - 1


def set_controls(**values: Any) -> None:
    """Set shared controls; only as a callback, before the page is drawn anew.

    Example: ``st.button("Step", on_click=ui.set_controls, kwargs={"step": run.step + 1})``.
    A value outside its domain is replaced with a note, as if a visitor had typed it.

    Raises:
        KeyError: no shared control has that name.
    """
    for name, value in values.items():
        if name not in NAMES:
            raise KeyError(f"expected one of {', '.join(NAMES)}, found {name!r}")
        st.session_state[name] = value
        page_switch.changed(name)
