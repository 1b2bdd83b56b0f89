"""Explain one number: the arithmetic that made it, on the operands that were really there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tinydec.verification.explain.elements import Element, Operand
from tinydec.verification.explain.formulas import Formula
from tinydec.verification.explain.operations import Arithmetic, Operation, Part, Term
from tinydec.verification.explain.recording import Recording
from tinydec.verification.explain.rounding import Rounding
from tinydec.verification.explain.rules import rule


@dataclass(frozen=True)
class Explanation:
    """One node of the tree that leads from a number to weights, token ids and constants.

    Attributes:
        element: the number's place.
        value: as recorded, exactly, in float64.
        operation: the arithmetic.
        operands: in the operation's order; those that are elements have explanations too.
        formula: in words of the tensors, and as LaTeX.
        rounding: of the dtype that ran.
    """

    element: Element
    value: float
    operation: Operation
    operands: tuple[Operand, ...]
    formula: Formula
    rounding: Rounding

    @property
    def name(self) -> str:
        """The element's name, such as ``logits[2, 5]``."""
        return self.element.name

    @cached_property
    def _arithmetic(self) -> Arithmetic:
        values = [operand.value for operand in self.operands]
        return self.operation.arithmetic(values, self.rounding)

    @property
    def recomputed(self) -> float:
        """The number that float64 arithmetic makes of the operands."""
        return self._arithmetic.result.value

    @property
    def bound(self) -> float:
        """How far the recorded number may lie from that, by the roundings of its dtype.

        0 for what is merely read or copied; infinite where the dtype may overflow.
        """
        return self._arithmetic.result.error

    @property
    def difference(self) -> float:
        """``|value - recomputed|``; 0 for the same infinity, infinite when only one is NaN."""
        if self.value == self.recomputed or (
            math.isnan(self.value) and math.isnan(self.recomputed)
        ):
            return 0.0
        found = abs(self.value - self.recomputed)
        return math.inf if math.isnan(found) else found

    @property
    def agrees(self) -> bool:
        """Whether the arithmetic gives the recorded number, within the bound."""
        return self.difference <= self.bound

    @property
    def terms(self) -> tuple[Term, ...]:
        """What was added up, in order; empty where nothing was."""
        return self._arithmetic.terms

    @property
    def parts(self) -> tuple[Part, ...]:
        """Quantities on the way, such as mean and variance."""
        return self._arithmetic.parts

    def children(self) -> tuple[Element, ...]:
        """Return the operands that have explanations of their own, each once, in order."""
        sources = (o.source for o in self.operands)
        return tuple(dict.fromkeys(s for s in sources if isinstance(s, Element)))


def explain(recording: Recording, element: Element) -> Explanation:
    """Return the arithmetic that made one element of one named tensor.

    Args:
        recording: the run.
        element: which number.

    Raises:
        InputError: the element does not exist in the run.
    """
    operation, operands, formula = rule(recording, element)
    rounding = Rounding.of(recording.checkpoint.dtype)
    return Explanation(element, recording.value(element), operation, operands, formula, rounding)


def descend(recording: Recording, element: Element, visit: Callable[[Explanation], None]) -> int:
    """Visit an element's explanation and those of everything that it was made of, each once.

    Returns:
        The number of explanations visited.

    Raises:
        InputError: the element does not exist in the run.
    """
    seen = {element}
    waiting = [element]
    while waiting:
        found = explain(recording, waiting.pop())
        visit(found)
        fresh = [child for child in found.children() if child not in seen]
        seen.update(fresh)
        waiting += fresh
    return len(seen)
