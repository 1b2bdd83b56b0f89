"""Everything that the frame offers, on one page."""

import random

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from tests.app.demo.catalogue import DEMO
from tinydec import ui
from tinydec.figures.palette import CACHED, ERROR, KEY
from tinydec.figures.style import finish

ui.begin(DEMO)
run = ui.current_run()
trace = ui.current_trace(run)
step = ui.current_step(len(trace.steps))
tokens = run.checkpoint.vocabulary.tokens
record = trace.steps[step]

ui.contract(
    "The decoder turns a prefix into one row of logits; the policy turns that row into a token.",
    r"x_{t+1} = \operatorname{policy}\big(\operatorname{logits}(x_0 \ldots x_t)\big)",
    f"x_{record.length_after} = policy(8 logits at position {record.length_after - 1}) "
    f"= {tokens[record.returned_id]}",
)
with st.container(horizontal=True):
    st.button("Step", on_click=ui.set_controls, kwargs={"step": step + 1})
    st.button("Reset", on_click=ui.set_controls, kwargs={"step": 0})
ui.token_row(
    run.spec.prompt,
    [tokens[i] for i in trace.returned_ids],
    current=record.length_after,
    notes=[str(i) for i in range(len(trace.token_ids))],
)
ui.disclaimer()
chart = go.Figure(
    go.Bar(
        x=list(tokens),
        y=record.selection.logits,
        marker_color=[KEY.mark if i != record.returned_id else CACHED.mark for i in range(8)],
    )
)
chart.update_yaxes(title_text="logit")
chart.add_hline(y=3, line_dash="dash", line_color=ERROR.mark)
ui.figure(finish(chart, height=280), key="logits", alt="Bars: the logit of each of 8 tokens")
ui.look_for("the bar that leads, and by how little.")
frame = pd.DataFrame(
    {
        "token": tokens,
        "logit": record.selection.logits,
        "probability": record.selection.probabilities,
        "kept": [i in record.selection.kept for i in range(8)],
    }
)
ui.table(frame, label="Logits of the step by token", verdicts=("kept",))
ui.download("Logits as CSV", lambda: frame.to_csv().encode(), "logits.csv", key="logits.csv")
ui.cards(
    [
        ui.Card("Prefixes passed", "16 of 16", "within 1e−5", True),
        ui.Card("Wrong layer", "0.64", "rejected", True),
        ui.Card("Cache", "256 bytes"),
        ui.Card("Positions reset", "0.7", "not rejected", False),
    ],
    label="Verdicts",
)


def draw(rng: random.Random) -> ui.Task:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    return ui.Task(
        f"How much is ${a} \\times {b}$?", a * b, "Count.", f"${a} \\times {b} = {a * b}$"
    )


ui.exercise("demo.product", "Multiply", draw)
