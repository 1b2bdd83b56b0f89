"""Home: the contract, live; the verdicts; published beside measured; where to start."""

from functools import partial

import streamlit as st

from tinydec import ui
from tinydec.evidence import loop_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.evidence.published import compare_published, load_published
from tinydec.evidence.registry import TABLES
from tinydec.figures.logits import turn_figure
from tinydec.ui.html import prose
from tinydec.ui.lessons import home
from tinydec.ui.lessons.both import both_paths
from tinydec.ui.lessons.flow import flow_html
from tinydec.ui.lessons.stepper import stepper
from tinydec.ui.pages import CATALOGUE

run_both = ui.computed()(both_paths)
run_audit = ui.computed("dtype", "tolerance", max_entries=16)(home.audit)

ui.begin()
run = ui.current_run()
trace = run_both(run).trace
vocabulary = run.checkpoint.vocabulary
step = ui.current_step(len(trace.steps))
record = trace.steps[step]
token = vocabulary.tokens[record.returned_id]

ui.contract(home.welcome(run.checkpoint))
with st.container(horizontal=True, vertical_alignment="center"):
    stepper(step, len(trace.steps), back=False)
    st.markdown(home.turn_text(trace, step), width="content")
    ui.page_link("generation_loop", "Start the lessons →")
st.html(flow_html(vocabulary, trace, step))
ui.figure(
    turn_figure(
        vocabulary.tokens,
        record.selection.logits,
        record.selection.probabilities,
        record.returned_id,
        height=235,
    ),
    key="turn",
    alt=f"Bars of {len(vocabulary)} logits and probabilities at step {step}; {token} is selected",
)

report = run_audit(run)
pages = {info.url_path for info in CATALOGUE.existing()}
if isinstance(report, str):
    st.info(f"No verdicts for this checkpoint. {prose(report)}")
else:
    cards = home.verdict_cards(report, pages)
    st.markdown(home.cards_text(cards))
    ui.linked_cards(cards, key="verdicts")

ui.look_for(
    "the purple bar, marked ▶: the token that the policy returned. Press Step and it moves to the "
    "end of the prefix, where the decoder reads it next."
)
ui.disclaimer()

st.header("This turn in numbers", anchor=False)
numbers = loop_tables.logit_rows(vocabulary, trace)
ui.table(
    numbers[numbers["step"] == step],
    label=f"Logits and probabilities at step {step}",
    headings={"token_id": "id"},
)
ui.download(
    "Logits of every step as CSV",
    lambda: write_csv(numbers, loop_tables.LOGIT_ROWS),
    loop_tables.LOGIT_ROWS.file,
    key="logit_rows.csv",
)

if not isinstance(report, str):
    comparisons = compare_published(report)
    st.header("Published beside measured", anchor=False)
    ui.table(home.published_frame(comparisons), label="Published values beside measured ones")
    st.caption(home.published_caption(report, load_published()[0]))
    table = TABLES["published_vs_measured.csv"]
    ui.download(
        "Published and measured as CSV", partial(table.csv, report), table.file, key="published.csv"
    )

st.header("Where to go", anchor=False)
for info in CATALOGUE.existing():
    if info.url_path in home.WAYS:
        ui.page_link(info.url_path, f"**{info.title}**: {home.WAYS[info.url_path]}")

ui.exercise("home.greedy", "Turn the loop once", lambda rng: home.greedy_task(run.checkpoint, rng))
