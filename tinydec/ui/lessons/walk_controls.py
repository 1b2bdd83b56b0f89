"""Controls of the walk through a decode step, and of the number that is explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st

from tinydec.figures.stages import IN_LAYER, STAGES, stage_of
from tinydec.figures.walk import Panel
from tinydec.ui.lessons.decode_step import (
    CONTROLS,
    NEWEST,
    Choice,
    choose,
    clicked,
    control_values,
    neighbour,
    place_in_walk,
    stop_tensor,
)
from tinydec.ui.pages import CATALOGUE
from tinydec.ui.show import notes as draw_notes
from tinydec.verification.explain import Element, Recording

MakePanels = Callable[[Recording, Element, int], Sequence[tuple[Panel, ...]]]

_LABELS = {"tensor": "Tensor", "position": "Position", "head": "Head", "index": "Index"}
#: The shared step of the last run of the page.
_STEP = "_decode.step"
_MOVES = (("Previous stage", -1, "arrow_back"), ("Next stage", 1, "arrow_forward"))
_WIDTHS = {"tensor": 220, "position": 120, "head": 90, "index": 100}


def apply_click(recording: Recording, step: int, *grids: tuple[str, MakePanels]) -> None:
    """Take over a cell that was clicked: before the controls are drawn, which it sets.

    Args:
        recording: the run.
        step: the shared step.
        grids: key of each number grid and what made its panels.
    """
    for key, make in grids:
        state = st.session_state.get(key)
        if not state or not state.get("cell"):
            continue
        before = choose(recording, step, _held())
        element = clicked(state, make(recording, before.element, step))
        if element is not None:
            newest = recording.positions(step, "logits").stop - 1
            st.session_state.update(control_values(element, newest))


def choice_controls(recording: Recording, step: int) -> Choice:
    """Draw the four controls that name a number, bound to the URL; return what they chose.

    What the URL brought that does not exist is replaced, with a note. When the shared step moves,
    the position moves with it.
    """
    if st.session_state.get(_STEP, step) != step and "position" in st.session_state:
        st.session_state["position"] = NEWEST
    st.session_state[_STEP] = step
    # Only a parameter that the page list declares is let through by the frame's reading of a URL.
    bind: Literal["query-params"] | None = (
        "query-params" if set(CONTROLS) <= set(CATALOGUE.parameters()) else None
    )
    junk = {
        name: st.query_params[name]
        for name in CONTROLS
        if name in st.query_params and name not in st.session_state
    }
    notes = choose(recording, step, junk).notes
    choice = choose(recording, step, _held() | junk)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name in CONTROLS:
            offers = getattr(choice.offers, name)
            if name == "head" and len(offers) == 1:
                continue
            if st.session_state.get(name) not in (None, *offers):
                st.session_state[name] = choice.values[name]
            st.selectbox(
                _LABELS[name],
                offers,
                key=name,
                bind=bind,
                width=_WIDTHS[name],
            )
    draw_notes(notes)
    return choose(recording, step, _held())


def walk_controls(recording: Recording, element: Element) -> None:
    """Draw the walk: layer, back and next, and the stages as one row of buttons."""
    n_layer = recording.checkpoint.config.n_layer
    stage = stage_of(element.tensor)
    place = place_in_walk(n_layer, element.tensor)
    layer = element.layer if element.layer is not None else (0 if place == 0 else n_layer - 1)
    st.session_state["_stage"] = stage.key
    st.session_state["_layer"] = layer
    st.segmented_control(
        "Stage",
        [s.key for s in STAGES],
        key="_stage",
        required=True,
        label_visibility="collapsed",
        on_change=_to_stage,
        args=(n_layer, layer),
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.segmented_control(
            "Layer",
            range(n_layer),
            format_func=lambda number: f"layer {number}",
            key="_layer",
            required=True,
            label_visibility="collapsed",
            on_change=_to_layer,
            args=(element.tensor,),
        )
        for label, by, icon in _MOVES:
            target = neighbour(n_layer, element.tensor, by)
            st.button(
                label,
                key=f"_walk.{by}",
                icon=f":material/{icon}:",
                disabled=target is None,
                on_click=_set_tensor,
                args=(target,),
            )
        st.text(stage.title, width="content")


def _held() -> dict[str, object]:
    return {name: st.session_state[name] for name in CONTROLS if name in st.session_state}


def _set_tensor(tensor: str | None) -> None:
    if tensor is not None:
        st.session_state["tensor"] = tensor


def _to_stage(n_layer: int, layer: int) -> None:
    stage = next(s for s in STAGES if s.key == st.session_state["_stage"])
    _set_tensor(stop_tensor((min(layer, n_layer - 1), stage)))


def _to_layer(tensor: str) -> None:
    stage = stage_of(tensor)
    inside = stage if stage in IN_LAYER else IN_LAYER[0]
    _set_tensor(stop_tensor((st.session_state["_layer"], inside)))
