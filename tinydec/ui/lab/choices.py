"""Controls of these pages: faults by name, kept in the URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from tinydec.errors import InputError
from tinydec.evidence.lab_tables import named
from tinydec.ui.domains import quoted
from tinydec.ui.show import notes
from tinydec.verification.faults import fault_by_id
from tinydec.verification.lab.fault import Fault

NONE = "none"


def read_fault_links(keys: Sequence[str], faults: Sequence[Fault]) -> None:
    """Let a link name faults by id or by name; to be called before the controls are drawn.

    ``?faults=F19`` and ``?faults=F19 F21`` are how a RunSpec spells them; the controls spell a
    fault ``F19 wrong-layer``. Anything else is left to the controls, which drop it.
    """
    if keys[0] in st.session_state:
        return
    words = " ".join(st.query_params.get_all(keys[0])).replace(",", " ").split()
    found: dict[str, None] = {}
    for word in words:
        try:
            fault = fault_by_id(word)
        except InputError:
            continue
        if any(fault.id == known.id for known in faults):
            found[named(fault)] = None
    for key, name in zip(keys, found, strict=False):
        if key == keys[0] or key not in st.query_params:
            st.session_state[key] = name


def fault_control(
    label: str,
    key: str,
    faults: Sequence[Fault],
    *,
    optional: bool = True,
    width: int = 260,
    on_change: Callable[[], None] | None = None,
) -> Fault | None:
    """Draw a searchable list of faults, bound to the URL, and return the chosen one."""
    names = {named(fault): fault for fault in faults}
    options = [NONE, *names] if optional else list(names)
    chosen = st.selectbox(
        label, options, key=key, bind="query-params", width=width, on_change=on_change
    )
    return names.get(chosen or "")


def stepped(label: str, key: str, count: int, *, width: int = 120) -> int:
    """Draw a control for one of ``count`` steps, bound to the URL, and return the choice."""
    options = list(range(count))
    chosen = st.selectbox(label, options, key=key, bind="query-params", width=width)
    return int(chosen) if chosen in options else 0


def note_later_step(key: str, count: int) -> None:
    """Say that a link names a step which this run does not reach; before :func:`stepped`.

    The frame cannot know how many steps a run has.
    """
    found = "" if key in st.session_state else st.query_params.get(key, "")
    if found and found not in map(str, range(count)):
        expected = f"expected an integer from 0 to {count - 1}, the steps of this run"
        notes([f"{key}: {expected}, found {quoted(found)}; ran with 0"])


def move(key: str, value: object) -> None:
    """Set a control of the page; only as a callback."""
    st.session_state[key] = value
