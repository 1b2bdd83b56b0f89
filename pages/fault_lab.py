"""Fault lab: break the cache on purpose, predict what shows, and see it in numbers."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import lab_tables
from tinydec.ui.lab import audits, choices, exhibits, faults, lab_page, mystery, session
from tinydec.ui.lab.downloads import csv_button
from tinydec.verification.faults import FAULTS

ui.begin()
run = ui.current_run()
bench = session.bench(run)

ui.contract(
    "A check is worth something only if it rejects what is broken, at the right place, and stays "
    "silent on what is right. Break the cache, predict, then see.",
)
formula = st.container()
choices.read_fault_links(("faults",), FAULTS)
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    mode = st.segmented_control(
        "Start from",
        lab_page.MODES,
        default=lab_page.MODES[0],
        key="lab",
        bind="query-params",
        required=True,
    )
    symptom, revealed = None, True
    if mode == "Symptom":
        symptom, fault = lab_page.symptom_choice(run)
        exhibit = exhibits.exhibit(run, fault) if fault else None
    elif mode == "Mystery":
        exhibit = None
    else:
        fault, variant, revealed = lab_page.fault_choice()
        exhibit = exhibits.exhibit(run, fault, variant)
if bench.note:
    st.info(bench.note)

if mode == "Mystery":
    mystery.draw(run)
elif symptom is not None:
    st.markdown(f"**Check first:** {symptom.first_check}.")
elif exhibit is not None:
    needs = f" Needs {exhibit.fault.needs}." if exhibit.fault.needs else ""
    st.markdown(f"**{exhibit.fault.name}**: {exhibit.fault.what}{needs}")
    if revealed:
        answers = lab_page.predicted(exhibit.fault)
        st.html(lab_page.marks_html(faults.marks(exhibit, *answers)))
    else:
        lab_page.predictions(exhibit.fault)
with formula:
    ui.formula_block(
        r"\text{caught} \iff \text{first failing stage} = \text{the fault's stage}",
        faults.caught_numbers(exhibit, revealed),
    )
if exhibit is not None:
    lab_page.picture(exhibit, bench, revealed)
    if revealed:
        st.text(faults.acting_text(exhibit))
        lab_page.details(exhibit, bench)
if symptom is not None:
    lab_page.candidate_table(run, symptom)

st.header("All faults", anchor=False)
catalogue = lab_tables.fault_rows(FAULTS)
if st.toggle("Switch on all 42 in turn, variants included", key="_all"):
    found = exhibits.matrix(run)
    rows = lab_tables.verdicts(
        [entry.row for entry in found], {entry.fault.id: entry.refusal for entry in found}
    )
    passed = int(rows["passed"].sum())
    st.text(f"{passed} of {len(rows)} are caught at their own stage, or cannot act here.")
    ui.table(
        rows[list(lab_page.SHOWN_VERDICT)],
        label="Kill matrix",
        headings={
            "stage_expected": "stage expected",
            "stage_found": "stage found",
            "first_tensor": "first tensor off",
            "first_position": "at position",
            "max_abs_error": "largest logit error",
            "greedy_changed": "greedy token changed",
            "caught_by": "caught by",
        },
        verdicts=("passed",),
    )
    csv_button("Kill matrix as CSV", rows, lab_tables.VERDICTS)
with st.expander("The catalogue, stages included"):
    ui.table(
        catalogue,
        label="Catalogue of faults",
        headings={"what_goes_wrong": "what goes wrong", "shows_in": "shows in"},
        sentences=("what_goes_wrong", "shows_in"),
    )
st.caption(session.scenario_text(bench.lab.scenario))
csv_button("Catalogue as CSV", catalogue, lab_tables.FAULTS)

ui.exercise(
    "lab.two",
    "Two faults at once",
    lambda rng: audits.two_fault_task(lambda chosen: session.session(run, chosen), rng),
)
ui.exercise(
    "lab.silent",
    "Which one stays silent?",
    lambda rng: faults.silent_task(lambda fault: exhibits.exhibit(run, fault), rng),
)
