"""3 Prefill and decode: many queries at once, then one at a time."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import phase_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.figures.phases import pair_figure
from tinydec.ui.exercises import shapes
from tinydec.ui.lessons import phases
from tinydec.ui.lessons.readable import readable
from tinydec.ui.lessons.stepper import stepper

compute_plan = ui.computed(max_entries=64)(phases.plan)
compute_view = ui.computed("prompt", "dtype", "cache", max_entries=32)(phases.view)

ui.begin()
run = ui.current_run()
plan = compute_plan(run)
tokens = [run.checkpoint.vocabulary.tokens[i] for i in plan.split.token_ids]
count = plan.split.decode_steps + 1
step = ui.current_step(count)
view = compute_view(run, plan.split, step)

ui.contract(
    "Without a cache every step computes all earlier tokens again. It need not: the causal mask "
    "lets a token see only earlier ones, so their keys and values never change. Prefill reads the "
    "prompt once and keeps them; each decode step computes one query, key and value per layer and "
    "head, and reads the kept ones.",
    r"\begin{aligned}q&:(B,h,P,d_h)\to(B,h,1,d_h)\\K,V&:(B,h,P,d_h)\to(B,h,t{+}1,d_h)\end{aligned}",
    phases.numbers(view),
)
with st.container(horizontal=True, vertical_alignment="center"):
    stepper(step, count)
    longer = phases.longer_prompt(run.checkpoint)
    if len(run.spec.prompt) == 1 and longer is not None:
        st.button(
            "Try a prompt of 3 tokens",
            key="_longer",
            on_click=ui.set_controls,
            kwargs={"prompt": longer},
        )
    shown = f"Step 0 is the {view.first.phase} pass; beside it stands step {view.step}."
    st.markdown(plan.note or shown, width="content")

ui.figure(pair_figure(*phases.panels(view), tokens, height=300), key="pairs", alt=phases.alt(view))
st.html(phases.legend_html())
ui.look_for(phases.look_for(view))

st.header("Every tensor's shape", anchor=False)
st.markdown(
    "Read off the arrays of this run. $B$ requests, $h$ heads, $P$ new positions, $t$ keys, widths "
    "$d$, $d_h$, $m$ and $V$. Layers and positions count from 0; all layers have the same shapes."
)
names = {"first": phases.first_name(view), "later": phases.later_name(view)}
headings = {f"{n}_shape": text for n, text in names.items()}
headings |= {"first_scalars": "numbers, step 0", "later_scalars": f"numbers, step {view.step}"}
ui.table(
    readable(phase_tables.layers_folded(view.rows)),
    label="Shapes of every tensor",
    headings=headings,
)
ui.download(
    "Shapes of all layers as CSV",
    lambda: write_csv(phase_tables.shapes(view.rows), phase_tables.SHAPES),
    phase_tables.SHAPES.file,
    key="shapes.csv",
)

st.header("Work of each phase", anchor=False)
st.markdown(phases.work_text(view))
other = "the same step without a cache" if run.spec.cache else "the same step with a cache"
ui.table(readable(view.work), label="Multiply-adds by part", headings=names | {"other_way": other})
ui.table(
    view.passes,
    label="Every pass of the run",
    headings={
        "keys_from_cache": "keys from the cache",
        "keys_made": "keys made",
        "pairs_seen": "pairs seen",
        "pairs_hidden": "pairs hidden",
        "multiply_adds": "multiply-adds",
    },
)
with st.container(horizontal=True):
    ui.download(
        "Work as CSV",
        lambda: write_csv(view.work, phase_tables.WORK),
        phase_tables.WORK.file,
        key="phase_work.csv",
    )
    ui.download(
        "Passes as CSV",
        lambda: write_csv(view.passes, phase_tables.PASSES),
        phase_tables.PASSES.file,
        key="passes.csv",
    )
ui.disclaimer()

ui.exercise(
    "review.shape", "The shape of a tensor", lambda rng: shapes.shape_task(run.checkpoint, rng)
)
ui.exercise("phases.pairs", "Count the pairs", phases.pair_task(run.checkpoint))
