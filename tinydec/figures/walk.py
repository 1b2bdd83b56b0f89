"""Panels: windows of numbers into the tensors that a stage of a decode step reads and makes.

A panel is a window into one named tensor (and head) of one step: it knows which element stands
in which of its cells. Pure: the page turns panels into grids that can be clicked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.figures.stages import Stage, tensor_of
from tinydec.model.activations import HEAD_TENSORS, SCORE_TENSORS
from tinydec.verification.explain import Element, Recording

Array = NDArray[Any]

#: Cells drawn of one tensor, at most: positions (rows), components (columns), heads.
ROWS, COLUMNS, HEADS = 8, 16, 4
#: Frames in which grids can be stepped, at most, and the cells of all of them together.
FRAMES, CELLS = 16, 2500


#: Colours by meaning; every other tensor goes without.
ROLES = {"q": "query", "k": "key", "keys": "key", "v": "value", "values": "value"}


@dataclass(frozen=True, eq=False)
class Panel:
    """A window into one tensor (and head) of one step.

    Attributes:
        step: index of the step.
        tensor: full name.
        head: for tensors that have heads, else 0.
        positions: of the rows.
        indices: of the columns.
        values: (rows, columns).
        marked: (row, column) cells to be framed: what is new in this step.
        heads: whether the tensor has heads.
        limit: magnitude of the full colour.
    """

    step: int
    tensor: str
    head: int
    positions: range
    indices: range
    values: Array
    marked: tuple[tuple[int, int], ...]
    heads: bool
    limit: float

    @property
    def name(self) -> str:
        """Unique among all panels: tensor, head and step."""
        return f"{self.tensor}@{self.head}@{self.step}"

    @property
    def field(self) -> str:
        """The tensor's name without its layer."""
        return self.tensor.rsplit(".", 1)[-1]

    @property
    def title(self) -> str:
        """Above the panel."""
        return f"{self.tensor} · head {self.head}" if self.heads else self.tensor

    def element(self, row: int, column: int) -> Element:
        """Return what stands in a cell.

        Raises:
            IndexError: the panel has no such cell.
        """
        return Element(self.step, self.tensor, self.positions[row], self.indices[column], self.head)

    def cell(self, element: Element) -> tuple[int, int] | None:
        """Return the row and column of an element, or None when it is not in the window."""
        same = (element.step, element.tensor, element.head) == (self.step, self.tensor, self.head)
        if not same or element.position not in self.positions or element.index not in self.indices:
            return None
        return self.positions.index(element.position), self.indices.index(element.index)


def window(count: int, most: int, around: int) -> range:
    """Return at most ``most`` of ``count`` places, with ``around`` among them."""
    start = min(max(around - most // 2, 0), max(count - most, 0))
    return range(start, min(start + most, count))


def frame_steps(count: int, step: int, cells: int) -> range:
    """Return the steps that become frames, around ``step``: fewer where a frame has many cells."""
    return window(count, min(FRAMES, max(1, CELLS // max(cells, 1))), step)


def frame_of(frames: Sequence[tuple[Panel, ...]], step: int) -> int:
    """Return which frame shows a step; 0 when none does."""
    return next((i for i, panels in enumerate(frames) if panels[0].step == step), 0)


def stage_frames(
    recording: Recording, stage: Stage, layer: int, step: int, around: Element
) -> list[tuple[Panel, ...]]:
    """Return a stage's panels for the steps around one.

    Args:
        recording: the run, of one sequence.
        stage: one of :data:`tinydec.figures.stages.STAGES`.
        layer: for the stages inside the layers.
        step: the step that is certainly among them.
        around: the chosen element; windows into larger tensors contain it.
    """
    n_layer = recording.checkpoint.config.n_layer
    tensors = [tensor_of(stage, layer, n_layer, field) for field in stage.fields]
    limits = {tensor: _limit(recording, tensor) for tensor in tensors}

    def panels(at: int) -> tuple[Panel, ...]:
        found: list[Panel] = []
        for tensor in tensors:
            found += tensor_panels(recording, tensor, at, around, limits[tensor])
        return tuple(found)

    return _frames(len(recording.steps), step, panels)


def _frames(
    count: int, step: int, panels: Callable[[int], tuple[Panel, ...]]
) -> list[tuple[Panel, ...]]:
    now = panels(step)
    steps = frame_steps(count, step, sum(panel.values.size for panel in now))
    return [now if at == step else panels(at) for at in steps]


def tensor_panels(
    recording: Recording, tensor: str, step: int, around: Element, limit: float
) -> tuple[Panel, ...]:
    """Return one panel for each head of a tensor that is shown (one for a tensor without)."""
    array = recording.array(step, tensor)[0]  # (B, ...) -> (...)
    field = tensor.rsplit(".", 1)[-1]
    has_heads = field in HEAD_TENSORS
    known = recording.positions(step, tensor)
    place = around.position - known.start if around.position in known else len(known) - 1
    rows = window(len(known), ROWS, place)
    # The last axis of scores and attention is a position, that of the others a component.
    columns = window(array.shape[-1], COLUMNS, _column(field, around))
    heads = window(array.shape[0], HEADS, around.head) if has_heads else range(1)
    by_head = array if has_heads else array[None]  # (h, P, n)
    positions = range(known.start + rows.start, known.start + rows.stop)
    marked = _marked(field, positions, columns, range(recording.starts[step], known.stop))
    return tuple(
        Panel(
            step,
            tensor,
            head,
            positions,
            columns,
            by_head[head][rows.start : rows.stop, columns.start : columns.stop],
            marked,
            has_heads,
            limit,
        )
        for head in heads
    )


def _column(field: str, around: Element) -> int:
    if (field in SCORE_TENSORS) == (around.field in SCORE_TENSORS):
        return around.index
    return around.position if field in SCORE_TENSORS else 0


def _marked(
    field: str, positions: range, columns: range, fresh: range
) -> tuple[tuple[int, int], ...]:
    """Return the cells of the rows that a cache took in this step."""
    if field not in ("keys", "values"):
        return ()
    return tuple(
        (row, column)
        for row, position in enumerate(positions)
        if position in fresh
        for column in range(len(columns))
    )


def _limit(recording: Recording, tensor: str) -> float:
    """Return the largest finite magnitude of a tensor over the run, so that steps compare."""
    if tensor.endswith(".attention"):
        return 1.0
    largest = [_largest(recording.array(s, tensor)) for s in range(len(recording.steps))]
    return max(largest)


def _largest(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(np.abs(finite).max()) if finite.size else 0.0


# Attention of every layer and head ---------------------------------------------------------------


def attention_frames(recording: Recording, step: int, around: Element) -> list[tuple[Panel, ...]]:
    """Return the attention of every layer and head after each step around one.

    Rows that the step computed are marked; rows above come from earlier steps; rows of later
    inputs and keys ahead of their query are empty (NaN). At most :data:`ROWS` positions and 16
    panels are drawn, with the chosen element among them.
    """
    return _frames(len(recording.steps), step, lambda at: _attention_panels(recording, at, around))


def _attention_panels(recording: Recording, step: int, around: Element) -> tuple[Panel, ...]:
    config = recording.checkpoint.config
    seen = window(recording.length, ROWS, around.position)
    layers = window(config.n_layer, HEADS, around.layer or 0)
    heads = window(config.n_head, HEADS, around.head)
    fresh = recording.positions(step, "logits")
    marked = tuple(
        (row, column)
        for row, query in enumerate(seen)
        if query in fresh
        for column, key in enumerate(seen)
        if key <= query
    )
    return tuple(
        Panel(
            step,
            f"h.{layer}.attention",
            head,
            seen,
            seen,
            _triangle(recording, layer, head, step, seen),
            marked,
            True,
            1.0,
        )
        for layer in layers
        for head in heads
    )


def _triangle(recording: Recording, layer: int, head: int, step: int, seen: range) -> Array:
    """Return the attention (positions, positions) that queries had when they were computed."""
    tensor = f"h.{layer}.attention"
    triangle = np.full((len(seen), len(seen)), np.nan)
    for row, query in enumerate(seen):
        if query >= recording.positions(step, tensor).stop:
            continue
        own = recording.step_of(tensor, query, step)
        array = recording.array(own, tensor)[0, head]  # (B, h, P, t) -> (P, t)
        line = array[query - recording.starts[own]]
        visible = max(query + 1 - seen.start, 0)
        triangle[row, :visible] = line[seen.start : seen.start + visible]
    return triangle


def labels(places: Sequence[int], tokens: Sequence[str]) -> list[str]:
    """Return ``2 X`` for each position."""
    return [f"{place} {tokens[place]}" for place in places]
