"""Streamlit glue: the frame, and everything a page is made of.

How to write a page (the whole of it, about 40 lines)::

    \"\"\"Page 9: one sentence.\"\"\"

    import pandas as pd
    import streamlit as st

    from tinydec import ui
    from tinydec.figures.example import example_figure  # arrays -> go.Figure, ends in finish()

    ui.begin()                                   # 1. the guard, always first
    run = ui.current_run()                       # 2. spec, checkpoint, step: always valid
    trace = ui.current_trace(run)                # 3. cached compute; own compute: @ui.computed
    step = ui.current_step(len(trace.steps))     #    the shared step, kept within the run

    ui.contract(                                 # 4. contract: sentence, formula, numbers
        "The policy sees the last row of logits and nothing else.",
        r"\\text{token} = \\operatorname{policy}(\\text{logits}_t)",
        f"token = policy(logits at position {trace.steps[step].length_after - 1})",
    )
    ui.token_row(run.spec.prompt, ["A", "B"], current=1)
    ui.disclaimer()                              #    beside every generated trace

    ui.figure(                                   # 5. the main picture, above the fold
        example_figure(trace.steps[step].selection.logits), key="logits", alt="Bars of 8 logits"
    )
    ui.look_for("the bar that leads by a few thousandths.")

    frame = pd.DataFrame({"token": ["A"], "logit": [0.5]})
    ui.table(frame, label="Logits by token")     # 6. the same numbers as a table, and as CSV
    ui.download("Logits as CSV", lambda: csv_bytes(frame), "logits.csv", key="logits.csv")

    ui.exercise("page9.argmax", "Which token?", draw_task)  # 7. draw_task(rng) -> ui.Task

Rules that the frame counts on

- Title and icon are data in ``tinydec/ui/pages.py``; the page draws no title. A page appears in
  the navigation when its script exists.
- Shared controls (:data:`NAMES`) are drawn by the frame; read them through ``run.spec``, and set
  them only in callbacks: ``st.button("Step", on_click=ui.set_controls, kwargs={"step": 2})``.
- A control of the page's own that belongs in a link: ``key=NAME, bind="query-params"`` and NAME
  in its ``PageInfo.parameters``. Prefer selectbox, segmented control (``required=True``) and
  slider: an integer ``number_input`` fails on ``?NAME=1e400``.
- Keys are the same in every run; figures get ``key=`` and keep their shape, so that they do not
  mount anew. One figure per page if possible, with subplots where there are several.
- Colours by meaning from ``tinydec.figures.palette`` (``KEY.mark`` in figures, ``var(--td-key)``
  in CSS). Never text on coloured plotly marks: labelled cells are a :func:`number_grid`.
- Compute is a function ``(checkpoint, spec, *extra)`` under ``@ui.computed(...)``, called as
  ``f(run, *extra)``. It may only depend on its arguments. Import it; do not put logic in pages.
- A selectbox that accepts new options loses the beginning of what is typed: use a text input.
- The frame's notes are ``st.html`` with the class ``td-notes``; an ``InputError`` that leaves a
  page is shown as one line.
- Fill columns row by row, or they stack out of order on a phone.
"""

from tinydec.ui.compute import computed, current_trace
from tinydec.ui.controls import frame
from tinydec.ui.current import CurrentRun, current_run, current_step, set_controls
from tinydec.ui.domains import NAMES
from tinydec.ui.exercise import Task, exercise, scores
from tinydec.ui.html import Card, Chip, digits
from tinydec.ui.number_grid import Cell, Frame, Grid, chosen_cell, number_grid
from tinydec.ui.pages import (
    FAVICON,
    PAGES,
    Catalogue,
    PageInfo,
    begin,
    navigation,
    page_link,
)
from tinydec.ui.show import (
    cards,
    chips,
    contract,
    disclaimer,
    download,
    figure,
    formula_block,
    linked_cards,
    look_for,
    table,
    token_row,
)

__all__ = [
    "FAVICON",
    "NAMES",
    "PAGES",
    "Card",
    "Catalogue",
    "Cell",
    "Chip",
    "CurrentRun",
    "Frame",
    "Grid",
    "PageInfo",
    "Task",
    "begin",
    "cards",
    "chips",
    "chosen_cell",
    "computed",
    "contract",
    "current_run",
    "current_step",
    "current_trace",
    "digits",
    "disclaimer",
    "download",
    "exercise",
    "figure",
    "formula_block",
    "frame",
    "linked_cards",
    "look_for",
    "navigation",
    "number_grid",
    "page_link",
    "scores",
    "set_controls",
    "table",
    "token_row",
]
