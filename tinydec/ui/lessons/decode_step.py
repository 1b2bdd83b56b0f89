"""One decode step: the run, the chosen number, the walk's grids, the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinydec.figures.stages import Stage, stage_of, tensor_of, walk
from tinydec.figures.walk import (
    ROLES,
    Panel,
    attention_frames,
    labels,
    stage_frames,
)
from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.activations import HEAD_TENSORS, SCORE_TENSORS, tensor_names
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec, shown
from tinydec.ui.number_grid import Cell, Frame, Grid
from tinydec.verification.explain import Element, Recording

#: The page's own controls: widget keys and URL parameters alike.
CONTROLS = ("tensor", "position", "head", "index")
#: The position that the shared step consumed last.
NEWEST = "newest"
_EXPECTED = {"tensor": "a tensor such as {} or {}", "position": "{} or 0 to {}"}
#: Lines of the table of a stage's numbers.
MOST_LINES = 160


@dataclass(frozen=True, eq=False)
class DecodeLesson:
    """A run with every intermediate, and the text of its inputs."""

    trace: GenerationTrace
    recording: Recording
    tokens: tuple[str, ...]


def lesson(checkpoint: Checkpoint, spec: RunSpec) -> DecodeLesson:
    """Generate as the spec says and keep everything.

    Raises:
        InputError: see :func:`tinydec.generation.generate.new_request`.
    """
    trace = generate(checkpoint, spec, keep_activations=True)
    recording = Recording.of_trace(checkpoint.cast(spec.dtype), trace)
    tokens = tuple(checkpoint.vocabulary.tokens[i] for i in trace.consumed_ids)
    return DecodeLesson(trace, recording, tokens)


# The chosen number -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choices:
    """What each of the page's controls offers, as text."""

    tensor: tuple[str, ...]
    position: tuple[str, ...]
    head: tuple[str, ...]
    index: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """The chosen number: its element, the controls' values and offers, and notes on junk."""

    element: Element
    values: dict[str, str]
    offers: Choices
    notes: tuple[str, ...]


def choose(recording: Recording, step: int, wanted: Mapping[str, Any]) -> Choice:
    """Return the element that the controls name; what does not exist is replaced, with a note.

    Args:
        recording: the run.
        step: the shared step; positions that it did not compute are found in another step.
        wanted: values by control name; a missing one takes its default.
    """
    values: dict[str, str] = {}
    notes: list[str] = []

    def take(name: str, offers: Sequence[str], default: str) -> str:
        value = wanted.get(name)
        if value is not None and value not in offers:
            expected = _EXPECTED.get(name, "{} to {}").format(offers[0], offers[-1])
            notes.append(f"{name}: expected {expected}, found {shown(value)}; ran with {default}")
        values[name] = str(value) if value in offers else default
        return values[name]

    tensors = tensor_names(recording.checkpoint.config.n_layer)
    tensor = take("tensor", tensors, tensors[0])
    positions = (NEWEST, *map(str, range(recording.length)))
    newest = recording.positions(step, "logits").stop - 1
    place = take("position", positions, NEWEST)
    position = newest if place == NEWEST else int(place)
    own = recording.step_of(tensor, position, step)
    array = recording.array(own, tensor)
    has_heads = tensor.rsplit(".", 1)[-1] in HEAD_TENSORS
    heads = tuple(map(str, range(array.shape[1] if has_heads else 1)))
    head = take("head", heads, "0") if has_heads else "0"
    indices = tuple(map(str, range(array.shape[-1])))
    index = take("index", indices, "0")
    element = Element(own, tensor, position, int(index), int(head))
    return Choice(element, values, Choices(tensors, positions, heads, indices), tuple(notes))


def control_values(element: Element, newest: int) -> dict[str, str]:
    """Return the controls' values for an element; ``newest`` is the shared step's last position."""
    position = NEWEST if element.position == newest else str(element.position)
    values = {"tensor": element.tensor, "position": position, "index": str(element.index)}
    return values | ({"head": str(element.head)} if element.field in HEAD_TENSORS else {})


def neighbour(n_layer: int, tensor: str, by: int) -> str | None:
    """Return the result of the stage ``by`` stages on in the walk, or None past its ends."""
    stops = walk(n_layer)
    place = place_in_walk(n_layer, tensor) + by
    if not 0 <= place < len(stops):
        return None
    return stop_tensor(stops[place])


def place_in_walk(n_layer: int, tensor: str) -> int:
    """Return which stop of the walk makes a tensor."""
    stage = stage_of(tensor)
    layer = int(tensor.split(".")[1]) if tensor.startswith("h.") else None
    for place, (at, found) in enumerate(walk(n_layer)):
        if found == stage and layer in (None, at):
            return place
    return 0


def stop_tensor(stop: tuple[int, Stage]) -> str:
    """Return the name of the tensor that a stop of the walk makes."""
    layer, stage = stop
    outside = stage.result in ("embedding", "ln_f", "logits")
    return stage.result if outside else f"h.{layer}.{stage.result}"


# Grids -------------------------------------------------------------------------------------------


def walk_panels(recording: Recording, element: Element, step: int) -> list[tuple[Panel, ...]]:
    """Return the panels of the element's stage, one tuple for each step that becomes a frame."""
    n_layer = recording.checkpoint.config.n_layer
    layer, stage = walk(n_layer)[place_in_walk(n_layer, element.tensor)]
    return stage_frames(recording, stage, layer, step, element)


def heat_panels(recording: Recording, element: Element, step: int) -> list[tuple[Panel, ...]]:
    """Return the attention of every layer and head, one tuple for each step that is a frame."""
    return attention_frames(recording, step, element)


def frames(
    lesson: DecodeLesson, panels: Sequence[tuple[Panel, ...]], vocabulary: Sequence[str]
) -> list[Frame]:
    """Return the panels as frames of grids that can be clicked."""
    return [
        Frame(
            _frame_label(lesson, group[0].step),
            [_grid(panel, lesson.tokens, vocabulary) for panel in group],
        )
        for group in panels
    ]


def _frame_label(lesson: DecodeLesson, step: int) -> str:
    record = lesson.trace.steps[step]
    read = " ".join(lesson.tokens[record.length_before : record.length_after][-4:])
    more = "… " if record.length_after - record.length_before > 4 else ""
    return f"step {step} of {len(lesson.trace.steps) - 1}, {record.phase}: reads {more}{read}"


def _grid(panel: Panel, tokens: Sequence[str], vocabulary: Sequence[str]) -> Grid:
    columns = [str(index) for index in panel.indices]
    if panel.field in SCORE_TENSORS:
        columns = labels(panel.indices, tokens)
    elif panel.field == "logits":
        columns = [vocabulary[index] for index in panel.indices]
    return Grid(
        panel.name,
        panel.title,
        panel.values,
        labels(panel.positions, tokens),
        columns,
        limit=panel.limit,
        decimals=3,
        role=ROLES.get(panel.field, ""),
        marked=panel.marked,
    )


def stage_tensors(recording: Recording, element: Element) -> tuple[str, ...]:
    """Return the names of the tensors of the element's stage."""
    n_layer = recording.checkpoint.config.n_layer
    layer, stage = walk(n_layer)[place_in_walk(n_layer, element.tensor)]
    return tuple(tensor_of(stage, layer, n_layer, field) for field in stage.fields)


def clicked(state: Any, panels: Sequence[tuple[Panel, ...]]) -> Element | None:
    """Return the element in the cell that a grid's state reports, which may hold anything."""
    cell = state.get("cell") if hasattr(state, "get") else None
    if not isinstance(cell, Mapping):
        return None
    row, column = cell.get("row"), cell.get("column")
    if type(row) is not int or type(column) is not int or min(row, column) < 0:
        return None
    for panel in (panel for group in panels for panel in group):
        if panel.name == cell.get("grid"):
            if row >= len(panel.positions) or column >= len(panel.indices):
                return None
            found = panel.element(row, column)
            return None if np.isnan(panel.values[row, column]) else found
    return None


def selected(element: Element, panels: Sequence[tuple[Panel, ...]]) -> Cell | None:
    """Return the cell in which the element stands, if it is shown."""
    for frame, group in enumerate(panels):
        for panel in group:
            cell = panel.cell(element)
            if cell is not None:
                return Cell(panel.name, *cell, frame)
    return None


def heat_words(use_cache: bool) -> str:
    """Say what to look for in the attention of every layer and head."""
    if use_cache:
        return (
            "one new row per decode step (framed). The rows above were computed in earlier steps "
            "and never change; keys ahead of a query stay empty."
        )
    return (
        "framed rows, which are all rows: without a cache every step computes them again, to the "
        "same numbers. Keys ahead of a query stay empty."
    )


def cut_note(recording: Recording, panels: Sequence[tuple[Panel, ...]], frame: int) -> str:
    """Say what of larger tensors is shown, or "" when everything is."""
    config = recording.checkpoint.config
    group = panels[frame]
    notes = []
    for panel in group:
        array = recording.array(panel.step, panel.tensor)
        if len(panel.indices) < array.shape[-1] and panel.field not in SCORE_TENSORS:
            last = panel.indices.stop - 1
            notes.append(f"{panel.field} {panel.indices.start} to {last} of {array.shape[-1]}")
        if len(panel.positions) < len(recording.positions(panel.step, panel.tensor)):
            first, last = panel.positions.start, panel.positions.stop - 1
            notes.append(f"positions {first} to {last}")
    heads = {panel.head for panel in group if panel.heads}
    if heads and len(heads) < config.n_head:
        notes.append(f"heads {min(heads)} to {max(heads)} of {config.n_head}")
    unique = list(dict.fromkeys(notes))
    return f"Shown: {'; '.join(unique)}. The windows follow the chosen number." if unique else ""
