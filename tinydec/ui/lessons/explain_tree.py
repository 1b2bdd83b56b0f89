"""The tree below a number: one level at a time, each operand opened by a click."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from tinydec.evidence.step_tables import openable, operands
from tinydec.model.activations import HEAD_TENSORS, SCORE_TENSORS
from tinydec.ui.html import code, digits
from tinydec.ui.show import formula_block, table
from tinydec.verification.explain import Element, Explanation, Recording, explain, filled

#: Terms of a sum shown, the largest; the others as one number.
MOST_TERMS = 9


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
    table(_with_whole_ids(operands(node, tokens, MOST_TERMS)), label=f"Operands of {node.name}")
    if node.parts:
        st.caption(", ".join(f"{part.name} = {digits(part.value, 6)}" for part in node.parts))
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


def _with_whole_ids(lines: pd.DataFrame) -> pd.DataFrame:
    """Return operands for reading, with token ids, sizes and other whole scalars as integers."""
    if "value" not in lines:
        return lines
    values = [
        int(value) if _is_whole(operand, value) else value
        for operand, value in zip(lines["operand"], lines["value"], strict=True)
    ]
    return lines.assign(value=pd.Series(values, dtype=object))


def _is_whole(operand: str, value: float | None) -> bool:
    element = operand.endswith("]") and not operand.startswith("token id")
    return not element and value is not None and float(value).is_integer()


# Words -------------------------------------------------------------------------------------------


def element_words(element: Element, tokens: Sequence[str]) -> str:
    """Say in words where an element stands, as Markdown."""
    at = f"position {element.position} ({code(tokens[element.position])})"
    if element.field in SCORE_TENSORS:
        at = (
            f"query at position {element.position} ({code(tokens[element.position])}), "
            f"key at position {element.index} ({code(tokens[element.index])})"
        )
    head = f", head {element.head}" if element.field in HEAD_TENSORS else ""
    layer = f", layer {element.layer}" if element.layer is not None else ""
    return f"{at}{head}{layer}, computed in step {element.step}"


def check_words(node: Explanation, dtype: str) -> str:
    """Say what the arithmetic gives and whether that is the recorded number."""
    sign = "✓" if node.agrees else "✗"
    again = f"{sign} float64 arithmetic on these operands gives {digits(node.recomputed, 8)}"
    if node.bound == 0:
        return f"{again}: the same number." if node.agrees else f"{again}: another number."
    if math.isinf(node.bound):
        return f"{again}; {dtype} may overflow here, so no difference is too large."
    relation = "within" if node.agrees else "beyond"
    return (
        f"{again}: off by {digits(node.difference, 2)}, {relation} the "
        f"{digits(node.bound, 2)} that rounding in {dtype} allows."
    )


def operand_label(recording: Recording, element: Element) -> str:
    """Return an operand's name and value for a button."""
    return f"{element.name} = {digits(recording.value(element), 3)}"
