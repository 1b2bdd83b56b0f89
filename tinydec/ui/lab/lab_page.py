"""What the fault lab draws: a fault revealed, candidates of a symptom, a hidden case."""

from __future__ import annotations

from html import escape
from typing import Any

import streamlit as st

from tinydec.evidence import lab_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.evidence.schema import TableSchema
from tinydec.figures.fault_lab import sessions_figure
from tinydec.ui.current import CurrentRun
from tinydec.ui.lab import checklist, choices, faults, session
from tinydec.ui.lab.session import Bench, Exhibit, Session
from tinydec.ui.number_grid import number_grid
from tinydec.ui.show import download, figure, look_for, table
from tinydec.verification.audit.checks import STAGES
from tinydec.verification.diagnosis import Symptom
from tinydec.verification.faults import FAULTS
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.mystery import Case

MODES = ("Fault", "Symptom", "Mystery")
MAIN_FORM = "main form"
CASES = 200

_CASES = "_mystery.cases"


# One fault ---------------------------------------------------------------------------------------


def fault_choice() -> tuple[Fault, str]:
    """Draw the list of faults and of a fault's forms; return the chosen ones."""
    fault = choices.fault_control(
        "Fault", "faults", FAULTS, optional=False, width=300, on_change=_hide
    )
    chosen = fault or FAULTS[0]
    if not chosen.variants:
        return chosen, ""
    forms = [MAIN_FORM, *chosen.variants]
    form = st.selectbox("Form", forms, key="variant", bind="query-params", width=170)
    return chosen, "" if form not in chosen.variants else form


def _hide() -> None:
    st.session_state["reveal"] = False


def predictions(fault: Fault, revealed: bool) -> tuple[str | None, str | None, str | None]:
    """Draw the three questions; return the answers, None where there is none yet."""
    stages = [faults.stage_name(stage) for stage in STAGES]
    answers: list[str | None] = []
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, question, options, width in (
            ("stage", "Which stage fails first?", stages, 290),
            ("part", "Do cached and full logits part?", [faults.YES, faults.NO], 225),
            ("greedy", "Does the highest logit change?", [faults.YES, faults.NO], 225),
        ):
            chosen: str | None = st.selectbox(
                question,
                options,
                index=None,
                key=f"_predict.{fault.id}.{name}",
                placeholder="predict",
                disabled=revealed,
                width=width,
            )
            answers.append(chosen)
    return answers[0], answers[1], answers[2]


def marks_html(marks: tuple[faults.Mark, ...]) -> str:
    """Return predictions beside what happened, as a list."""
    items = []
    for mark in marks:
        said = "no prediction" if mark.said is None else f"you said {mark.said}"
        tone = "plain" if mark.said is None else "good" if mark.right else "bad"
        sign = {"plain": "", "good": "✓ ", "bad": "✗ "}[tone]
        items.append(
            f'<li class="{tone}"><div class="name">{escape(mark.question)}</div>'
            f'<div class="value">{escape(mark.happened)}</div>'
            f'<div class="verdict">{sign}{escape(said)}</div></li>'
        )
    return f'<ul class="td-cards" aria-label="Predictions and outcome">{"".join(items)}</ul>'


def picture(exhibit: Exhibit, bench: Bench, revealed: bool) -> None:
    """Draw both sessions' logits and where their tensors part."""
    if exhibit.logits is None:
        st.info("No step was recorded in both sessions, so there is nothing to draw.")
        return
    place, correct, faulty = exhibit.logits
    shown = exhibit.shown
    tensors = [(t.name, t.error) for t in shown.tensors] if revealed and shown else []
    first = shown.first.name if revealed and shown and shown.first else None
    figure(
        sessions_figure(
            bench.lab.checkpoint.vocabulary.tokens,
            correct,
            faulty if revealed else None,
            tensors,
            first,
            bench.lab.tolerance,
        ),
        key="sessions",
        alt=faults.figure_text(exhibit, revealed),
    )
    if not revealed:
        st.caption(f"Logits: {place}, correct session. Predict, then reveal the faulty one.")
    elif shown is not None:
        st.caption(
            f"Logits: {place}. Tensors: {shown.run}, step {shown.correct.index}, each against the "
            "same tensor of the correct session; crosses are beyond the tolerance."
        )


def details(exhibit: Exhibit, bench: Bench) -> None:
    """Draw the first tensor in numbers, the facts that differ, guard, echoes and verdict."""
    fault, found = exhibit.fault, exhibit.session
    pair = found.pair
    st.header("The first difference in numbers", anchor=False)
    if pair is not None and pair.first is not None:
        number_grid(
            faults.first_grids(pair, bench.lab.checkpoint.vocabulary, bench.lab.tolerance),
            key="first_tensor",
        )
        look_for(
            f"the framed cells: {pair.first.name} of {pair.run}, step {pair.correct.index}, is "
            "the first tensor that is not what it was. Layers and positions count from 0."
        )
    else:
        st.text("No tensor of any step differs. What differs is in the record:")
    rows = lab_tables.difference_rows(found.differences)
    table(rows, label="Facts that differ")
    _csv("Differences as CSV", rows, lab_tables.DIFFERENCES)
    st.header("Guard, echoes, verdict", anchor=False)
    st.text(faults.guard_text(exhibit))
    st.text(f"Seen elsewhere: {fault.echoes}.")
    verdict = lab_tables.verdicts([exhibit.row])
    table(verdict, label="Row of the kill matrix", verdicts=("acts", "passed"))
    with st.container(horizontal=True):
        _csv("Verdict as CSV", verdict, lab_tables.VERDICTS)
        if pair is not None and pair.first is not None:
            values = lab_tables.values(pair.first)
            _csv("First tensor as CSV", values, lab_tables.VALUES)


def _csv(label: str, frame: Any, schema: TableSchema) -> None:
    download(label, lambda: write_csv(frame, schema), schema.file, key=schema.file)


# From a symptom ----------------------------------------------------------------------------------


def symptom_choice(run: CurrentRun) -> Fault | None:
    """Draw the symptoms, what to check first and the candidates; return the chosen one."""
    index = session.symptoms(run)
    known = {symptom.observation: symptom for symptom in index}
    chosen = st.selectbox(
        "What do you see?", list(known), key="symptom", bind="query-params", width=640
    )
    symptom: Symptom = known.get(chosen or "", next(iter(index)))
    candidates = index[symptom]
    st.markdown(f"**Check first:** {symptom.first_check}.")
    if not candidates:
        st.info("No fault shows this symptom on this checkpoint.")
        return None
    frame = lab_tables.candidates(candidates)
    table(frame, label="Candidates")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fault = choices.fault_control(
            "See it happen", "faults", [c.fault for c in candidates], optional=False, width=300
        )
        _csv("Candidates as CSV", frame, lab_tables.CANDIDATES)
    return fault or candidates[0].fault


# Mystery -----------------------------------------------------------------------------------------


def mystery(run: CurrentRun) -> None:
    """Draw a hidden case: its stages one by one, the evidence, the answer and its mark."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        number = st.slider("Case", 1, CASES, 1, key="case", bind="query-params", width=260)
        case = session.case(run, number)
        state = _state(number)
        left = case.faults[state["found"] :]
        st.button(
            "Judge the next stage",
            key="_judge",
            icon=":material/fact_check:",
            type="primary" if state["judged"] < 6 and left else "secondary",
            disabled=state["judged"] >= 6 or not left,
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
    if not left:
        _solved(case)
        return
    found = session.session(run, left)
    st.html(checklist.checklist_html(found.report, state["judged"]))
    failure = found.report.first_failure
    if failure is not None and failure.stage <= state["judged"]:
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
    _csv("Evidence as CSV", rows, lab_tables.DIFFERENCES)


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
