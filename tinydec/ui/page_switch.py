"""Shared controls kept through a page switch that comes before the browser knows them.

On a page switch the browser keeps those parameters of the URL whose controls it has mounted. A
visitor who opens a link and clicks on another page while controls still load would lose the
others. So the values of the last run are remembered here, with every change that a visitor makes,
and those that a switch lost are set again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from tinydec.ui.domains import NAMES

_KEPT = "_kept"
#: One run draws a control that was never drawn, the next one takes its value to the URL.
_MOST_TRIES = 2


@dataclass(frozen=True)
class Kept:
    """What the controls held when a page was last drawn.

    Attributes:
        url_path: of that page.
        values: by control name.
        defaults: of every control, for the checkpoint that ran.
        tries: how often these values have been set again.
    """

    url_path: str
    values: Mapping[str, Any]
    defaults: Mapping[str, Any]
    tries: int = 0


def remember(url_path: str, values: Mapping[Any, Any], defaults: Mapping[str, Any]) -> None:
    """Keep the page and the values of the shared controls among ``values``."""
    held = {name: values[name] for name in NAMES if name in values}
    st.session_state[_KEPT] = Kept(url_path, held, defaults)


def changed(name: str) -> None:
    """Keep what a visitor has just set; as a control's callback.

    The run that a change starts may be overtaken by a click on another page; its callbacks run.
    """
    kept: Kept | None = st.session_state.get(_KEPT)
    if kept is not None:
        values = {**kept.values, name: st.session_state.get(name)}
        st.session_state[_KEPT] = Kept(kept.url_path, values, kept.defaults, kept.tries)


def restore_lost(url_path: str, defaults: Mapping[str, Any]) -> bool:
    """Set the controls again that a page switch lost; say whether there were any.

    To be called before the controls are drawn; if it says so, the script has to run again once
    they are. Back and forward are left alone: they bring a URL of their own, in which a missing
    parameter means the default. With another checkpoint than before there is nothing to restore.
    """
    kept: Kept | None = st.session_state.get(_KEPT)
    if kept is None or kept.url_path == url_path or kept.defaults != defaults:
        return False
    if kept.tries >= _MOST_TRIES or _is_history_navigation():
        return False
    lost = lost_values(kept, st.query_params, st.session_state)
    for name, value in lost.items():
        st.session_state[name] = value
    st.session_state[_KEPT] = Kept(kept.url_path, kept.values, kept.defaults, kept.tries + 1)
    return bool(lost)


def lost_values(kept: Kept, query: Mapping[str, Any], session: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values that are in force no more though nobody changed them. Pure.

    Args:
        kept: the controls in the last run, changes since then included.
        query: parameters of the URL now, in which every value but a default has to stand.
        session: the controls' values now.
    """
    return {
        name: value
        for name, value in kept.values.items()
        if value != kept.defaults[name]
        and name not in query
        and session.get(name, value) in (value, kept.defaults[name])
    }


def _is_history_navigation() -> bool:
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
