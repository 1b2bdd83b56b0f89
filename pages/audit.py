"""10 Audit: six stages in dependency order, on the correct session or on a faulty one."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import lab_tables
from tinydec.figures.audit import divergence_figure
from tinydec.ui.lab import audits, checklist, choices, session
from tinydec.ui.lab.downloads import csv_button
from tinydec.verification.faults import FAULTS

ui.begin()
run = ui.current_run()
choices.read_fault_links(("faults", "second"), FAULTS)
bench = session.bench(run)

ui.contract(
    "An audit judges one contract at a time, in the order in which they depend on each other. "
    "What stands behind the first failing stage is not judged: it may only echo it.",
)
formula = st.container()
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    first = choices.fault_control("Fault in the session", "faults", FAULTS, width=240)
    second = choices.fault_control("A second one", "second", FAULTS, width=240)
    stages = [0, 1, 2, 3, 4, 5, 6]
    judged = st.selectbox(
        "Stages judged", stages, index=6, key="stage", bind="query-params", width=110
    )
    st.button(
        "Judge the next",
        key="_next",
        icon=":material/fact_check:",
        type="primary" if judged < 6 else "secondary",
        disabled=judged >= 6,
        on_click=choices.move,
        args=("stage", min(judged + 1, 6)),
    )
    st.button(
        "Start over",
        key="_over",
        icon=":material/replay:",
        disabled=judged == 0,
        on_click=choices.move,
        args=("stage", 0),
    )
found = session.audited(run, [fault for fault in (first, second) if fault is not None])
report = found.report
failing = report.first_failure is not None and report.first_failure.stage <= judged
with formula:
    ui.formula_block(
        r"\text{stage } n \text{ is judged} \iff \text{stages } 1 \ldots n - 1 \text{ pass}",
        audits.verdict_numbers(found) if failing or judged == 6 else "",
    )
if bench.note:
    st.info(bench.note)
st.html(checklist.checklist_html(report, judged))
ui.look_for(
    "the first red line: only that verdict is about its own cause. Open any line for what was "
    "observed, what was expected, the tolerance and the place."
)
if run.checkpoint.config.n_positions > 1:  # else the audit is that of the frozen checkpoint
    ui.token_row(
        run.spec.prompt,
        [run.checkpoint.vocabulary.tokens[i] for i in ui.current_trace(run).returned_ids],
        label="Tokens of your run, without a fault",
    )
    ui.disclaimer()
st.caption(session.scenario_text(bench.lab.scenario, yours=True))

if judged >= 4 or failing:
    st.header("Where values first differ", anchor=False)
    divergence = audits.first_divergence(found)
    ui.figure(
        divergence_figure(
            audits.divergence_names(bench),
            divergence.errors,
            divergence.first,
            report.tolerance,
        ),
        key="divergence",
        alt=audits.divergence_text(divergence),
    )
    st.text(audits.divergence_text(divergence))
if failing:
    st.header("Diagnosis", anchor=False)
    st.markdown(audits.diagnosis_markdown(found))
    st.caption("From the record alone: the diagnosis does not know what was switched on.")

st.header("Every check", anchor=False)
checks = lab_tables.checks(
    check for stage in report.stages if stage.number <= judged for check in stage.checks
)
ui.table(
    checks, label="Checks of the audit", sentences=("contract", "observed", "expected", "reason")
)
st.caption(
    f"{audits.sharpness_text(bench)} That and every logit error above are from the runs of this "
    "session; the 16 prefixes of the equivalence have numbers of their own."
)
csv_button("Checks as CSV", checks, lab_tables.CHECKS)

ui.exercise(
    "audit.stage",
    "Which stage?",
    lambda rng: audits.stage_task(lambda fault: session.session(run, (fault,)), rng),
)
