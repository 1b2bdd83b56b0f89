"""The tree below a number: one level at a time, each operand opened by a click."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tinydec.evidence.step_tables import openable, operands
from tinydec.ui.html import digits
from tinydec.ui.lessons.decode_step import (
    MOST_TERMS,
    check_words,
    element_words,
    operand_label,
)
from tinydec.ui.show import formula_block, table
from tinydec.verification.explain import Element, Explanation, Recording, explain, filled


def explain_tree(
    recording: Recording, root: Explanation, tokens: Sequence[str]
) -> list[Explanation]:
    """Draw a number's arithmetic, and below it that of each operand which the visitor opened.

    Returns:
        The open chain of explanations, the root first.
    """
    chain = [root]
    path = root.name
    while True:
        node = chain[-1]
        with st.container(border=True, key=f"level-{len(chain)}"):
            chosen = _level(recording, node, tokens, path)
        if chosen is None:
            return chain
        path = f"{path}/{chosen.name}"
        chain.append(explain(recording, chosen))


def _level(
    recording: Recording, node: Explanation, tokens: Sequence[str], path: str
) -> Element | None:
    value = digits(node.value, 6)
    st.markdown(f"`{node.name}` **= {value}** · {node.formula.meaning}")
    st.caption(element_words(node.element, tokens))
    formula_block(node.formula.latex, filled(node, digits, 4))
    table(operands(node, tokens, MOST_TERMS), label=f"Operands of {node.name}")
    st.text(check_words(node, recording.checkpoint.dtype.name))
    inside = openable(node, MOST_TERMS)
    if not inside:
        st.caption("Weights, token ids and constants: here the tree ends.")
        return None
    chosen = st.pills(
        "Open an operand",
        inside,
        format_func=lambda element: operand_label(recording, element),
        key=f"_open.{node.element.step}.{path}",
    )
    return chosen if chosen in inside else None
