"""The number grid."""

import numpy as np
import streamlit as st

from tests.app.demo.catalogue import DEMO
from tinydec import ui

ui.begin(DEMO)
run = ui.current_run()
trace = ui.current_trace(run)
step = ui.current_step(len(trace.steps))
tokens = run.checkpoint.vocabulary.tokens
ui.contract("Every number of attention, cell by cell.", r"K \in \mathbb{R}^{h \times t \times d_h}")
which = st.selectbox("Tensor", ["keys", "values"], key="tensor", bind="query-params", width=200)
frames = []
for record in trace.steps:
    assert record.activations is not None
    block = record.activations.blocks[0]
    consumed = [tokens[i] for i in trace.consumed_ids[: record.length_after]]
    grids = []
    for head in range(run.checkpoint.config.n_head):
        values = getattr(block, which)[0, head]
        grids.append(
            ui.Grid(
                f"{which}.{head}",
                f"{which} head {head}",
                values,
                consumed,
                ["0", "1"],
                limit=2.5,
                role={"keys": "key", "values": "value"}[which],
                marked=[(len(consumed) - 1, c) for c in range(2)],
            )
        )
    grids.append(
        ui.Grid(
            "scores",
            "scores head 0, last query",
            block.scores[0, 0][-1:],
            ["query"],
            consumed,
            limit=2.0,
            role="query",
        )
    )
    frames.append(ui.Frame(f"step {record.index}: consume {consumed[-1]}", grids))
cell = ui.chosen_cell(frames, key="grid", frame=step)
ui.look_for("old rows stay as they are when a new one comes.")
st.text(f"chosen: {cell}")
st.text(f"sum: {np.sum(frames[step].grids[0].values):.6f}")
