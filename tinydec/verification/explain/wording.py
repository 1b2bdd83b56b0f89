"""An explanation in words and numbers: the formula with the operands filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinydec.verification.explain.elements import Constant, Element, Operand, TokenId
from tinydec.verification.explain.explanation import Explanation
from tinydec.verification.explain.operations import (
    Add,
    Copy,
    Dot,
    GeluExact,
    GeluTanh,
    Hidden,
    Lookup,
    Norm,
    ScaledDot,
    Softmax,
    largest_first,
)

Show = Callable[[float], str]


def filled(node: Explanation, show: Show, limit: int = 8) -> str:
    """Return the arithmetic with its numbers, such as ``0.5 × −1.2 + 0.3 × 0.1 = −0.57``.

    Args:
        node: the explanation.
        show: writes one number.
        limit: terms of a sum that are written out, the largest ones; the rest is one number.
    """
    values = [operand.value for operand in node.operands]
    parts = {part.name: part.value for part in node.parts}
    result = show(node.value)
    match node.operation:
        case Lookup(row=row):
            return f"row {row}, column {node.element.index}: {result}"
        case Copy():
            return f"{result}, unchanged"
        case Hidden():
            return f"key {values[1]:.0f} > query {values[0]:.0f}: {result}"
        case Add():
            return f"{show(values[0])} + {_signed(values[1], show)} = {result}"
        case Dot():
            return f"{_sum(node, show, limit)} = {result}"
        case ScaledDot():
            return f"({_sum(node, show, limit)}) / √{values[-1]:.0f} = {result}"
        case Norm(width=width, index=index):
            weight, bias, epsilon = values[width:]
            return (
                f"({show(values[index])} − {_signed(parts['mean'], show)}) / "
                f"√({show(parts['variance'])} + {epsilon:.3g}) × {_signed(weight, show)} + "
                f"{_signed(bias, show)} = {result}"
            )
        case Softmax(index=index):
            own = node.terms[index].value
            return f"{show(own)} / ({_sum(node, show, limit)}) = {result}"
        case GeluTanh() | GeluExact():
            slope = node.parts[-1].value
            return f"{show(values[0])} / 2 × (1 + {_signed(slope, show)}) = {result}"
    return result


def origin(operand: Operand, tokens: Sequence[str] = ()) -> str:
    """Say in a few words where an operand comes from.

    Args:
        operand: of an explanation.
        tokens: the text of the run's tokens by position, to name a token id.
    """
    source = operand.source
    if isinstance(source, Element):
        return "computed"
    if isinstance(source, TokenId):
        known = source.position < len(tokens)
        return f"input {tokens[source.position]}" if known else "input"
    return "constant" if isinstance(source, Constant) else "weight"


def _sum(node: Explanation, show: Show, limit: int) -> str:
    kept, rest = largest_first(node.terms, limit)
    written = []
    for term in kept:
        if len(term.operands) == 2:
            left, right = (node.operands[place].value for place in term.operands)
            written.append(f"{_signed(left, show)} × {_signed(right, show)}")
        else:
            written.append(_signed(term.value, show))
    more = len(node.terms) - len(kept)
    if more:
        written.append(f"{_signed(rest, show)} from {more} more")
    return " + ".join(written)


def _signed(value: float, show: Show) -> str:
    """Write a number so that it can stand behind an operator."""
    text = show(value)
    return f"({text})" if text.startswith(("-", "−")) else text
