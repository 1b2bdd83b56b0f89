"""Broken caches are rejected wherever they can act, and nowhere else."""

import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.deliberate import run_deliberate_failures
from tinydec.verification.faults import DELIBERATE, fault_by_id
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.intervention import NOTHING

FROZEN = load_checkpoint()
RESULTS = run_deliberate_failures(FROZEN)


def of(name):
    return [result for result in RESULTS if result.fault.name == name]


def test_there_is_one_result_for_each_failure_and_prefix():
    assert len(RESULTS) == 2 * 16
    assert [fault.name for fault in DELIBERATE] == ["positions-reset", "wrong-layer"]


@pytest.mark.parametrize("name", ["positions-reset", "wrong-layer"])
def test_each_failure_exceeds_a_hundredth_wherever_it_can_act(name):
    acting = [result for result in of(name) if result.cannot_act is None]
    assert len(acting) == (12 if name == "positions-reset" else 16)
    for result in acting:
        assert result.result.max_abs_error > 1e-2  # a thousand times the tolerance
        assert result.rejected
        assert result.result.shapes_valid
        assert result.as_expected


def test_positions_reset_cannot_act_on_one_token_and_says_why():
    idle = [result for result in of("positions-reset") if result.case.length == 1]
    assert len(idle) == 4
    for result in idle:
        assert result.cannot_act == "a one-token prefix has position 0 anyway"
        assert result.result.max_abs_error <= 1e-5
        assert result.refusal is None
        assert result.as_expected


def test_the_guard_would_have_refused_each_acting_failure():
    for result in RESULTS:
        if result.cannot_act is None:
            assert result.refusal is not None
            assert "expected" in result.refusal
            assert "found" in result.refusal


def test_the_first_difference_names_the_broken_contract():
    for result in of("positions-reset"):
        if result.cannot_act is None:
            assert result.result.first_difference == ("position_embedding", 1)
    for result in of("wrong-layer"):
        assert result.result.first_difference == ("h.1.keys", 0)


def test_an_equal_argmax_would_have_hidden_most_wrong_layer_caches():
    kept = [r for r in of("wrong-layer") if r.result.full_argmax == r.result.cached_argmax]
    assert len(kept) > 8
    assert all(result.rejected for result in kept)


def test_a_fault_that_does_nothing_is_not_rejected_and_not_as_expected():
    idle = Fault("F00", "nothing", 2, "Nothing goes wrong.", "nowhere", "nobody", NOTHING)
    results = run_deliberate_failures(FROZEN, faults=[idle])
    assert not any(result.rejected for result in results)
    assert not any(result.as_expected for result in results)


def test_wrong_layer_cannot_act_on_a_model_of_one_layer():
    sizes = ModelConfig(vocab_size=11, n_positions=5, n_embd=6, n_layer=1, n_head=2, n_inner=7)
    checkpoint = random_checkpoint(sizes, 2, "float64")
    results = run_deliberate_failures(checkpoint, dtype="float64", faults=DELIBERATE[1:])
    assert {result.cannot_act for result in results} == {"the model has one layer"}
    assert all(result.as_expected for result in results)


def test_faults_are_found_by_id_and_name_and_unknown_ones_are_refused():
    assert fault_by_id("F19") is fault_by_id("wrong-layer")
    with pytest.raises(InputError, match=r"fault: expected one of F01 .*, found 'F99'"):
        fault_by_id("F99")
