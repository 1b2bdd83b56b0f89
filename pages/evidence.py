"""Evidence: the gate, the whole bundle, its tables and its manifest."""

import streamlit as st

from tinydec import ui
from tinydec.ui.evidence import views
from tinydec.ui.evidence.exercises import draw_replay

ui.begin()
run = ui.current_run()
views.gate_part(run)
if views.bundle_part(run):
    chosen = st.segmented_control(
        "Look into it",
        [views.TABLES, views.MANIFEST_VIEW],
        default=views.TABLES,
        key="ev_view",
        bind="query-params",
        required=True,
    )
    (views.manifest_part if chosen == views.MANIFEST_VIEW else views.tables_part)(run)
ui.exercise("evidence.replay", "What a replay accepts", draw_replay)
