"""8 Memory and cost: what a cache takes, and what it saves."""

import streamlit as st

from tinydec import ui
from tinydec.ui.memory.exercises import draw_bytes, draw_fit, draw_work
from tinydec.ui.memory.views import VIEWS

ui.begin()
run = ui.current_run()
first = next(iter(VIEWS))
view = st.segmented_control(
    "View",
    list(VIEWS),
    default=first,
    key="mem_view",
    bind="query-params",
    required=True,
    label_visibility="collapsed",
)
VIEWS[view or first](run)
ui.exercise("memory.bytes", "Bytes of a cache", draw_bytes)
ui.exercise("memory.fit", "Requests that fit", draw_fit)
ui.exercise("memory.work", "What a step saves", draw_work)
