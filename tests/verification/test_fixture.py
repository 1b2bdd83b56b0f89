"""Whether the shipped checkpoint can tell a broken cache from a correct one."""

import numpy as np
import pytest

from tinydec.model.full import full_forward
from tinydec.model.storage import load_checkpoint
from tinydec.verification.fixture import LEAST_DEPARTURE, attention_departure, judge_fixture
from tinydec.verification.prefixes import controlled_prefixes

FROZEN = load_checkpoint()


def references(checkpoint):
    return [full_forward(checkpoint, case.token_ids) for case in controlled_prefixes(checkpoint)]


def test_every_head_of_the_frozen_checkpoint_departs_from_uniform_by_a_tenth():
    departures = attention_departure(references(FROZEN))
    assert departures.shape == (2, 2)
    assert departures.min() >= LEAST_DEPARTURE == 0.1


def test_departure_agrees_with_a_plain_loop():
    expected = np.zeros((2, 2))
    for full in references(FROZEN):
        for layer, block in enumerate(full.blocks):
            for head in range(2):
                for row in range(1, len(full.positions)):
                    for key in range(row + 1):
                        weight = float(block.attention[0, head, row, key])
                        gap = abs(weight - 1 / (row + 1))
                        expected[layer, head] = max(expected[layer, head], gap)
    np.testing.assert_array_equal(attention_departure(references(FROZEN)), expected)


def test_a_head_without_queries_is_found_to_be_uniform():
    tensors = {name: array.copy() for name, array in FROZEN.tensors.items()}
    tensors["h.1.attn.c_attn.weight"][:, 2:4] = 0  # queries of layer 1, head 1
    departures = attention_departure(references(FROZEN.with_tensors(tensors)))
    assert departures[1, 1] < 1e-6
    assert departures[0].min() >= LEAST_DEPARTURE


def test_one_token_prefixes_alone_show_no_departure():
    assert attention_departure([full_forward(FROZEN, (0,))]).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="at least one"):
        attention_departure([])


def flattened(scale):
    """The frozen checkpoint with queries so small that attention is nearly uniform."""
    tensors = {name: array.copy() for name, array in FROZEN.tensors.items()}
    for layer in range(2):
        tensors[f"h.{layer}.attn.c_attn.weight"][:, :4] *= scale
    return FROZEN.with_tensors(tensors)


def test_the_frozen_checkpoint_is_strong_enough_for_a_verdict():
    report = judge_fixture(FROZEN)
    assert report.strong
    assert report.weakness == ""
    assert report.smallest_failure > 1e-2


def test_a_checkpoint_with_nearly_uniform_attention_is_refused_with_the_head_named():
    report = judge_fixture(flattened(1e-4))
    assert not report.strong
    assert "attention of layer" in report.weakness
    assert "expected at least 0.1" in report.weakness


def test_a_checkpoint_on_which_broken_caches_do_not_show_is_refused():
    tensors = {name: array.copy() for name, array in FROZEN.tensors.items()}
    for layer in range(2):  # nothing that attention reads reaches the residual
        tensors[f"h.{layer}.attn.c_proj.weight"][:] = 0
    tensors["wpe.weight"][:] = tensors["wpe.weight"][:1]  # and every position looks alike
    report = judge_fixture(FROZEN.with_tensors(tensors))
    assert not report.strong
    assert report.smallest_failure <= report.tolerance
