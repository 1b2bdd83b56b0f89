"""Fault lab: break the cache on purpose, predict what shows, and see it in numbers."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import lab_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.ui.lab import audits, choices, faults, lab_page, session
from tinydec.verification.faults import FAULTS

ui.begin()
run = ui.current_run()
bench = session.bench(run)

ui.contract(
    "A check is worth something only if it rejects what is broken, at the right place, and stays "
    "silent on what is right. Break the cache, predict, then see.",
)
formula = st.container()
mode = st.segmented_control(
    "Start from",
    lab_page.MODES,
    default=lab_page.MODES[0],
    key="lab",
    bind="query-params",
    required=True,
    label_visibility="collapsed",
)
if bench.note:
    st.info(bench.note)

exhibit, revealed = None, True
if mode == "Mystery":
    lab_page.mystery(run)
elif mode == "Symptom":
    chosen = lab_page.symptom_choice(run)
    exhibit = session.exhibit(run, chosen) if chosen else None
else:
    choices.read_fault_links(("faults",), FAULTS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        fault, variant = lab_page.fault_choice()
        revealed = st.toggle("Reveal", False, key="reveal", bind="query-params")
    exhibit = session.exhibit(run, fault, variant)
    st.markdown(f"**{fault.name}** · {fault.what}" + f" Needs {fault.needs}." * bool(fault.needs))
    answers = lab_page.predictions(fault, revealed)
    if revealed:
        st.html(lab_page.marks_html(faults.marks(exhibit, *answers)))
with formula:
    ui.formula_block(
        r"\text{caught} \iff \text{first failing stage} = \text{the fault's stage}",
        faults.verdict_numbers(exhibit.row) if exhibit and revealed else "",
    )
if exhibit is not None:
    lab_page.picture(exhibit, bench, revealed)
    if revealed:
        st.text(faults.acting_text(exhibit))
        lab_page.details(exhibit, bench)

st.header("All faults", anchor=False)
catalogue = lab_tables.fault_rows(FAULTS)
if st.toggle("Switch on all 42 in turn", key="_all"):
    rows = lab_tables.verdicts(session.matrix(run))
    passed = int(rows["passed"].sum())
    st.text(f"{passed} of {len(rows)} are caught at their own stage, or cannot act here.")
    ui.table(rows, label="Kill matrix", verdicts=("acts", "passed"))
    ui.download(
        "Kill matrix as CSV",
        lambda: write_csv(rows, lab_tables.VERDICTS),
        "kill_matrix_rows.csv",
        key="matrix.csv",
    )
with st.expander("The catalogue, stages included"):
    ui.table(catalogue, label="Catalogue of faults")
st.caption(session.scenario_text(bench.lab.scenario))
ui.download(
    "Catalogue as CSV",
    lambda: write_csv(catalogue, lab_tables.FAULTS),
    lab_tables.FAULTS.file,
    key="faults.csv",
)

ui.exercise(
    "lab.two",
    "Two faults at once",
    lambda rng: audits.two_fault_task(lambda chosen: session.session(run, chosen), rng),
)
ui.exercise(
    "lab.silent",
    "Which one stays silent?",
    lambda rng: faults.silent_task(lambda fault: session.exhibit(run, fault), rng),
)
