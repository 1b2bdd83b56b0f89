"""Mystery mode: a hidden case, judged stage by stage, named by the visitor, marked by the app.

The URL holds the case's number alone. How far a visitor has come stays in the session.
"""

from __future__ import annotations

import streamlit as st

from tinydec.evidence import lab_tables
from tinydec.ui.current import CurrentRun
from tinydec.ui.lab import checklist, choices, session
from tinydec.ui.lab.downloads import csv_button
from tinydec.ui.lab.lab_page import MODES
from tinydec.ui.lab.session import Session
from tinydec.ui.show import table
from tinydec.verification.faults import FAULTS
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.mystery import Case

CASES = 200

_CASES = "_mystery.cases"


def draw(run: CurrentRun) -> None:
    """Draw a hidden case: its stages one by one, the evidence, the answer and its mark."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        number = st.slider("Case", 1, CASES, 1, key="case", bind="query-params", width=260)
        case = session.case(run, number)
        state = _state(number)
        left = case.faults[state["found"] :]
        found = session.session(run, left) if left else None
        failure = found.report.first_failure if found is not None else None
        failed = failure is not None and failure.stage <= state["judged"]
        more = state["judged"] < 6 and bool(left) and not failed
        st.button(
            "Judge the next stage",
            key="_judge",
            icon=":material/fact_check:",
            type="primary" if more else "secondary",
            disabled=not more,
            on_click=_advance,
            args=(number,),
        )
        st.button(
            "Another case",
            key="_another",
            icon=":material/casino:",
            on_click=choices.move,
            args=("case", number % CASES + 1),
        )
    if not case.faults:
        st.info("No fault can act on this checkpoint, so there is no case to solve.")
        return
    hidden = "Two faults are hidden" if len(case.faults) == 2 else "One fault is hidden"
    st.text(
        f"{hidden} in case {number}. Judge stage by stage; at the first red line, name the fault. "
        f"Found so far: {state['found']} of {len(case.faults)}."
    )
    for fault in case.faults[: state["found"]]:
        st.success(f"{lab_tables.named(fault)}: {fault.what} Seen elsewhere: {fault.echoes}.")
    if found is None:
        _solved(case)
        return
    if failure is not None and failed:
        st.markdown(f"**Stage {failure.stage} failed: name the fault below.**")
    st.html(checklist.checklist_html(found.report, state["judged"]))
    if failed:
        _evidence(found)
        _answer(number, left, state)


def _state(number: int) -> dict[str, int]:
    cases: dict[int, dict[str, int]] = st.session_state.setdefault(_CASES, {})
    return cases.setdefault(number, {"judged": 0, "found": 0})


def _advance(number: int) -> None:
    state = _state(number)
    state["judged"] = min(state["judged"] + 1, 6)


def _evidence(found: Session) -> None:
    st.header("Evidence", anchor=False)
    rows = lab_tables.difference_rows(found.differences)
    table(rows, label="Facts that differ from the correct session")
    st.caption(
        "The first facts that differ from the correct session. Layers and positions count from 0."
    )
    csv_button("Evidence as CSV", rows, lab_tables.DIFFERENCES)


def _answer(number: int, left: tuple[Fault, ...], state: dict[str, int]) -> None:
    names = [lab_tables.named(fault) for fault in FAULTS]
    key = f"_mystery.{number}.{state['found']}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        given = st.selectbox("It is", names, index=None, key=f"{key}.answer", width=300)
        st.button(
            "Check", key="_mystery.check", type="primary", on_click=_judge, args=(number, left, key)
        )
    if state.get("wrong"):
        others = [lab_tables.named(fault) for fault in left[1:]]
        if given in others:
            st.info("That one is hidden too, but an earlier stage fails first. Name that one.")
        else:
            st.error("Not that one. Compare what the failing check saw with what the fault does.")
    with st.expander("Hint"):
        stage = left[0].stage
        of_stage = [fault for fault in FAULTS if fault.stage == stage]
        st.markdown(
            f"Stage {stage} catches these:\n\n"
            + "\n".join(f"- **{lab_tables.named(f)}**: {f.what}" for f in of_stage)
        )


def _judge(number: int, left: tuple[Fault, ...], key: str) -> None:
    state = _state(number)
    given = st.session_state.get(f"{key}.answer")
    if given == lab_tables.named(left[0]):
        state.update(found=state["found"] + 1, judged=0, wrong=0)
    else:
        state["wrong"] = 1 if given else 0


def _solved(case: Case) -> None:
    st.text("Solved. Every hidden fault is named, in the order in which the audit names them.")
    for fault in case.faults:
        st.button(
            f"See {lab_tables.named(fault)} in numbers",
            key=f"_see.{fault.id}",
            on_click=_see,
            args=(lab_tables.named(fault),),
        )


def _see(name: str) -> None:
    st.session_state.update(lab=MODES[0], faults=name, reveal=True)
