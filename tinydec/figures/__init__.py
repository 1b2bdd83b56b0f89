"""Figures: arrays to plotly figures, pure functions without Streamlit."""
