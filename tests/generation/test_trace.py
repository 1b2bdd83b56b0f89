import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.generation.decoders import decoder, decoders, run, run_options
from tinydec.generation.request import Request
from tinydec.generation.trace import StepRecord, snapshot
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.prefill import prefill
from tinydec.runspec import Policy

SAMPLE = Policy("sample")


def named(step: StepRecord) -> dict[str, NDArray]:
    assert step.activations is not None
    return dict(step.activations.named())


@pytest.mark.parametrize("cache", [True, False])
def test_snapshots_are_read_only_and_no_later_step_changes_them(cache: bool) -> None:
    checkpoint = decoder()
    request = Request(checkpoint, (1, 2), SAMPLE, 0, use_cache=cache, keep_activations=True)
    copies = []
    while request.stop_reason is None:
        step = request.step()
        copies.append({name: array.copy() for name, array in named(step).items()})
    if request.cache is not None:
        for layer in request.cache.layers:
            layer.keys[...] = layer.values[...] = np.nan
    for step, copied in zip(request.trace().steps, copies, strict=True):
        for name, array in named(step).items():
            assert np.array_equal(array, copied[name]), name
            assert not array.flags.writeable, name
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_without_a_snapshot_the_keys_follow_the_cache() -> None:
    checkpoint = decoder()
    cache = KVCache(checkpoint, "request-0")
    live = prefill(checkpoint, cache, (1, 2), "request-0")
    frozen = snapshot(live)
    before = live.blocks[0].keys.copy()
    cache.layers[0].keys[...] = 7
    assert (live.blocks[0].keys == 7).all()
    assert np.array_equal(frozen.blocks[0].keys, before)


@settings(max_examples=30)
@given(st.data(), decoders(), st.booleans())
def test_keeping_activations_changes_no_token_and_no_tensor(
    data: st.DataObject, checkpoint: Checkpoint, cache: bool
) -> None:
    options = data.draw(run_options(checkpoint.config))
    tensors = {name: array.tobytes() for name, array in checkpoint.tensors.items()}
    plain, kept = (
        run(checkpoint, **options, use_cache=cache, keep_activations=keep) for keep in (False, True)
    )
    for one, other in zip(plain.steps, kept.steps, strict=True):
        assert one.activations is None
        assert one.selection.same_as(other.selection)
        assert other.activations is not None
        assert np.array_equal(other.activations.last_logits[0], other.selection.logits)
        assert other.activations.positions[-len(other.positions) :] == other.positions
    assert {name: array.tobytes() for name, array in checkpoint.tensors.items()} == tensors
    assert not any(array.flags.writeable for array in checkpoint.tensors.values())


def test_tokens_of_a_trace_in_the_small() -> None:
    trace = run(decoder(), (4, 2), max_new_tokens=3)
    a, b, c = trace.returned_ids
    assert trace.token_ids == (4, 2, a, b, c)
    assert trace.consumed_ids == (4, 2, a, b)
    assert [step.consumed_ids for step in trace.steps] == [(4, 2), (a,), (b,)]
    assert [step.positions for step in trace.steps] == [(0, 1), (2,), (3,)]
    assert [(s.length_before, s.length_after) for s in trace.steps] == [(0, 2), (2, 3), (3, 4)]
    assert trace.checkpoint_digest == decoder().digest


def test_steps_and_traces_are_immutable() -> None:
    trace = run(decoder(), (1,), SAMPLE)
    for thing, name in ((trace, "steps"), (trace.steps[0], "index"), (trace.steps[0], "selection")):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
    for step in trace.steps:
        assert not step.selection.logits.flags.writeable
        assert not step.selection.probabilities.flags.writeable
