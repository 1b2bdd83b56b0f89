"""Both paths agree on every prefix, and the comparison notices whatever breaks one of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.strategies import checkpoints
from tinydec.model import full
from tinydec.model.activations import tensor_names
from tinydec.model.cache import LayerCache
from tinydec.model.config import ModelConfig
from tinydec.model.guards import GUARDS
from tinydec.model.operations import layer_norm, mlp
from tinydec.model.seams import Seams
from tinydec.model.storage import load_checkpoint
from tinydec.verification.alignment import first_difference, position_errors
from tinydec.verification.cached_run import run_cached
from tinydec.verification.equivalence import compare_split, verify_prefixes
from tinydec.verification.prefixes import PrefixCase, controlled_prefixes

FROZEN = load_checkpoint()
SIZES = ModelConfig(vocab_size=17, n_positions=7, n_embd=15, n_layer=3, n_head=3, n_inner=13)


def test_all_16_prefixes_pass_in_all_40_splits():
    report = verify_prefixes(FROZEN)
    assert len(report.prefixes) == 16
    assert len(report.rows) == 40
    assert report.distinct == 11
    assert report.passed_count == 16
    assert report.passed
    assert 0 < report.max_abs_error <= 5e-6
    assert report.tolerance == 1e-5


def test_splits_are_every_prefill_length_from_one_to_the_whole_prefix():
    for prefix in verify_prefixes(FROZEN).prefixes:
        lengths = [split.prefill_length for split in prefix.splits]
        assert lengths == list(range(1, prefix.case.length + 1))
        assert prefix.token_by_token.prefill_length == 1
        phases = [step.phase for step in prefix.token_by_token.steps]
        assert phases == ["prefill"] + ["decode"] * (prefix.case.length - 1)


def test_every_row_records_one_line_per_step_and_layer_with_the_expected_shapes():
    for row in verify_prefixes(FROZEN).rows:
        steps = row.case.length - row.prefill_length + 1
        assert len(row.records) == steps * 2
        for record in row.records:
            length = record.length_after
            assert record.expected_shape == (1, 2, length, 2)
            assert record.k_shape == record.v_shape == record.expected_shape
            assert record.payload_scalars == 8 * length  # 2 x 2 heads x t x 2, one layer
            assert record.payload_bytes == 32 * length
            assert record.positions == tuple(range(record.length_before, length))
            assert max(record.k_max_error, record.v_max_error) <= 1e-5
        assert row.records[-1].length_after == row.case.length
        assert sorted({record.layer for record in row.records}) == [0, 1]


def test_float64_passes_within_1e_12():
    report = verify_prefixes(FROZEN, dtype="float64")
    assert report.passed
    assert report.max_abs_error <= 1e-12


def test_side_by_side_gives_the_same_verdicts_as_alone():
    alone = verify_prefixes(FROZEN)
    together = verify_prefixes(FROZEN, side_by_side=True)
    assert together.passed
    assert [p.case for p in together.prefixes] == [p.case for p in alone.prefixes]
    for left, right in zip(alone.rows, together.rows, strict=True):
        assert left.full_argmax == right.full_argmax
        np.testing.assert_allclose(left.logits, right.logits, atol=1e-5)
        assert len(left.records) == len(right.records)
    record = together.rows[-1].records[-1]
    assert record.k_shape == (4, 2, 4, 2)  # four patterns in one cache
    assert record.payload_scalars == 32


def test_a_tolerance_below_the_noise_fails_and_names_a_tensor():
    report = verify_prefixes(FROZEN, tolerance=1e-9)
    assert not report.passed
    failing = [row for row in report.rows if not row.passed]
    names = tensor_names(2)
    for row in failing:
        if row.first_difference is not None:
            assert row.first_difference[0] in names
    assert any(row.first_difference for row in failing)


@settings(max_examples=25)
@given(checkpoints())
def test_any_architecture_agrees_in_float64(checkpoint):
    report = verify_prefixes(checkpoint, dtype="float64", tolerance=1e-10)
    assert report.passed, report.max_abs_error


# Each of these breaks one thing, and the first tensor that differs names it. ------------------


def _break_append(monkeypatch):
    def forgetful(self, k, v, tags):
        end = self.length + k.shape[2]
        self.keys[:, :, self.length : end] = k
        self.length = end  # the values are never written
        self.tags += tags

    monkeypatch.setattr(LayerCache, "append", forgetful)
    return "h.0.values"


def _break_norm(monkeypatch):
    monkeypatch.setattr(
        "tinydec.model.decode.layer_norm", lambda x, norm: layer_norm(x, norm) * 1.01
    )
    return "h.0.ln_1"


def _break_mlp(monkeypatch):
    def doubled(x, block, activation):
        hidden, activated, output = mlp(x, block, activation)
        return hidden, activated * 2, output

    monkeypatch.setattr("tinydec.model.decode.mlp", doubled)
    return "h.0.mlp_activation"


@pytest.mark.parametrize("breakage", [_break_append, _break_norm, _break_mlp])
def test_a_mismatch_is_named_by_the_first_tensor_that_differs(breakage, monkeypatch):
    expected = breakage(monkeypatch)
    report = verify_prefixes(FROZEN, every_split=False)
    named = {row.first_difference[0] for row in report.rows if row.first_difference}
    assert named == {expected}
    assert not report.passed


def test_a_reference_without_causal_mask_is_noticed(monkeypatch):
    monkeypatch.setattr("tinydec.model.full.np.triu", lambda ones, _diagonal: np.zeros_like(ones))
    report = verify_prefixes(FROZEN, every_split=False)
    assert {row.first_difference for row in report.rows if row.case.length > 1} == {
        ("h.0.scores", 0)
    }
    assert all(row.passed for row in report.rows if row.case.length == 1)


def test_wrong_length_is_a_failure_even_when_the_logits_agree(monkeypatch):
    correct = LayerCache.append

    def twice(self, k, v, tags):
        correct(self, k, v, tags)
        if self.layer == 1 and self.length == 1:
            self.keys[:, :, self.length] = self.keys[:, :, self.length - 1]
            self.values[:, :, self.length] = self.values[:, :, self.length - 1]
            self.length += 1
            self.tags += tags[-1:]

    monkeypatch.setattr(LayerCache, "append", twice)
    shorter = [case for case in controlled_prefixes(FROZEN) if case.length < 4]  # one slot is free
    report = verify_prefixes(FROZEN, every_split=False, cases=shorter)
    assert not any(row.shapes_valid for row in report.rows)
    assert not any(row.passed for row in report.rows)
    # with one token standing twice attention still averages to the same value
    single = [row for row in report.rows if row.case.length == 1]
    assert all(row.max_abs_error <= 1e-5 for row in single)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_stored_value_changed_after_its_append_is_found_in_its_layer(layer, monkeypatch):
    checkpoint = random_checkpoint(SIZES, 11, "float64")
    case = PrefixCase("any", 5, (1, 2, 3, 4, 5), "any")
    reference = full.full_forward(checkpoint, case.token_ids)
    correct = LayerCache.append

    def overwriting(self, k, v, tags):
        correct(self, k, v, tags)
        if self.layer == layer and self.length == 4:
            self.values[:, :, 1] += 0.5

    monkeypatch.setattr(LayerCache, "append", overwriting)
    (row,) = compare_split(checkpoint, (case,), reference, 2, 1e-9)
    assert row.first_difference == (f"h.{layer}.values", 3)
    failing = {(record.layer, record.length_after) for record in row.records if not record.passed}
    assert (layer, 4) in failing
    assert (layer, 3) not in failing


def test_errors_of_chunks_are_filed_under_their_own_positions():
    checkpoint = random_checkpoint(SIZES, 3, "float64")
    ids = np.array([[1, 2, 3, 4, 5]])
    reference = full.full_forward(checkpoint, ids)
    wrong = Seams(position=lambda consumed: 6 if consumed == 3 else consumed)
    for prefill_length in range(6):
        steps = run_cached(checkpoint, ids, prefill_length, wrong, GUARDS - {"position"})
        errors = position_errors(reference, [step.activations for step in steps])[0]
        assert errors.shape == (len(tensor_names(3)), 5)
        assert errors[:, :3].max() < 1e-12
        assert first_difference(errors, tensor_names(3), 1e-9) == ("position_embedding", 3)


@settings(max_examples=20)
@given(checkpoints(), st.data())
def test_a_single_changed_number_is_found_at_its_tensor_and_position(checkpoint, data):
    length = checkpoint.config.n_positions
    ids = np.arange(length)[np.newaxis] % checkpoint.config.vocab_size
    reference = full.full_forward(checkpoint, ids)
    layer = data.draw(st.integers(0, checkpoint.config.n_layer - 1))
    position = data.draw(st.integers(0, length - 1))
    block = reference.blocks[layer]
    moved = block.mlp_hidden.copy()
    moved[position, 0] += 1e-3
    blocks = list(reference.blocks)
    blocks[layer] = block._replace(mlp_hidden=moved)
    errors = position_errors(reference, [reference._replace(blocks=tuple(blocks))])[0]
    names = tensor_names(checkpoint.config.n_layer)
    assert first_difference(errors, names, 1e-6) == (f"h.{layer}.mlp_hidden", position)
    assert (errors > 0).sum() == 1


def test_a_tensor_of_another_shape_counts_as_infinitely_far_away():
    reference = full.full_forward(FROZEN, (0, 2, 3))
    block = reference.blocks[1]
    narrow = block._replace(mix=block.mix[..., :1])
    odd = reference._replace(blocks=(reference.blocks[0], narrow))
    errors = position_errors(reference, [odd])[0]
    names = tensor_names(2)
    assert np.isinf(errors[names.index("h.1.mix")]).all()
    others = np.delete(errors, names.index("h.1.mix"), axis=0)
    assert others.max() == 0


def test_recorded_steps_are_copies_that_later_steps_do_not_change():
    ids = np.array([[0, 2, 3, 4]])
    short = run_cached(FROZEN, ids[:, :2], 1)
    long = run_cached(FROZEN, ids, 1)
    for early, late in zip(short, long, strict=False):
        for a, b in zip(early.stored, late.stored, strict=True):
            np.testing.assert_array_equal(a.keys, b.keys)
        keys = late.activations.blocks[0].keys
        assert not keys.flags.writeable
        np.testing.assert_array_equal(early.activations.blocks[0].keys, keys)
