"""The app's router: page config, shared controls, navigation. Nothing else."""

import streamlit as st

from tinydec import ui

st.set_page_config(page_icon=str(ui.FAVICON), layout="wide")
ui.frame(ui.navigation())
