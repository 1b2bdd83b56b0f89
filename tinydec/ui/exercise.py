"""Exercises: compute first, then check; hint, solution, and numbers drawn anew."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from tinydec.errors import InputError
from tinydec.ui.html import code, prose, spelled

_SCORES = "_scores"


@dataclass(frozen=True)
class Task:
    """One exercise with its numbers filled in.

    Attributes:
        question: Markdown; may hold LaTeX between dollar signs.
        answer: what the core computed: a number, or one of ``choices``.
        hint: Markdown.
        solution: Markdown; the way to the answer with the numbers.
        choices: the answers to choose from; none means a number is typed in.
        tolerance: largest accepted absolute error of a typed number.
    """

    question: str
    answer: float | int | str
    hint: str
    solution: str
    choices: tuple[str, ...] = ()
    tolerance: float = 0.0


def exercise(key: str, title: str, draw: Callable[[random.Random], Task]) -> None:
    """Draw an exercise block.

    Args:
        key: unique in the app; the score of the visit is kept under it.
        title: of the block.
        draw: makes the task from a random generator; the same generator state gives the same
            task, so keep every choice inside. The answer is to come from the core.
    """
    number = st.session_state.setdefault(f"_{key}.number", 0)
    try:
        task = draw(random.Random(f"{key}/{number}"))  # noqa: S311 - numbers of an exercise
    except InputError as error:
        st.info(f"{title}: none can be made of this checkpoint. {prose(str(error))}")
        return
    with st.container(border=True, key=f"exercise-{key}".replace(".", "-")):
        st.header(title, anchor=False)
        st.markdown(spelled(task.question))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            given = _answer(task, f"{key}.{number}")
            check = st.button("Check", key=f"_{key}.check", type="primary")
            st.button(
                "New numbers",
                key=f"_{key}.new",
                on_click=_renew,
                args=(key,),
                type="tertiary",
                icon=":material/refresh:",
            )
        if check:
            _judge(key, task, given)
        with st.expander("Hint"):
            st.markdown(spelled(task.hint))
        with st.expander("Solution"):
            st.markdown(spelled(task.solution))


def is_right(task: Task, given: str | float | None) -> bool:
    """Whether an answer is the task's, within its tolerance for a number."""
    if given is None:
        return False
    if isinstance(task.answer, str) or isinstance(given, str):
        return given == str(task.answer)
    return abs(given - task.answer) <= task.tolerance


def scores() -> dict[str, bool]:
    """Return this visit's exercises that were checked, each with whether it was ever right."""
    return dict(st.session_state.get(_SCORES, {}))


def _answer(task: Task, key: str) -> str | float | None:
    if task.choices:
        chosen: str | None = st.selectbox(
            "Your answer", task.choices, index=None, key=f"_{key}.answer", width=260
        )
        return chosen
    typed = st.text_input("Your answer", key=f"_{key}.answer", width=160).strip()
    try:
        number = float(typed.replace(",", ".").replace("−", "-"))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _judge(key: str, task: Task, given: str | float | None) -> None:
    if given is None:
        number = st.session_state[f"_{key}.number"]
        typed = str(st.session_state.get(f"_{key}.{number}.answer") or "").strip()
        if typed:
            st.info(f"A number is expected, found {code(typed[:40])}.")
        else:
            st.info("Compute it first: type or choose an answer, then check.")
        return
    right = is_right(task, given)
    known = st.session_state.setdefault(_SCORES, {})
    known[key] = known.get(key, False) or right
    if right:
        st.success("Right.", icon=":material/check:")
    else:
        st.error("Not yet. The hint says where to start.", icon=":material/close:")


def _renew(key: str) -> None:
    st.session_state[f"_{key}.number"] += 1
