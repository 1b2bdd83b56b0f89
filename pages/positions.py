"""6 Positions: the next position is the number of consumed inputs, and it ends somewhere."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import position_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.figures.overflow import difference_figure
from tinydec.ui.lessons import positions
from tinydec.ui.lessons.readable import readable
from tinydec.ui.lessons.stepper import stepper

compute_run = ui.computed(max_entries=64)(positions.position_run)
compute_overflow = ui.computed("dtype", "tolerance", max_entries=64)(positions.overflow_view)

ui.begin()
run = ui.current_run()
vocabulary = run.checkpoint.vocabulary
found = compute_run(run)
trace = found.trace
step = ui.current_step(len(trace.steps))
record = trace.steps[step]

ui.contract(
    "Every input takes the position that equals the number of inputs consumed before it, and reads "
    "that row of the position table.",
    r"x_p = \text{wte}[\text{token}_p] + \text{wpe}[p]",
    positions.numbers(run.checkpoint, found, step),
)
with st.container(horizontal=True, vertical_alignment="center"):
    stepper(step, len(trace.steps))
ui.token_row(
    run.spec.prompt,
    [vocabulary.tokens[i] for i in trace.returned_ids],
    current=record.length_after - 1,
    notes=positions.chip_notes(found),
    label="Tokens of the run with their positions",
)
grids, note = positions.embedding_grids(run.checkpoint.cast(run.spec.dtype), found, step)
ui.number_grid(grids, key="position_grid")
ui.look_for(
    f"the framed rows: token row plus position row is what enters layer 0 in step {step}. "
    "Positions count from 0."
)
st.markdown(positions.limit_text(run.checkpoint, found))
if note:
    st.caption(note)
table = position_tables.positions(vocabulary, trace)
ui.table(
    readable(table, "position_rows"),
    label="Consumed and returned in every step",
    headings={
        "position_rows": "position rows read",
        "consumed_before": "consumed before",
        "next_position": "consumed after = next position",
        "consumed_later": "consumed later",
        "stop_reason": "stop reason",
    },
    verdicts=("consumed_later",),
)
ui.download(
    "Positions as CSV",
    lambda: write_csv(table, position_tables.POSITIONS),
    position_tables.POSITIONS.file,
    key="positions.csv",
)
ui.disclaimer()

st.header("One input too many", anchor=False)
view = compute_overflow(run, trace.token_ids)
st.markdown(positions.overflow_text(view, vocabulary.tokens))
ui.cards(positions.overflow_cards(view), label="What each way makes of the input that does not fit")
ui.figure(
    difference_figure(view.report, vocabulary.tokens),
    key="differences",
    alt="Difference of each logit from the full forward: naive sliding has bars, re-prefill "
    "next to none",
)
ui.look_for(
    "the hatched bars: what naive sliding does to each token's logit. Re-prefill has bars too, too "
    "small to see."
)
st.markdown(positions.slide_text(view))
ways = position_tables.overflow_table(vocabulary, view.report, view.tolerance)
ui.table(
    readable(ways.drop(columns="refusal"), "key_positions"),
    label="Three ways",
    headings={
        "inputs_held": "inputs held",
        "key_positions": "keys made at",
        "logit_error": "largest logit error",
        "within_tolerance": "within tolerance",
        "same_argmax": "same greedy token",
        "multiply_adds": "multiply-adds",
    },
    verdicts=("within_tolerance", "same_argmax"),
)
slots = position_tables.slots(vocabulary, view.report)
ui.table(
    slots,
    label="Slots after naive sliding",
    headings={"made_at": "key made at", "should_be": "its position in the kept window"}
    | {
        f"key_error_layer_{layer}": f"key error, layer {layer}"
        for layer in range(run.checkpoint.config.n_layer)
    },
)
logits = position_tables.window_logits(vocabulary, view.report)
ui.table(logits, label="Logits of the input that does not fit", headings={"token_id": "id"})
with st.container(horizontal=True):
    ui.download(
        "Three ways as CSV",
        lambda: write_csv(ways, position_tables.OVERFLOW),
        position_tables.OVERFLOW.file,
        key="overflow.csv",
    )
    ui.download(
        "Slots as CSV",
        lambda: write_csv(slots, position_tables.slots_schema(run.checkpoint.config.n_layer)),
        "overflow_slots.csv",
        key="overflow_slots.csv",
    )
    ui.download(
        "Logits as CSV",
        lambda: write_csv(logits, position_tables.WINDOW_LOGITS),
        position_tables.WINDOW_LOGITS.file,
        key="overflow_logits.csv",
    )

ui.exercise("positions.returned", "Returned, not consumed", positions.returned_task(run.checkpoint))
ui.exercise("positions.slide", "Where keys were made", positions.slide_task(run.checkpoint))
