"""Explain a number: from any element of any named tensor down to weights and token ids.

Example::

    recording = Recording.of_trace(checkpoint.cast(spec.dtype), trace)
    node = explain(recording, Element(step=1, tensor="logits", position=1, index=5))
    node.value, node.recomputed, node.difference, node.bound
    [explain(recording, child) for child in node.children()]
"""

from tinydec.verification.explain.elements import (
    Constant,
    Element,
    Operand,
    Source,
    TokenId,
    WeightElement,
)
from tinydec.verification.explain.explanation import Explanation, descend, explain
from tinydec.verification.explain.operations import Part, Term, largest_first
from tinydec.verification.explain.recording import Recording
from tinydec.verification.explain.wording import filled, origin

__all__ = [
    "Constant",
    "Element",
    "Explanation",
    "Operand",
    "Part",
    "Recording",
    "Source",
    "Term",
    "TokenId",
    "WeightElement",
    "descend",
    "explain",
    "filled",
    "largest_first",
    "origin",
]
