"""2 Decoding policy: one fixed row of logits, one number, one token."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import policy_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.figures.logits import MOST_TOKENS
from tinydec.figures.policy import policy_figure
from tinydec.ui.lessons import policy

compute_row = ui.computed("prompt", "dtype", "cache")(policy.prompt_row)
compute_uniforms = ui.computed("dtype")(policy.seed_uniforms)

ui.begin()
run = ui.current_run()
vocabulary, spec = run.checkpoint.vocabulary, run.spec
row = compute_row(run)
draw = policy.nth_draw(spec.seed, run.step)
study = policy.study(vocabulary, row, spec.policy, draw, compute_uniforms(run))
selection = study.selection

ui.contract(
    "A policy turns one row of logits, and one uniform number when it samples, into a token.",
    r"p = \text{top-}p\big(\text{top-}k(\operatorname{softmax}(z / \tau))\big),\quad "
    r"\text{token} = \min\{i : u < \operatorname{CDF}(i)\}",
    policy.numbers(vocabulary, selection),
)
with st.container(horizontal=True, vertical_alignment="center"):
    for label, values in policy.presets(run.checkpoint, spec, run.step).items():
        st.button(label, key=f"_preset.{label}", on_click=ui.set_controls, kwargs=values)
    st.text(policy.near_tie(vocabulary, row), width="content")
ui.figure(policy_figure(study.picture), key="stages", alt=policy.figure_text(vocabulary, study))
ui.look_for(
    "what each stage does to the same row: a red cross marks a token that a rule dropped. The red "
    "pointer is the number drawn; the interval above it names the token."
)
seen = policy.Seen(
    spec.prompt,
    spec.policy,
    spec.seed,
    run.step,
    draw.state_before,
    vocabulary.tokens[selection.token_id],
)
before = st.session_state.get(policy.MEMORY)
st.session_state[policy.MEMORY] = seen
st.text(policy.moved_text(before, seen))
if len(vocabulary) > MOST_TOKENS:
    st.caption(f"Drawn: the {MOST_TOKENS} highest of {len(vocabulary)} tokens; the table has all.")

st.header("The same numbers", anchor=False)
stages = policy_tables.stages(vocabulary, selection, study.counts)
ui.table(
    stages.head(policy.MOST_ROWS),
    label="Every stage by token",
    headings={"(z − max) / T": "(z − max) / τ"},
)
st.caption(
    f"The row is the last one after the prompt, whatever the policy; Try beside the prompt offers "
    f"every prefix. {policy.stages_caption(study, len(vocabulary))}"
)
ui.download(
    "Stages as CSV",
    lambda: write_csv(stages, policy_tables.STAGES),
    policy_tables.STAGES.file,
    key="stages.csv",
)

st.header("The draw and its record", anchor=False)
record = policy_tables.record(vocabulary, selection, spec.seed, run.step)
ui.table(record, label="Record of the selection")
st.caption(
    f"Each request owns a PCG64 generator: 128 bits of state, here as hexadecimal digits. "
    f"The shared step chooses the draw: step {run.step} is the number that seed {spec.seed} draws "
    f"when {run.step} went before it, always from the same row."
)
ui.download(
    "Record as CSV",
    lambda: write_csv(record, policy_tables.RECORD),
    policy_tables.RECORD.file,
    key="draw_record.csv",
)

st.header("The same draw under other policies", anchor=False)
others = policy_tables.other_policies(
    vocabulary,
    selection,
    draw,
    policy_tables.neighbours(spec.policy, len(vocabulary)),
)
ui.table(others, label="The same draw under other policies", verdicts=("same state before",))
st.caption(
    "The first line is yours. Every sampling policy gets the same number, because the state before "
    "is the same: a slider moves the intervals, not the number. Greedy leaves the state as it was."
)
ui.download(
    "Other policies as CSV",
    lambda: write_csv(others, policy_tables.OTHER_POLICIES),
    policy_tables.OTHER_POLICIES.file,
    key="other_policies.csv",
)

checkpoint = run.checkpoint
ui.exercise("policy.interval", "Invert the CDF", lambda rng: policy.interval_task(checkpoint, rng))
ui.exercise(
    "policy.temperature",
    "Turn the temperature",
    lambda rng: policy.temperature_task(checkpoint, rng),
)
