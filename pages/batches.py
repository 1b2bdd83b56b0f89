"""9 Batches and stopping: rows that join, finish and leave, each equal to its solo run."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import batch_tables
from tinydec.figures.batches import isolation_figure
from tinydec.model.batch_cache import LAYOUTS
from tinydec.ui.html import prose
from tinydec.ui.lab import batch_tasks, batches, choices, lanes
from tinydec.ui.lab.downloads import csv_button
from tinydec.verification.lab.catalogue_batch import BATCH_FAULTS

run_lesson = ui.computed(
    "prompt", "policy", "seed", "max_new_tokens", "stop_tokens", "dtype", "tolerance"
)(batches.batch_lesson)

ui.begin()
run = ui.current_run()
checkpoint, vocabulary = run.checkpoint, run.checkpoint.vocabulary
choices.read_fault_links(("faults",), BATCH_FAULTS)

ui.contract(
    "Rows of a batch share one pass and nothing else: each keeps its own positions, cache, "
    "generator and stop reason, and equals the same request alone.",
)
formula = st.container()
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    layout = st.segmented_control(
        "Layout", LAYOUTS, default=LAYOUTS[0], key="layout", bind="query-params", required=True
    )
    neighbours = st.slider("Neighbours", 0, 5, 5, key="neighbours", bind="query-params", width=120)
    joins = choices.stepped("You join at", "joins", batches.LATEST_JOIN + 1, width=110)
    leaves = st.selectbox(
        "You leave before",
        ["the end", *range(1, batches.LATEST_LEAVE + 1)],
        key="leaves",
        bind="query-params",
        width=130,
    )
    fault = choices.fault_control("Break it", "faults", BATCH_FAULTS, width=240)

setup = batches.Setup(
    neighbours, joins, leaves if isinstance(leaves, int) else None, fault.id if fault else ""
)
lesson = run_lesson(run, setup)
layout = layout if layout in LAYOUTS else LAYOUTS[0]
trace = lesson.traces[layout]
with formula:
    ui.formula_block(
        r"\max_i \, |z^{\text{batch}}_i - z^{\text{solo}}_i| \le \varepsilon",
        batches.error_numbers(lesson),
    )

choices.note_later_step("batch_step", len(trace.steps))
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    place = choices.stepped("Batch step", "batch_step", len(trace.steps), width=110)
    st.button(
        "Next step",
        key="_next",
        icon=":material/skip_next:",
        type="primary" if place + 1 < len(trace.steps) else "secondary",
        disabled=place + 1 >= len(trace.steps),
        on_click=choices.move,
        args=("batch_step", place + 1),
    )
st.text(batches.step_text(trace, place))
st.html(lanes.lanes_html(vocabulary, trace, place))
ui.look_for(
    "the lane called you: the shared controls above set its prompt, policy and seed. Blue edge: a "
    "whole prompt in one pass; green edge: one token. Purple is the returned token, the "
    "badge behind it the row's own stop reason; the other lanes go on. A batch has steps of its "
    "own: the shared step and the cache switch have no part here."
)
if fault is not None:
    st.warning(
        f"{fault.id} {fault.name} is on. {fault.what}"
        + (f" Its guard would say: “{prose(lesson.refusal)}”." if lesson.refusal else ""),
        icon=":material/bug_report:",
    )
ui.disclaimer()

st.header("Slots, padding and positions", anchor=False)
ui.formula_block(
    r"\text{position} = \text{real tokens before}",
    batches.position_numbers(trace, place),
)
st.html(lanes.slots_html(vocabulary, lesson.traces, place))
ui.look_for(
    "the same token with the same position in another slot: left padding pushes it to the right, "
    "right padding leaves a gap behind it, ragged stores none. Blue frame: written in this step; "
    "purple ground: seen by the row's newest query. No padding is purple."
)
slots = batch_tables.slots(vocabulary, trace, place)
with st.expander(f"Slots of the {layout} layout as a table"):
    ui.table(
        slots,
        label=f"Slots, {layout} layout",
        headings={"written_by": "written by"},
        verdicts=("new", "seen"),
    )

st.header("Who sees what", anchor=False)
st.html(lanes.masks_html(vocabulary, trace.steps[place], layout))
st.caption(
    f"The masks of batch step {trace.steps[place].index} in the {layout} layout. Lines are "
    "queries, columns are slots; ● means that the query sees the slot. Hatched: queries that are "
    "computed for padding and see nothing."
)

st.header("Each row against itself alone", anchor=False)
st.text(batches.verdict_text(lesson))
ui.figure(
    isolation_figure(lesson.records, lesson.tolerance),
    key="isolation",
    alt=batches.verdict_text(lesson),
)
records = [record for found in lesson.records.values() for record in found]
isolation = batch_tables.isolation_rows(records)
ui.table(
    isolation,
    label="Rows against solo runs",
    headings={
        "max_abs_error": "largest error",
        "tokens_equal": "same tokens",
        "draws_equal": "same draws",
        "stop_equal": "same stop",
        "excused": "near-tie",
    },
    verdicts=("tokens_equal", "draws_equal", "stop_equal", "passed"),
)

st.caption(
    "These errors are those of this batch: each row's logits beside the same request alone. "
    "Cache against no cache, on the 16 prefixes, is another comparison, with a largest error of "
    "its own."
)

st.header("How each row ended", anchor=False)
stops = batch_tables.stops(vocabulary, trace)
ui.table(
    stops,
    label="How each row ended",
    headings={"last_step": "last step", "stop_reason": "stop reason"},
)
st.caption(
    "A batch has no stop reason. Each row keeps its own, recorded in the step in which it applied; "
    "a row that you cancel has none."
)
with st.container(horizontal=True):
    csv_button("Slots as CSV", slots, batch_tables.SLOTS)
    csv_button("Lanes as CSV", batch_tables.lanes(vocabulary, trace), batch_tables.LANES)
    csv_button("Isolation as CSV", isolation, batch_tables.ISOLATION)
    csv_button("Stops as CSV", stops, batch_tables.STOPS)

ui.exercise(
    "batches.position",
    "Position or slot?",
    lambda rng: batch_tasks.position_task(checkpoint, rng),
)
ui.exercise(
    "batches.stop", "Whose stop reason?", lambda rng: batch_tasks.stop_task(checkpoint, rng)
)
