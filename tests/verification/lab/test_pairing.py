"""A faulty session beside the correct one: each fault's own trace in facts and tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tinydec.model.storage import load_checkpoint
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.fault import BATCH, REQUEST
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.pairing import (
    SESSION,
    Difference,
    StepPair,
    TensorPair,
    differences,
    first_pair,
    step_pair,
    step_pairs,
)
from tinydec.verification.lab.scenario import frozen_scenario
from tinydec.verification.observation import Recording

TOLERANCE = 1e-5
LAB = laboratory(load_checkpoint(), frozen_scenario(), TOLERANCE)


def recorded(name: str) -> tuple[Recording, Recording]:
    """The correct and the faulty recording of the part in which a fault acts."""
    fault = fault_by_id(name)
    part = BATCH if fault.part == BATCH else REQUEST
    return LAB.part_of_correct(part), LAB.run(fault.intervention, part)


def found_in(name: str, most: int | None = None) -> tuple[Difference, ...]:
    correct, faulty = recorded(name)
    return differences(correct, faulty, TOLERANCE, most)


def parting(name: str) -> tuple[StepPair, TensorPair]:
    """The first step that differs, and its first tensor."""
    correct, faulty = recorded(name)
    pair = first_pair(correct, faulty, TOLERANCE)
    assert pair is not None
    assert pair.first is not None
    return pair, pair.first


def test_session_does_not_differ_from_itself() -> None:
    assert differences(LAB.correct, LAB.correct, 0.0) == ()
    assert first_pair(LAB.correct, LAB.correct, 0.0) is None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_leaves_a_fact_that_differs(fault) -> None:
    correct, faulty = recorded(fault.id)
    found = differences(correct, faulty, TOLERANCE)
    assert found
    assert all(one.correct != one.faulty for one in found)


@pytest.mark.parametrize(
    ("name", "run", "step", "what", "correct", "faulty"),
    [
        ("wrong-vocabulary", SESSION, None, "vocabulary digest", "1a009e79dd12", "12dfbcf02782"),
        ("training-mode", SESSION, None, "mode", "evaluation", "training"),
        ("duplicate-append", "sampled", 1, "cached length", "2 → 3", "2 → 4"),
        ("slots-permuted", "sampled", 1, "slots hold inputs", "0 1 2", "1 0 2"),
        ("layers-swapped", "sampled", 1, "layers' caches", "0 1", "1 0"),
        ("positions-reset", "sampled", 0, "positions", "0 1", "0 0"),
        ("eos-reported-as-length", "sampled", 2, "stop reason", "eos", "context"),
        ("finished-rows-draw", "row a, left", None, "generator at the end", "…4286881b", None),
        ("tie-takes-last", SESSION, None, "row with ties, greedy", "keeps [0], takes 0", None),
    ],
)
def test_fact_that_gives_a_fault_away_is_listed(name, run, step, what, correct, faulty) -> None:
    found = [d for d in found_in(name) if (d.run, d.what) == (run, what)]
    assert found[0].step == step
    assert found[0].correct == correct
    assert faulty is None or found[0].faulty == faulty


@pytest.mark.parametrize(
    ("name", "step", "tensor"),
    [
        ("stale-cache", 1, "h.0.q"),
        ("stale-by-identity", 1, "h.1.ln_2"),
        ("same-label", 1, "token_embedding"),
        ("key-value-swapped", 0, "h.0.values"),
        ("wrong-layer", 0, "h.1.keys"),
        ("prefill-not-causal", 0, "h.0.scores"),
        ("not-renormalised", 0, "probabilities"),
    ],
)
def test_first_tensor_is_the_first_in_the_order_of_computation(name, step, tensor) -> None:
    pair, first = parting(name)
    assert (pair.correct.index, first.name) == (step, tensor)
    before = [t.error for t in pair.tensors[: pair.tensors.index(first)]]
    assert max(before, default=0.0) <= TOLERANCE < first.error


def test_wrong_layer_reads_the_keys_that_the_first_layer_stored() -> None:
    pair, first = parting("wrong-layer")
    np.testing.assert_array_equal(first.faulty, pair.correct.layers[0].keys)
    np.testing.assert_array_equal(first.correct, pair.correct.layers[1].keys)


def test_wrong_reference_shows_in_the_uncached_logits_alone() -> None:
    found = found_in("broken-reference")
    assert {d.what.split("[")[0] for d in found} == {"uncached logits"}
    correct, faulty = recorded("broken-reference")
    assert first_pair(correct, faulty, TOLERANCE) is None


def test_no_more_facts_than_asked_for_and_the_first_ones() -> None:
    every = found_in("shared-stream")
    assert len(every) > 5
    assert found_in("shared-stream", 5) == every[:5]


def test_difference_within_the_tolerance_counts_as_none() -> None:
    correct = LAB.correct
    pair = next(step_pairs(correct, correct, 0.0))
    moved = pair.correct.activations._replace(ln_f=pair.correct.activations.ln_f + 1e-3)
    other = replace(pair.correct, activations=moved)
    assert step_pair("x", pair.correct, other, 2e-3).first is None
    first = step_pair("x", pair.correct, other, 1e-4).first
    assert isinstance(first, TensorPair)
    assert first.name == "ln_f"
    assert first.error == pytest.approx(1e-3, rel=1e-3)
