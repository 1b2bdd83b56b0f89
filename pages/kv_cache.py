"""4 KV cache: one key and one value per layer, head and position, written once."""

import streamlit as st

from tinydec import ui
from tinydec.evidence import kv_tables
from tinydec.evidence.csv_format import write_csv
from tinydec.figures.perturbation import move_figure
from tinydec.ui.exercises import shapes
from tinydec.ui.lessons import kv_cache
from tinydec.ui.lessons.kv_controls import amount_control, choice, move_on
from tinydec.ui.lessons.stepper import stepper

compute_inputs = ui.computed(max_entries=64)(kv_cache.consumed)
compute_view = ui.computed("prompt", "dtype", max_entries=64)(kv_cache.cache_view)
compute_moves = ui.computed("prompt", "dtype", max_entries=64)(kv_cache.moves)
compute_label = ui.computed("prompt", "dtype", max_entries=64)(kv_cache.label)
compute_operations = ui.computed("prompt", "dtype", max_entries=64)(kv_cache.operations)

ui.begin()
run = ui.current_run()
config, vocabulary = run.checkpoint.config, run.checkpoint.vocabulary
inputs = compute_inputs(run)
step = ui.current_step(inputs.steps)
ids = inputs.until(step)
tokens = [vocabulary.tokens[i] for i in ids]
view = compute_view(run, inputs, step)

ui.contract(
    "The new token's query is compared with every earlier key and averages every earlier value, "
    "so those two are kept; an earlier query is used in its own step only. After t inputs the "
    "cache holds one key and one value for each layer, head and position; the next input appends "
    "one row to each and leaves the others alone.",
    r"\begin{aligned}K^{(\ell)},V^{(\ell)}&:(B,h,t,d_h)\\\text{numbers}&=2\,L\,B\,h\,t\,d_h\end{aligned}",
    kv_cache.numbers(run.checkpoint, view),
)
with st.container(horizontal=True, vertical_alignment="center"):
    stepper(step, inputs.steps)
    many_layers, many_heads = config.n_layer > 2, config.n_head > 2
    layer = head = 0
    if many_layers:
        layer = choice("Layer", config.n_layer, "kv_layer")
    if many_heads:
        head = choice("Head", config.n_head, "kv_head")
    st.markdown(
        f"Step {step} wrote the framed row{'s' if step == 0 and len(ids) > 1 else ''}.",
        width="content",
    )
if not run.spec.cache:
    st.markdown("This run keeps no cache. Shown is what a cache would hold of the same inputs.")
ui.token_row(
    run.spec.prompt,
    [vocabulary.tokens[i] for i in inputs.token_ids[inputs.prompt_length :]],
    consumed=len(inputs.token_ids),
    current=len(ids) - 1,
    notes=[f"position {p}" for p in range(len(inputs.token_ids))],
    label="Inputs of the run with their positions",
)
layers = range(layer, layer + 1) if many_layers else range(config.n_layer)
heads = range(head, head + 1) if many_heads else range(config.n_head)
grids, note = kv_cache.cache_grids(view, inputs, layers, heads)
with st.container(width=kv_cache.grid_width(len(heads), config.d_h)):
    ui.number_grid(grids, key="kv_grid")
if note:
    st.caption(note)
ui.look_for(
    "the framed rows, the only ones that a step writes. Rows are positions, columns the numbers "
    "of one head; layers, heads and positions count from 0."
)
ui.download(
    "Cache as CSV",
    lambda: write_csv(kv_tables.cells(view.step.stored), kv_tables.CELLS),
    kv_tables.CELLS.file,
    key="kv_cells.csv",
)
ui.disclaimer()

st.header("Written rows never change", anchor=False)
st.markdown(kv_cache.history_text(view))
if step == 0:
    move_on(run.checkpoint, step, inputs.steps, key="_kv.rows")
history = kv_tables.history(vocabulary, ids, view.histories)
ui.table(
    kv_tables.history_by_position(history),
    label="Rows of every position against their first copy",
    headings={
        "written_step": "written in step",
        "compared_steps": "later steps compared",
        "numbers_compared": "numbers compared",
        "changed_steps": "steps with a changed bit",
        "same_bits": "same bits",
    },
    verdicts=("same_bits",),
)
ui.download(
    "Every layer's rows as CSV",
    lambda: write_csv(history, kv_tables.HISTORY),
    kv_tables.HISTORY.file,
    key="row_history.csv",
)

st.header("Past queries are not needed", anchor=False)
if len(ids) < 2:
    st.markdown("There is no past at the first position.")
    move_on(run.checkpoint, step, inputs.steps, key="_kv.past")
else:
    amount = amount_control()
    moves = compute_moves(run, ids, amount)
    st.markdown(kv_cache.moves_text(moves))
    ui.figure(
        move_figure(moves, tokens),
        key="moves",
        alt=f"Past queries move the next logits by {moves.largest_query_move:g}; past keys and "
        "values move them",
    )
    ui.look_for("the place of each past query's bar: it stays at 0 for every amount.")
    table = kv_tables.moves(vocabulary, ids, moves)
    ui.table(
        table,
        label="What a changed past row moves",
        headings={
            "amount": "added",
            "query_scores": "query: its own scores",
            "query_logits": "query: next logits",
            "key_logits": "key: next logits",
            "value_logits": "value: next logits",
        },
    )
    ui.download(
        "Moves as CSV",
        lambda: write_csv(table, kv_tables.MOVES),
        kv_tables.MOVES.file,
        key="past_moves.csv",
    )

st.header("Owner, length and digest", anchor=False)
st.markdown(
    "A cache knows whose it is: the request that fills it, and the checkpoint, named by a digest "
    "of all its tensors. It also offers to be exported, truncated and reset; each is tried here "
    "on a cache of its own."
)
label = compute_label(run, inputs, step)
ui.table(label, label="What the cache says of itself", headings={"what": "entry"})
tried = compute_operations(run, ids)
operations = kv_tables.operations(tried)
ui.table(
    operations.drop(columns="message"),
    label="Operations of a cache",
    headings={"valid_bytes": "valid bytes", "checked": "what was checked"},
    sentences=("checked",),
    verdicts=("holds",),
)
st.markdown(kv_cache.refusals_text(tried))
with st.container(horizontal=True):
    ui.download(
        "Label as CSV",
        lambda: write_csv(label, kv_tables.LABEL),
        kv_tables.LABEL.file,
        key="cache_label.csv",
    )
    ui.download(
        "Operations as CSV",
        lambda: write_csv(operations, kv_tables.OPERATIONS),
        kv_tables.OPERATIONS.file,
        key="cache_operations.csv",
    )

ui.exercise(
    "review.written",
    "What a pass leaves behind",
    lambda rng: shapes.written_task(run.checkpoint, rng),
)
ui.exercise("kv.position", "Truncate and go on", kv_cache.operation_task(run.checkpoint))
if config.n_positions > 1:
    ui.exercise("kv.discard", "What can be thrown away", kv_cache.discard_task(run.checkpoint))
