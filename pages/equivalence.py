"""7 Equivalence: both paths held against each other, number by number."""

import streamlit as st

from tinydec import ui
from tinydec.ui.equivalence.controls import format_control, tolerance_control
from tinydec.ui.equivalence.exercises import draw_act, draw_error
from tinydec.ui.equivalence.views import VIEWS

ui.begin()
run = ui.current_run()
first = next(iter(VIEWS))
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    view = st.segmented_control(
        "View",
        list(VIEWS),
        default=first,
        key="eq_view",
        bind="query-params",
        required=True,
        label_visibility="collapsed",
    )
    format_control(run)
    tolerance_control(run)
VIEWS[view or first](run)
ui.exercise("equivalence.error", "The largest error", draw_error)
ui.exercise("equivalence.act", "Where a failure hides", draw_act)
