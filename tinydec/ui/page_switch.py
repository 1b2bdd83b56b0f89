"""Shared controls kept through a page switch that comes before the browser knows them.

On a page switch the browser keeps those parameters of the URL whose controls it has mounted. A
visitor who opens a link and clicks on another page while controls still load would lose the
others. So the values of the last run are remembered here, and those that a switch lost are set
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from tinydec.ui.domains import NAMES

_KEPT = "_kept"
_TRIES = "_kept.tries"
#: One run draws a control that was never drawn, the next one takes its value to the URL.
_MOST_TRIES = 2


def remember(url_path: str, values: Mapping[Any, Any]) -> None:
    """Keep the page and the values of the shared controls among ``values``."""
    held = {name: values[name] for name in NAMES if name in values}
    st.session_state[_KEPT] = (url_path, held)
    st.session_state[_TRIES] = 0


def restore_lost(url_path: str, defaults: Mapping[str, Any]) -> bool:
    """Set the controls again that a page switch lost; say whether there were any.

    To be called before the controls are drawn; if it says so, the script has to run again once
    they are. Back and forward are left alone: they bring a URL of their own, in which a missing
    parameter means the default.
    """
    where, kept = st.session_state.get(_KEPT, (url_path, {}))
    tries = st.session_state.get(_TRIES, 0)
    if where == url_path or tries >= _MOST_TRIES or _is_history_navigation():
        return False
    lost = lost_values(kept, st.query_params, st.session_state, defaults)
    for name, value in lost.items():
        st.session_state[name] = value
    st.session_state[_TRIES] = tries + 1
    return bool(lost)


def lost_values(
    kept: Mapping[str, Any],
    query: Mapping[str, Any],
    session: Mapping[Any, Any],
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the values that are in force no more though nobody changed them. Pure.

    Args:
        kept: the controls' values in the last run.
        query: parameters of the URL now, in which every value but a default has to stand.
        session: the controls' values now; another one than before was chosen by the visitor.
        defaults: of every control.
    """
    return {
        name: value
        for name, value in kept.items()
        if value != defaults[name]
        and name not in query
        and session.get(name, value) in (value, defaults[name])
    }


def _is_history_navigation() -> bool:
    return bool(getattr(get_script_run_ctx(), "is_history_navigation", False))
