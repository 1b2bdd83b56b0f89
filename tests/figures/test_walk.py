"""Panels: the numbers in their cells are the core's, and each cell knows its element."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tinydec.figures.stages import STAGES, Stage, stage_of, tensor_of, walk
from tinydec.figures.walk import (
    CELLS,
    COLUMNS,
    FRAMES,
    HEADS,
    ROWS,
    Panel,
    attention_frames,
    frame_of,
    frame_steps,
    labels,
    stage_frames,
    window,
)
from tinydec.generation.generate import generate
from tinydec.model.activations import tensor_names
from tinydec.model.config import ModelConfig
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.explain import Element, Recording

FROZEN = load_checkpoint(FROZEN_PATH)
LARGE = random_checkpoint(ModelConfig(29, 37, 95, 3, 5, 67), 3, "float32")


def recorded(cache: bool = True, large: bool = False) -> Recording:
    checkpoint = LARGE if large else FROZEN
    prompt = ("t0", "t5") * 9 if large else ("<bos>", "A")
    spec = RunSpec(prompt=prompt, cache=cache)
    return Recording.of_trace(checkpoint, generate(checkpoint, spec, keep_activations=True))


def all_frames(recording: Recording, step: int) -> list[tuple[Panel, ...]]:
    found: list[tuple[Panel, ...]] = []
    for layer, stage in walk(recording.checkpoint.config.n_layer):
        around = Element(step, "embedding", recording.positions(step, "logits").stop - 1, 0)
        found += stage_frames(recording, stage, layer, step, around)
        found += attention_frames(recording, step, around)
    return found


# Stages ------------------------------------------------------------------------------------------


def test_every_tensor_is_on_the_walk_and_its_stage_shows_it() -> None:
    for tensor in tensor_names(3):
        stage = stage_of(tensor)
        assert tensor.rsplit(".", 1)[-1] in stage.fields
    with pytest.raises(KeyError):
        stage_of("h.0.nothing")


def test_walk_passes_every_layer_in_the_order_of_computation() -> None:
    stops = walk(3)
    assert len(stops) == 1 + 3 * 10 + 2
    assert [layer for layer, stage in stops if stage.key == "scores"] == [0, 1, 2]
    names = tensor_names(3)
    results = [tensor_of(stage, layer, 3) for layer, stage in stops]
    assert [names.index(name) for name in results] == sorted(names.index(n) for n in results)


def test_stream_is_what_enters_the_layer() -> None:
    norm = next(stage for stage in STAGES if stage.key == "norm")
    assert tensor_of(norm, 0, 2, "stream") == "embedding"
    assert tensor_of(norm, 1, 2, "stream") == "h.0.residual"
    assert tensor_of(STAGES[-2], 0, 2, "stream") == "h.1.residual"


# Panels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("large", [True, False])
def test_cells_hold_the_recorded_numbers_of_their_elements(cache: bool, large: bool) -> None:
    recording = recorded(cache, large)
    for panels in all_frames(recording, 1):
        for panel in panels:
            assert panel.values.shape == (len(panel.positions), len(panel.indices))
            for (row, column), value in np.ndenumerate(panel.values):
                if np.isnan(value):
                    continue
                element = panel.element(row, column)
                own = recording.step_of(element.tensor, element.position, element.step)
                assert recording.value(
                    Element(own, element.tensor, element.position, element.index, element.head)
                ) == float(value)
                assert panel.cell(element) == (row, column)


def test_frames_stay_within_their_bounds_and_hold_the_chosen_step() -> None:
    recording = recorded(large=True)
    for layer, stage in walk(3):
        frames = stage_frames(recording, stage, layer, 7, Element(7, "embedding", 24, 60))
        assert len(frames) <= FRAMES
        assert frames[frame_of(frames, 7)][0].step == 7
        assert len(frames) == 1 or sum(p.values.size for f in frames for p in f) < 2 * CELLS
        for panel in frames[frame_of(frames, 7)]:
            assert len(panel.positions) <= ROWS
            assert len(panel.indices) <= COLUMNS
    assert frame_of([], 3) == 0


@given(st.integers(1, 99), st.integers(1, 20), st.data())
def test_window_holds_the_place_and_as_much_as_there_is(
    count: int, most: int, data: st.DataObject
) -> None:
    around = data.draw(st.integers(0, count - 1))
    found = window(count, most, around)
    assert around in found
    assert len(found) == min(most, count)
    assert found.stop <= count


def test_many_cells_leave_few_frames() -> None:
    assert len(frame_steps(40, 20, 10)) == FRAMES
    assert frame_steps(40, 20, CELLS) == range(20, 21)
    assert frame_steps(40, 39, CELLS // 3) == range(37, 40)
    assert frame_steps(2, 0, 0) == range(2)


def test_window_follows_the_chosen_element() -> None:
    recording = recorded(large=True)
    logits = STAGES[-1]
    [_, panel] = stage_frames(recording, logits, 0, 0, Element(0, "logits", 3, 27))[0]
    assert 27 in panel.indices
    assert 3 in panel.positions
    far = Element(0, "h.1.q", 3, 18, head=4)
    heads = [
        panel.head
        for panel in stage_frames(recording, stage_of("h.1.q"), 1, 0, far)[0]
        if panel.field == "q"
    ]
    assert 4 in heads
    assert len(heads) == HEADS


def test_marked_cells_are_the_rows_that_the_step_appended() -> None:
    recording = recorded()
    append = stage_of("h.0.keys")
    frames = stage_frames(recording, append, 0, 1, Element(1, "h.0.keys", 2, 0))
    for frame, rows in zip(frames, ({0, 1}, {2}, {3}), strict=True):
        keys = [panel for panel in frame if panel.field == "keys"]
        assert all({row for row, _ in panel.marked} == rows for panel in keys)
        assert all(panel.marked == () for panel in frame if panel.field == "k")


def test_colours_compare_over_the_run_and_ignore_minus_infinity() -> None:
    recording = recorded()
    stage: Stage = stage_of("h.0.scores")
    frames = stage_frames(recording, stage, 0, 1, Element(1, "h.0.scores", 2, 0))
    limits = {p.limit for frame in frames for p in frame if p.field == "scores"}
    finite = [
        abs(float(v))
        for step in recording.steps
        for v in step.blocks[0].scores.ravel()
        if math.isfinite(v)
    ]
    assert limits == {max(finite)}


# Attention ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [True, False])
def test_attention_triangle_grows_by_the_rows_of_each_step(cache: bool) -> None:
    recording = recorded(cache)
    frames = attention_frames(recording, 1, Element(1, "embedding", 2, 0))
    assert len(frames) == 3
    for step, panels in enumerate(frames):
        assert [(p.tensor, p.head) for p in panels] == [
            ("h.0.attention", 0), ("h.0.attention", 1), ("h.1.attention", 0), ("h.1.attention", 1),
        ]  # fmt: skip
        for panel in panels:
            known = recording.positions(step, "logits").stop
            filled = ~np.isnan(panel.values)
            assert np.array_equal(filled, np.tri(4, dtype=bool) & (np.arange(4) < known)[:, None])
            assert np.nansum(panel.values[:known], axis=1) == pytest.approx(np.ones(known))
            fresh = {row for row, _ in panel.marked}
            assert fresh == (set(range(known)) if not cache else [{0, 1}, {2}, {3}][step])


def test_labels_name_position_and_token() -> None:
    assert labels(range(1, 3), ("<bos>", "A", "B")) == ["1 A", "2 B"]
