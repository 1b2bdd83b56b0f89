"""Controls of the lesson on the cache, bound to the URL."""

from __future__ import annotations

from typing import Any

import streamlit as st

from tinydec.model.checkpoint import Checkpoint
from tinydec.ui.current import set_controls
from tinydec.ui.lessons.phases import longer_prompt

#: What can be added to every number of a past row, as the URL spells it.
AMOUNTS = ("0.01", "0.1", "1", "10")
_DEFAULT = "1"


def choice(label: str, count: int, key: str) -> int:
    """Draw a choice among the numbers 0 to ``count`` - 1 and return the chosen one."""
    chosen = st.selectbox(label, range(count), key=key, bind="query-params", width=110)
    return 0 if chosen is None else int(chosen)


def amount_control() -> float:
    """Draw the choice of an amount and return it; an empty one in the URL is the default."""
    chosen = st.segmented_control(
        "Add to every number of one past row, in all layers and heads",
        AMOUNTS,
        default=_DEFAULT,
        key="kv_amount",
        bind="query-params",
        required=True,
    )
    return float(chosen or _DEFAULT)


def move_on(checkpoint: Checkpoint, step: int, count: int, *, key: str) -> None:
    """Draw the way out of an empty section: the next step, else a prompt of several tokens.

    Args:
        checkpoint: the one that runs.
        step: the one shown.
        count: steps of the run; after its last one a longer prompt is offered, if one fits.
        key: unique on the page.
    """
    longer = longer_prompt(checkpoint)
    values: dict[str, Any]
    if step + 1 < count:
        label, values = f"Go to step {step + 1}", {"step": step + 1}
    elif longer is not None:
        label, values = "Try a prompt of 3 tokens", {"prompt": longer}
    else:
        return
    st.button(label, key=key, on_click=set_controls, kwargs=values, type="primary")
