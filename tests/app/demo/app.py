"""A two-page app on the frame, to test the frame without any page of the project."""

import streamlit as st

from tests.app.demo.catalogue import DEMO
from tinydec import ui

st.set_page_config(page_icon=str(ui.FAVICON), layout="wide")
ui.frame(ui.navigation(DEMO), DEMO)
