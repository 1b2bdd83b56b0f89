"""Recordings: what belongs together is taken, what does not is refused with one line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.rows import run_cached
from tinydec.errors import InputError
from tinydec.generation.generate import generate
from tinydec.model.full import full_forward
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.explain import Element, Recording

FROZEN = load_checkpoint(FROZEN_PATH)
IDS = [[0, 2, 3, 5]]


def cached(chunks: tuple[int, ...]) -> Recording:
    return Recording.of(FROZEN, IDS, run_cached(FROZEN, IDS, chunks)[1])


def test_position_belongs_to_the_step_that_computed_it() -> None:
    recording = cached((2, 0, 0))
    assert recording.starts == (0, 2, 3)
    assert recording.length == 4
    assert [recording.step_of("logits", p) for p in range(4)] == [0, 0, 1, 2]
    assert [recording.step_of("logits", p, preferred=2) for p in range(4)] == [0, 0, 1, 2]


def test_cache_slots_and_full_passes_are_found_in_the_preferred_step() -> None:
    recording = cached((2, 0, 0))
    assert [recording.step_of("h.1.keys", p, preferred=2) for p in range(4)] == [2, 2, 2, 2]
    assert [recording.step_of("h.1.keys", p, preferred=1) for p in range(4)] == [1, 1, 1, 2]
    full = Recording.of(FROZEN, IDS, [full_forward(FROZEN, IDS[0][:n]) for n in (2, 3, 4)])
    assert full.starts == (0, 0, 0)
    assert [full.step_of("logits", p, preferred=1) for p in range(4)] == [1, 1, 1, 2]


def test_value_is_the_recorded_one_exactly() -> None:
    recording = cached((2, 0, 0))
    block = recording.steps[1].blocks[1]
    assert recording.value(Element(1, "h.1.q", 2, 1, head=1)) == float(block.q[0, 1, 0, 1])
    assert recording.value(Element(1, "h.1.keys", 1, 0, head=1)) == float(block.keys[0, 1, 1, 0])
    assert recording.value(Element(1, "h.1.scores", 2, 0, head=1)) == float(
        block.scores[0, 1, 0, 0]
    )
    assert recording.value(Element(1, "h.1.ln_2", 2, 3)) == float(block.ln_2[0, 3])


def test_position_row_is_shared_by_the_sequences_of_a_batch() -> None:
    ids = [[0, 2], [3, 5]]
    recording = Recording.of(FROZEN, ids, [full_forward(FROZEN, ids)])
    element = Element(0, "position_embedding", 1, 2)
    assert recording.value(element) == float(FROZEN.tensors["wpe.weight"][1, 2])
    with pytest.raises(InputError, match="expected position from 0 to 1, found 2"):
        recording.value(replace(element, position=2))


def test_run_without_activations_is_refused() -> None:
    with pytest.raises(InputError, match="expected a run that kept its activations, found none"):
        Recording.of_trace(FROZEN, generate(FROZEN, RunSpec()))


def test_run_of_another_checkpoint_is_refused() -> None:
    trace = generate(FROZEN, RunSpec(dtype="float16"), keep_activations=True)
    Recording.of_trace(FROZEN.cast("float16"), trace)
    with pytest.raises(InputError, match="expected the run's checkpoint"):
        Recording.of_trace(FROZEN, trace)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    _, steps = run_cached(FROZEN, IDS, (2, 0, 0))
    with pytest.raises(InputError, match="at least one step, found none"):
        Recording.of(FROZEN, IDS, [])
    with pytest.raises(InputError, match="expected step 1 to begin at an input from 0 to 2"):
        Recording.of(FROZEN, IDS, [steps[0], steps[2]])
    with pytest.raises(InputError, match="end by 3, found 3 to 4"):
        Recording.of(FROZEN, [IDS[0][:3]], steps)
    with pytest.raises(InputError, match="float64 with B = 1 and 2 layers, found float32"):
        Recording.of(FROZEN.cast("float64"), IDS, steps)
    with pytest.raises(InputError, match="float32 with B = 2 and 2 layers, found float32 with B"):
        Recording.of(FROZEN, [*IDS, *IDS], steps)
    with pytest.raises(InputError, match="token id"):
        Recording.of(FROZEN, [[0, 99]], steps[:1])
    with pytest.raises(InputError, match="expected evaluation mode, found training"):
        Recording.of(FROZEN.in_mode("training"), IDS, steps)


def test_recording_does_not_change_what_it_was_given() -> None:
    _, steps = run_cached(FROZEN, IDS, (2, 0, 0))
    before = [np.array(a) for s in steps for _, a in s.named()]
    recording = Recording.of(FROZEN, IDS, steps)
    for step in range(3):
        recording.value(Element(step, "logits", step + 1, 0))
    after = [a for s in steps for _, a in s.named()]
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))
