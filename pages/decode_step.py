"""5 One decode step: walk from a token to its logits, and explain any number on the way."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import step_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.figures.stages import stage_of
from tinydec.figures.walk import frame_of
from tinydec.ui.lessons import decode_step as page
from tinydec.ui.lessons import decode_tasks
from tinydec.ui.lessons.explain_tree import explain_tree
from tinydec.ui.lessons.walk_controls import apply_click, choice_controls, walk_controls
from tinydec.verification.explain import explain, filled

make_lesson = ui.computed()(page.lesson)

ui.begin()
run = ui.current_run()
lesson = make_lesson(run)
recording, tokens, vocabulary = lesson.recording, lesson.tokens, run.checkpoint.vocabulary
step = ui.current_step(len(recording.steps))
apply_click(recording, step, ("walk", page.walk_panels), ("heat", page.heat_panels))

above, grids, below = st.container(), st.container(), st.container()
with below:
    st.header("Explain a number", anchor=False)
    choice = choice_controls(recording, step)
element = choice.element
stage = stage_of(element.tensor)
node = explain(recording, element)

with above:
    ui.contract(
        "A decode step turns one token into one row of logits. Click any number to see the "
        "arithmetic that made it; layers, heads and positions count from 0. Names are GPT-2's: "
        "h.1.q are the queries (q) of block (layer) 1, whatever the head.",
        node.formula.latex,
        f"{node.name} = {filled(node, ui.digits, 4)}",
    )
    ui.token_row(
        run.spec.prompt,
        [vocabulary.tokens[token] for token in lesson.trace.returned_ids],
        current=element.position,
        notes=[str(place) for place in range(len(lesson.trace.token_ids))],
    )
    walk_controls(recording, element)
with grids:
    panels = page.walk_panels(recording, element, step)
    frame = frame_of(panels, step)
    ui.number_grid(
        page.frames(lesson, panels, vocabulary.tokens),
        key="walk",
        frame=frame,
        selected=page.selected(element, panels),
    )
    ui.look_for(stage.look_for)
    note = page.cut_note(recording, panels, frame)
    if note:
        st.caption(note)
with below:
    nodes = explain_tree(recording, node, tokens)
    ui.download(
        "Explanation as CSV",
        lambda: write_csv(step_tables.explanation(nodes, tokens), step_tables.EXPLANATION),
        step_tables.EXPLANATION.file,
        key="explanation.csv",
    )

st.header("Attention of every layer and head", anchor=False)
heat = page.heat_panels(recording, element, step)
ui.number_grid(
    page.frames(lesson, heat, vocabulary.tokens),
    key="heat",
    frame=frame_of(heat, step),
    selected=page.selected(element, heat),
)
ui.look_for(page.heat_words(lesson.trace.use_cache))
ui.disclaimer()

st.header("The same numbers", anchor=False)
names = page.stage_tensors(recording, element)
values = step_tables.step_values(recording, step, tokens, names, page.MOST_LINES)
ui.table(values, label=f"Numbers of the stage {stage.key} in step {step}")
if len(values) == page.MOST_LINES:
    st.caption(f"The first {page.MOST_LINES} numbers of this stage; the CSV has all.")
ui.download(
    "All numbers of this step as CSV",
    lambda: write_csv(step_tables.step_values(recording, step, tokens), step_tables.STEP_VALUES),
    step_tables.STEP_VALUES.file,
    key="decode_step.csv",
)

checkpoint = run.checkpoint
ui.exercise("decode.score", "A score", lambda rng: decode_tasks.score_task(checkpoint, rng))
ui.exercise(
    "decode.weight", "An attention weight", lambda rng: decode_tasks.weight_task(checkpoint, rng)
)
