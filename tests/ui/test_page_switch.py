"""Shared controls that a page switch lost: which of them are set again."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from tinydec.model.storage import load_checkpoint
from tinydec.ui import page_switch
from tinydec.ui.domains import Limits
from tinydec.ui.page_switch import Kept, changed, lost_values, remember, restore_lost
from tinydec.ui.parameters import defaults

DEFAULTS = defaults(Limits.of(load_checkpoint()))
VALUES = DEFAULTS | {"seed": 7, "policy": "sample", "tolerance": 1e-6}
KEPT = Kept("home", VALUES, DEFAULTS)
QUERY = {"seed": "7", "policy": "sample", "tolerance": "1e-6"}
LOST = {"seed": 7, "policy": "sample", "tolerance": 1e-6}


@pytest.mark.parametrize(
    ("query", "session", "lost"),
    [
        (QUERY, VALUES, {}),
        ({}, {}, LOST),
        ({}, VALUES, LOST),
        ({}, DEFAULTS, LOST),
        ({"policy": "sample", "tolerance": "1e-6"}, DEFAULTS, {"seed": 7}),
        ({"policy": "sample", "tolerance": "1e-6"}, VALUES | {"seed": 8}, {}),
    ],
)
def test_only_what_nobody_changed_is_lost(query: dict, session: dict, lost: dict) -> None:
    assert lost_values(KEPT, query, session) == lost


def test_defaults_are_never_lost() -> None:
    assert lost_values(Kept("home", DEFAULTS, DEFAULTS), {}, {}) == {}


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A visit without a server: its session, its query, and whether Back was pressed."""
    state = SimpleNamespace(session_state={}, query_params={})
    context = SimpleNamespace(is_history_navigation=False)
    monkeypatch.setattr(page_switch, "st", state)
    monkeypatch.setattr(page_switch, "get_script_run_ctx", lambda: context)
    state.context = context
    remember("home", VALUES, DEFAULTS)
    return state


def held(visit: SimpleNamespace) -> dict[str, Any]:
    return {k: v for k, v in visit.session_state.items() if k in DEFAULTS}


def test_another_page_gets_back_what_is_missing_twice_at_most(visit: SimpleNamespace) -> None:
    assert restore_lost("memory", DEFAULTS)
    assert held(visit) == LOST
    assert restore_lost("memory", DEFAULTS)
    assert not restore_lost("memory", DEFAULTS)
    remember("memory", VALUES, DEFAULTS)
    assert restore_lost("home", DEFAULTS)


@pytest.mark.parametrize("why", ["same page", "back", "other checkpoint", "nothing kept"])
def test_nothing_is_restored(visit: SimpleNamespace, why: str) -> None:
    visit.context.is_history_navigation = why == "back"
    if why == "nothing kept":
        visit.session_state.clear()
    limits = DEFAULTS | ({"top_k": 5} if why == "other checkpoint" else {})
    assert not restore_lost("home" if why == "same page" else "memory", limits)
    assert held(visit) == {}


def test_visitors_change_to_a_default_stays(visit: SimpleNamespace) -> None:
    visit.session_state["seed"] = DEFAULTS["seed"]
    changed("seed")
    assert restore_lost("memory", DEFAULTS)
    assert held(visit) == {"seed": 41, "policy": "sample", "tolerance": 1e-6}


def test_a_change_before_anything_was_kept_is_no_failure(visit: SimpleNamespace) -> None:
    visit.session_state.clear()
    changed("seed")
    assert visit.session_state == {}


def test_streamlit_still_tells_back_and_forward_apart() -> None:
    assert "is_history_navigation" in {field.name for field in fields(ScriptRunContext)}
