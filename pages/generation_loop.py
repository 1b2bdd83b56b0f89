"""1 Generation loop: step through a run, and see why it stops."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import loop_tables
from tinydec.evidence.audit import tolerance_of
from tinydec.evidence.csv_format import write_csv
from tinydec.figures.logits import MOST_STEPS, MOST_TOKENS, shown_steps, steps_figure
from tinydec.ui.lessons import loop
from tinydec.ui.lessons.both import both_paths
from tinydec.ui.lessons.flow import flow_html
from tinydec.ui.lessons.stepper import stepper

run_both = ui.computed()(both_paths)
presets = ui.computed("dtype")(loop.presets)

ui.begin()
run = ui.current_run()
both = run_both(run)
trace, pair, checkpoint = both.trace, both.pair, run.checkpoint
vocabulary = checkpoint.vocabulary
step = ui.current_step(len(trace.steps))

ui.contract(
    "Each turn reads the prefix, keeps the last row of logits, lets the policy select one token "
    "and appends it. The loop goes on until a stop rule applies.",
    r"x_{t+1} = \operatorname{policy}\big(\operatorname{logits}_t(x_0 \ldots x_t)\big)",
    loop.numbers(vocabulary, trace, step),
)
with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    stepper(step, len(trace.steps))
    st.text("Stop by", width="content")
    for label, values in presets(run).items():
        st.button(label, key=f"_preset.{label}", on_click=ui.set_controls, kwargs=values)
st.html(flow_html(vocabulary, trace, step))
ui.figure(
    steps_figure(
        vocabulary.tokens,
        [record.selection.logits for record in trace.steps],
        trace.returned_ids,
        step,
        height=250,
    ),
    key="steps",
    alt=loop.figure_text(vocabulary, trace, step),
)
ui.look_for(
    "the diamond: the token that each step selected. It is the newest token of the next step's "
    "prefix, and the row of logits is computed anew each time."
)
if len(trace.steps) > MOST_STEPS or len(vocabulary) > MOST_TOKENS:
    st.caption(
        f"Drawn: {min(len(trace.steps), MOST_STEPS)} of {len(trace.steps)} steps and the "
        f"{min(len(vocabulary), MOST_TOKENS)} highest of {len(vocabulary)} tokens."
    )

ui.table(
    loop_tables.by_step(vocabulary, trace, shown_steps(len(trace.steps), step)),
    label="Logits by token and step",
)
ui.disclaimer()

st.header("Why it stops", anchor=False)
st.text(loop.stop_text(checkpoint, trace))
rules = loop_tables.stop_rules(checkpoint, trace, step)
ui.table(rules, label=f"Stop rules at step {step}")
st.caption(f"The rules at step {step}, in the order in which they win.")

st.header("Every turn", anchor=False)
turns = loop_tables.turns(vocabulary, trace)
ui.table(loop.shown_turns(turns), label="Every turn of the loop", headings=loop.HEADINGS)
with st.container(horizontal=True):
    ui.download(
        "Turns as CSV",
        lambda: write_csv(turns, loop_tables.TURNS),
        loop_tables.TURNS.file,
        key="turns.csv",
    )
    ui.download(
        "Logits of every step as CSV",
        lambda: write_csv(loop_tables.logit_rows(vocabulary, trace), loop_tables.LOGIT_ROWS),
        loop_tables.LOGIT_ROWS.file,
        key="logit_rows.csv",
    )

st.header("With a cache and without", anchor=False)
st.text(loop.pair_text(pair, tolerance_of(run.spec)))
paths = loop_tables.paths(vocabulary, pair)
ui.table(paths, label="Both paths, step by step", verdicts=("same token", "same draw"))
st.caption(
    "With a cache the decoder reads the prompt once and then one token a step; without, it reads "
    "the whole prefix again. The policy sees the same row either way."
)
ui.download(
    "Both paths as CSV",
    lambda: write_csv(paths, loop_tables.PATHS),
    loop_tables.PATHS.file,
    key="paths.csv",
)

ui.exercise("loop.stop", "Name the stop reason", lambda rng: loop.stop_task(checkpoint, rng))
ui.exercise("loop.consumed", "Count the inputs", lambda rng: loop.consumed_task(checkpoint, rng))
