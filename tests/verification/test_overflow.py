"""The input that does not fit: refused, slid naively, prefilled again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.strategies import checkpoints
from tinydec.errors import InputError
from tinydec.generation.generate import generate
from tinydec.memory import DecoderSizes, decode_work, prefill_work
from tinydec.model.cache import KVCache
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.model.seams import ReferenceSeams
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.overflow import (
    METHODS,
    REFUSE,
    REPREFILL,
    SLIDE,
    Judged,
    OverflowReport,
    fill_context,
    overflow,
    with_context,
)
from tinydec.verification.scalar_loop import scalar_logits

FROZEN = load_checkpoint()
# V = 13, context 5, d = 15, h = 3, m = 23.
DEEP = random_checkpoint(ModelConfig(13, 5, 15, 3, 3, 23), 7)
FLAT = random_checkpoint(ModelConfig(13, 5, 15, 1, 3, 23), 7)
IDS = (4, 0, 12, 7, 9, 2)


def judged(report: OverflowReport, method: str) -> Judged:
    found = report.outcome(method).judged
    assert found is not None
    return found


@pytest.mark.parametrize("checkpoint", [DEEP, FLAT])
def test_reference_is_the_kept_window_from_position_0(checkpoint):
    report = overflow(checkpoint, IDS)
    assert report.kept == (0, 12, 7, 9, 2)
    assert np.abs(report.reference - scalar_logits(checkpoint, report.kept)[-1]).max() < 1e-12


@settings(max_examples=20)
@given(st.data(), checkpoints())
def test_prefill_again_agrees_and_naive_sliding_does_not(data, checkpoint):
    config = checkpoint.config
    token = st.integers(0, config.vocab_size - 1)
    size = config.n_positions + 1
    report = overflow(checkpoint, data.draw(st.lists(token, min_size=size, max_size=size)))
    assert judged(report, REPREFILL).max_abs_error < 1e-12
    assert judged(report, REPREFILL).key_errors.max() < 1e-12
    assert judged(report, SLIDE).max_abs_error > 1e-6
    assert judged(report, SLIDE).key_errors.max() > 1e-3


def test_refusal_leaves_the_cache_bit_for_bit():
    found = overflow(DEEP, IDS).outcome(REFUSE)
    assert found.refusal == "consumed inputs: expected at most 5, found 6"
    assert found.unchanged
    assert (found.token_ids, found.key_positions) == (IDS[:5], (0, 1, 2, 3, 4))
    assert found.judged is None
    assert found.multiply_adds == 0


def test_refusal_that_does_not_come_is_seen(monkeypatch):
    def make_room(self, _checkpoint, _request_id, count, _guards):
        if count and self.length == self.capacity:
            self.truncate(self.length - 1)

    monkeypatch.setattr(KVCache, "check", make_room)
    assert not overflow(DEEP, IDS).outcome(REFUSE).unchanged


def test_naive_sliding_keeps_the_positions_that_the_keys_were_made_at():
    found = overflow(DEEP, IDS).outcome(SLIDE)
    assert found.token_ids == (0, 12, 7, 9, 2)
    assert found.key_positions == (1, 2, 3, 4, 4)
    assert overflow(DEEP, IDS).outcome(REPREFILL).key_positions == (0, 1, 2, 3, 4)


def test_in_one_layer_naive_sliding_is_a_full_forward_with_those_position_rows():
    # In a single layer a key depends on its own token and position alone.
    report = overflow(FLAT, IDS)
    rows = FLAT.weights.wpe[[1, 2, 3, 4, 4]]
    seams = ReferenceSeams(position_rows=lambda _: rows)
    expected = full_forward(FLAT, report.kept, seams).last_logits[0]
    found = judged(report, SLIDE)
    assert np.abs(found.logits - expected).max() < 1e-12
    error = np.abs(expected - report.reference).max()
    assert found.max_abs_error == pytest.approx(error, abs=1e-12)


def test_in_one_layer_only_the_newest_key_is_right_after_sliding():
    errors = judged(overflow(FLAT, IDS), SLIDE).key_errors
    assert errors.shape == (1, 5)
    assert errors[0, -1] < 1e-12
    assert errors[0, :-1].min() > 1e-3


def test_work_of_each_way():
    sizes = DecoderSizes(3, 15, 3, 5, 23, 13, 5)
    works = [outcome.multiply_adds for outcome in overflow(DEEP, IDS).outcomes]
    step = decode_work(sizes, 4).visible.total
    assert works == [0, step, step + prefill_work(sizes, 4).visible.total]


def test_frozen_model_hides_the_error_from_whoever_looks_at_the_token_alone():
    found = judged(overflow(FROZEN, fill_context(FROZEN, [0])), SLIDE)
    assert found.max_abs_error > 0.1
    assert found.same_argmax


def test_context_of_one_has_nothing_to_slide():
    tiny = with_context(DEEP, 1)
    report = overflow(tiny, (4, 9))
    assert report.kept == (9,)
    assert max(judged(report, m).max_abs_error for m in (SLIDE, REPREFILL)) < 1e-12


# Filling the context -------------------------------------------------------------------------


def test_filling_goes_on_greedily_past_eos():
    # The greedy run of the frozen model is <bos> A B D <eos>: ids 0 2 3 5 1.
    returned = generate(FROZEN, RunSpec()).returned_ids
    assert fill_context(FROZEN, [0]) == (0, *returned)
    after_eos = fill_context(FROZEN, [0, 1])
    row = full_forward(FROZEN, [0, 1]).last_logits[0]
    assert after_eos[:3] == (0, 1, int(row.argmax()))
    assert len(after_eos) == 5


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9))
def test_filling_keeps_what_it_was_given(ids):
    found = fill_context(DEEP, ids)
    assert len(found) == 6
    assert found[: len(ids)] == tuple(ids[:6])
    for length in range(len(ids), 6):
        assert found[length] == full_forward(DEEP, found[:length]).last_logits[0].argmax()


@pytest.mark.parametrize("ids", [[], [99], [0, 0, 0, 0, 0, 99]])
def test_filling_refuses_what_is_no_prefix(ids):
    with pytest.raises(InputError):
        fill_context(DEEP, ids)


# A shorter context ----------------------------------------------------------------------------


def test_shorter_context_gives_the_same_logits_where_both_apply():
    short = with_context(DEEP, 3)
    assert short.config.n_positions == 3
    assert short.digest != DEEP.digest
    same = full_forward(short, IDS[:3]).logits == full_forward(DEEP, IDS[:3]).logits
    assert same.all()
    assert with_context(DEEP, 5) is DEEP


@pytest.mark.parametrize("rows", [0, 6, True, 2.0])
def test_wrong_context_is_refused(rows):
    with pytest.raises(InputError, match="context: expected 1 to 5 rows"):
        with_context(DEEP, rows)


@pytest.mark.parametrize("ids", [IDS[:5], (*IDS, 1), (4, 0, 12, 7, 9, 13)])
def test_wrong_tokens_are_refused(ids):
    with pytest.raises(InputError):
        overflow(DEEP, ids)


def test_outcomes_stand_in_the_order_of_the_methods():
    assert tuple(outcome.method for outcome in overflow(DEEP, IDS).outcomes) == METHODS
