"""Review and exercises: all exercises in one place, the visit's score, and the glossary."""

import pandas as pd
import streamlit as st

from tinydec import ui
from tinydec.evidence import review_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.ui.exercises import board
from tinydec.ui.exercises.catalogue import TOPICS, fitting, score_by_topic

ui.begin()
run = ui.current_run()
exercises = fitting(run.checkpoint)

top = st.container()
topic = st.segmented_control(
    "Topic", TOPICS, default=TOPICS[0], key="topic", bind="query-params", required=True
)
topic = topic if topic in TOPICS else TOPICS[0]
for exercise in exercises:
    if exercise.topic == topic:
        ui.exercise(exercise.key, exercise.title, exercise.draw(run))

# Drawn last, so that an answer that was checked just now counts already.
known = ui.scores()
scores = score_by_topic(exercises, known)
with top:
    ui.contract(
        "An exercise counts once it was right, here or on its lesson's page; its numbers can be "
        "drawn anew as often as you like.",
        r"\text{score} = \frac{\text{exercises right}}{\text{all exercises}}",
        board.score_numbers(scores),
    )
    ui.figure(board.board_figure(scores), key="score", alt=board.board_text(scores))
    ui.look_for(
        "topics with an empty bar. Green was right at least once, hatched red was checked and not "
        "right yet. The score lives in this visit and is gone with it."
    )

st.header("All exercises", anchor=False)
results = board.scores_table(exercises, known)
ui.table(results, label="Every exercise with its result")
ui.download(
    "Exercises as CSV",
    lambda: write_csv(results, review_tables.SCORES),
    review_tables.SCORES.file,
    key="exercises.csv",
)

st.header("Glossary", anchor=False)
st.markdown(
    "Sizes are those of the checkpoint that runs. Layers, heads, positions and slots count from 0."
)
parts = board.glossary_tables(run.checkpoint.config)
for heading, part in parts.items():
    st.subheader(heading, anchor=False)
    shown = part if heading != "Words" else part.drop(columns="here")
    ui.table(shown, label=heading, headings={"here": "on this checkpoint"}, sentences=("meaning",))
ui.download(
    "Glossary as CSV",
    lambda: write_csv(pd.concat(list(parts.values())), review_tables.GLOSSARY),
    review_tables.GLOSSARY.file,
    key="glossary.csv",
)
