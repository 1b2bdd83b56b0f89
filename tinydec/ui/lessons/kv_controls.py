"""Controls of the lesson on the cache, bound to the URL."""

from __future__ import annotations

import streamlit as st

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
