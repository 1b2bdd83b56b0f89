"""Tables of one decode step: its tensors number by number, and explanations of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import Column, TableSchema, flag, integer, number, text
from tinydec.model.activations import HEAD_TENSORS, tensor_names
from tinydec.verification.explain import Element, Explanation, Recording, largest_first, origin

STEP_VALUES = TableSchema(
    "decode_step.csv",
    "Every number of every named tensor of one step",
    (
        integer("step", "index of the step"),
        text("tensor", "name, in the order of computation"),
        integer("head", "head, where the tensor has heads", optional=True),
        integer("position", "position of the input; for keys and values the cache slot"),
        text("token", "the input at that position"),
        integer("index", "place in the last axis; for scores and attention the key's position"),
        number("value", "as computed"),
    ),
)

EXPLANATION = TableSchema(
    "explained_number.csv",
    "The arithmetic that made a number, operand by operand, level by level",
    (
        integer("level", "0 is the number asked about; each level explains an operand of the last"),
        text("element", "the number explained"),
        text("formula", "its arithmetic"),
        number("value", "as recorded"),
        number("recomputed", "by float64 arithmetic from the operands"),
        number("difference", "absolute"),
        number("bound", "largest difference that rounding in the dtype explains"),
        flag("agrees", "whether the difference is within the bound"),
        text("operand", "name of one operand"),
        text("source", "computed, weight, input or constant"),
        number("operand_value", "the operand"),
    ),
)


def step_values(
    recording: Recording,
    step: int,
    tokens: Sequence[str],
    tensors: Sequence[str] = (),
    most: int | None = None,
) -> pd.DataFrame:
    """Return the numbers of a step's tensors, one row each.

    Args:
        recording: a run of one sequence.
        step: which forward pass.
        tokens: text of the run's inputs by position.
        tensors: names; none means all.
        most: rows at most; None means all.
    """
    names = tensors or tensor_names(recording.checkpoint.config.n_layer)
    rows = (row for tensor in names for row in _values(recording, step, tokens, tensor))
    return frame(STEP_VALUES, islice(rows, most))


def _values(
    recording: Recording, step: int, tokens: Sequence[str], tensor: str
) -> Iterator[tuple[Any, ...]]:
    positions = recording.positions(step, tensor)
    array = recording.array(step, tensor)[0]  # (B, ...) -> (...)
    has_heads = tensor.rsplit(".", 1)[-1] in HEAD_TENSORS
    for head in range(len(array)) if has_heads else (None,):
        part = array if head is None else array[head]
        for (row, index), value in np.ndenumerate(part):
            at = positions[row]
            yield step, tensor, head, at, tokens[at], index, float(value)


def explanation(nodes: Iterable[Explanation], tokens: Sequence[str]) -> pd.DataFrame:
    """Return every operand of a chain of explanations, one row each."""
    rows = [
        (
            level,
            node.name,
            node.formula.text,
            node.value,
            node.recomputed,
            node.difference,
            node.bound,
            node.agrees,
            operand.name,
            origin(operand, tokens),
            operand.value,
        )
        for level, node in enumerate(nodes)
        for operand in node.operands
    ]
    return frame(EXPLANATION, rows)


def operands(node: Explanation, tokens: Sequence[str], limit: int) -> pd.DataFrame:
    """Return an explanation's operands for reading: the largest terms, then the rest as one line.

    Products come as one line of two operands each. Operands outside the sum (a norm's weight,
    bias and ε) follow below it.

    Args:
        node: the explanation.
        tokens: text of the run's inputs by position.
        limit: terms shown, the largest.
    """
    if not node.terms:
        names = ["operand", "value", "from"]
        lines = [(o.name, o.value, origin(o, tokens)) for o in node.operands]
    else:
        paired = any(len(term.operands) == 2 for term in node.terms)
        names = ["operand", "value", *(("times", "its value") if paired else ())]
        names += [node.operation.term]
        lines = _lines(node, limit, len(names))
    by_column = list(zip(*lines, strict=True))
    columns = [_column(name, None in cells) for name, cells in zip(names, by_column, strict=True)]
    return frame(TableSchema("operands.csv", "Operands", tuple(columns)), lines)


def _column(name: str, optional: bool) -> Column:
    """Return a column for reading: a number column that is never empty stands to the right."""
    if name in ("operand", "times", "from"):
        return text(name, "", optional=optional)
    return number(name, "", optional=optional)


def _lines(node: Explanation, limit: int, width: int) -> list[tuple[Any, ...]]:
    """Return the lines of a sum: name and value of one or two operands, blanks, the term."""
    kept, rest = largest_first(node.terms, limit)
    lines: list[tuple[Any, ...]] = []
    for term in kept:
        inside = [node.operands[place] for place in term.operands]
        cells = [cell for o in inside for cell in (o.name, o.value)]
        lines.append((*cells, *[None] * (width - 1 - len(cells)), term.value))
    more = len(node.terms) - len(kept)
    if more:
        lines.append((f"{more} more, together", *[None] * (width - 2), rest))
    used = {place for term in node.terms for place in term.operands}
    others = [o for place, o in enumerate(node.operands) if place not in used]
    return lines + [(o.name, o.value, *[None] * (width - 2)) for o in others]


def openable(node: Explanation, limit: int) -> tuple[Element, ...]:
    """Return the operands of a node that can be opened: those of its largest terms, each once."""
    kept, _ = largest_first(node.terms, limit)
    places = [p for term in kept for p in term.operands] or range(len(node.operands))
    sources = (node.operands[place].source for place in places)
    return tuple(dict.fromkeys(s for s in sources if isinstance(s, Element)))
