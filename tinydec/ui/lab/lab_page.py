"""What the fault lab draws: a fault to be predicted and revealed, candidates of a symptom."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from tinydec.evidence import lab_tables
from tinydec.figures.fault_lab import logits_figure, tensors_figure
from tinydec.ui.current import CurrentRun
from tinydec.ui.html import digits, spelled
from tinydec.ui.lab import choices, exhibits, faults
from tinydec.ui.lab.downloads import csv_button
from tinydec.ui.lab.exhibits import Exhibit
from tinydec.ui.lab.session import Bench
from tinydec.ui.number_grid import number_grid
from tinydec.ui.show import figure, look_for, table
from tinydec.verification.audit.checks import STAGES
from tinydec.verification.diagnosis import Symptom
from tinydec.verification.faults import FAULTS
from tinydec.verification.lab.fault import Fault

MODES = ("Fault", "Symptom", "Mystery")
MAIN_FORM = "main form"
#: Columns of the kill matrix that a page shows; the CSV has all.
SHOWN_VERDICT = (
    "name", "variant", "stage_expected", "stage_found", "first_tensor", "first_position",
    "max_abs_error", "greedy_changed", "caught_by", "verdict", "passed",
)  # fmt: skip

_PREDICTED = "_predicted"
_QUESTIONS = {
    "stage": "Which stage fails first?",
    "part": "Do cached and full logits part?",
    "greedy": "Does the highest logit change?",
}


# One fault ---------------------------------------------------------------------------------------


def fault_choice() -> tuple[Fault, str, bool]:
    """Draw the list of faults, of a fault's forms, and the switch that reveals what happens."""
    fault = choices.fault_control(
        "Fault", "faults", FAULTS, optional=False, width=270, on_change=_hide
    )
    chosen, variant = fault or FAULTS[0], MAIN_FORM
    if chosen.variants:
        forms = [MAIN_FORM, *chosen.variants]
        variant = st.selectbox("Form", forms, key="variant", bind="query-params", width=150)
    revealed = st.toggle(
        "Reveal", False, key="reveal", bind="query-params", on_change=_keep, args=(chosen.id,)
    )
    return chosen, variant if variant in chosen.variants else "", revealed


def _hide() -> None:
    st.session_state["reveal"] = False


def _keep(fault_id: str) -> None:
    """Remember the predictions: their controls are not drawn once the outcome is."""
    answers = [st.session_state.get(f"_predict.{fault_id}.{name}") for name in _QUESTIONS]
    st.session_state[_PREDICTED] = (fault_id, *answers)


def predicted(fault: Fault) -> tuple[str | None, str | None, str | None]:
    """Return what the visitor predicted of a fault before it was revealed."""
    kept = st.session_state.get(_PREDICTED)
    if not kept or kept[0] != fault.id:
        return None, None, None
    return kept[1], kept[2], kept[3]


def predictions(fault: Fault) -> None:
    """Draw the three questions."""
    yes_or_no = [faults.YES, faults.NO]
    stages = [faults.stage_name(stage) for stage in STAGES]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for (name, question), options, width in zip(
            _QUESTIONS.items(), (stages, yes_or_no, yes_or_no), (290, 235, 235), strict=True
        ):
            st.selectbox(
                question,
                options,
                index=None,
                key=f"_predict.{fault.id}.{name}",
                placeholder="predict",
                width=width,
            )


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
    left, right = st.columns(2)
    with left:
        figure(
            logits_figure(
                bench.lab.checkpoint.vocabulary.tokens, correct, faulty if revealed else None
            ),
            key="logits",
            alt=faults.logits_text(exhibit, revealed),
        )
    with right:
        figure(
            tensors_figure(tensors, first, bench.lab.tolerance),
            key="tensors",
            alt=faults.tensors_text(exhibit, revealed),
        )
    if not revealed:
        st.caption(
            f"Left: logits of the correct session ({place}). Right: empty until you reveal how "
            "far each tensor of the faulty session is off. The session is fixed: of the shared "
            "controls, number format, tolerance and checkpoint apply."
        )
    elif shown is not None:
        st.caption(
            f"Left: {place}. Right: {shown.run}, step {shown.correct.index}, each tensor against "
            "the same one of the correct session. Dashed: the tolerance; crosses are beyond it, "
            "dots on the ground exactly equal."
            + ("" if np.any(faulty) else " The faulty logits are all 0, so no bar shows.")
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
    numbers = rows["what"].str.contains("[", regex=False)
    shown = rows.assign(
        **{
            side: rows[side].where(~numbers, rows[side].map(spelled))
            for side in ("correct", "faulty")
        }
    )
    table(shown, label="Facts that differ")
    csv_button("Differences as CSV", rows, lab_tables.DIFFERENCES)
    st.header("Guard, echoes, verdict", anchor=False)
    st.text(faults.guard_text(exhibit))
    st.text(f"Seen elsewhere: {fault.echoes}.")
    verdict = lab_tables.verdicts([exhibit.row], {fault.id: exhibit.refusal})
    table(_upright(verdict), label="Row of the kill matrix")
    with st.container(horizontal=True):
        csv_button("Verdict as CSV", verdict, lab_tables.VERDICTS)
        if pair is not None and pair.first is not None:
            values = lab_tables.values(pair.first)
            csv_button("First tensor as CSV", values, lab_tables.VALUES)


def _upright(row: pd.DataFrame) -> pd.DataFrame:
    """Return a table's only row as lines of name and value, without the empty ones."""
    entries = [(name, spelled(digits(row[name].iloc[0]))) for name in row.columns]
    return pd.DataFrame([e for e in entries if e[1]], columns=["kill matrix", "value"])


# From a symptom ----------------------------------------------------------------------------------


def symptom_choice(run: CurrentRun) -> tuple[Symptom, Fault | None]:
    """Draw the symptoms and what to check first; return the chosen one and a candidate."""
    index = exhibits.symptoms(run)
    known = {symptom.observation: symptom for symptom in index}
    chosen = st.selectbox(
        "What do you see?", list(known), key="symptom", bind="query-params", width=560
    )
    symptom: Symptom = known.get(chosen or "", next(iter(index)))
    candidates = index[symptom]
    if not candidates:
        st.info("No fault shows this symptom on this checkpoint.")
        return symptom, None
    fault = choices.fault_control(
        f"{len(candidates)} faults show it here; see one happen",
        "faults",
        [candidate.fault for candidate in candidates],
        optional=False,
        width=300,
    )
    return symptom, fault or candidates[0].fault


def candidate_table(run: CurrentRun, symptom: Symptom) -> None:
    """Draw the faults that show a symptom, with what the failing check of each saw."""
    st.header("All candidates", anchor=False)
    frame = lab_tables.candidates(exhibits.symptoms(run)[symptom])
    table(frame, label="Candidates", sentences=("observed", "expected"))
    st.caption(
        "Measured by switching on every fault in turn, in float32 with the declared tolerance."
    )
    csv_button("Candidates as CSV", frame, lab_tables.CANDIDATES)
