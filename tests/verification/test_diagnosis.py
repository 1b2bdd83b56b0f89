"""From a recording alone to the fault, for every fault."""

import pytest

from tests.random_sessions import random_laboratory
from tinydec.model.storage import load_checkpoint
from tinydec.verification.clues import CLUES
from tinydec.verification.diagnosis import SYMPTOMS, diagnose
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.intervention import NOTHING, merged
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.scenario import frozen_scenario

LAB = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)


def diagnosed(lab, intervention):
    recording = lab.run(intervention)
    return diagnose(recording, lab.judge(recording))


def test_a_correct_session_has_no_diagnosis() -> None:
    assert diagnosed(LAB, NOTHING) is None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_first_cause_is_the_fault_that_was_switched_on(fault) -> None:
    found = diagnosed(LAB, fault.intervention)
    assert found is not None
    assert found.causes[0] is fault
    assert found.check.stage == fault.stage
    assert len(found.causes) == len(set(found.causes))


@pytest.mark.parametrize(
    ("fault_id", "symptom"),
    [
        ("F16", "embedding"),
        ("F11", "first_layer"),
        ("F19", "later_layer"),
        ("F07", "length"),
        ("F08", "length"),
        ("F13", "length"),
        ("F01", "weights"),
        ("F02", "weights"),
        ("F26", "neighbours"),
        ("F42", "neighbours"),
        ("F40", "selection"),
        ("F32", "selection"),
        ("F33", "stream"),
        ("F34", "stream"),
        ("F37", "past_context"),
        ("F23", "past_context"),
        ("F36", "stopping"),
        ("F04", "reference"),
    ],
)
def test_the_symptom_is_the_one_that_a_person_would_see(fault_id, symptom) -> None:
    found = diagnosed(LAB, fault_by_id(fault_id).intervention)
    assert found is not None
    assert symptom in [entry.id for entry in found.symptoms]


def test_silent_faults_have_no_differing_value_but_a_broken_contract() -> None:
    for fault_id in ("F02", "F14"):
        found = diagnosed(LAB, fault_by_id(fault_id).intervention)
        assert found is not None
        tensor = found.first_difference[1] if found.first_difference else "h.0.keys"
        assert tensor.endswith("keys")
        assert found.check.observed != found.check.expected


def test_of_the_courses_two_failures_the_layer_is_named_first_then_the_request() -> None:
    layer, request = fault_by_id("wrong-layer"), fault_by_id("slot-overwritten")
    both = diagnosed(LAB, merged(layer.intervention, request.intervention))
    assert both is not None
    assert both.causes[0] is layer
    alone = diagnosed(LAB, request.intervention)
    assert alone is not None
    assert alone.causes[0] is request


def test_every_fault_has_a_clue_and_every_clue_a_fault() -> None:
    assert {clue.fault for clue in CLUES} == {fault.id for fault in FAULTS}
    assert len({symptom.id for symptom in SYMPTOMS}) == len(SYMPTOMS)


@pytest.mark.parametrize("seed", [3, 5, 11])
def test_on_random_models_the_fault_is_among_the_first_three_causes(seed) -> None:
    lab = random_laboratory(seed)
    for fault in FAULTS:
        found = diagnosed(lab, fault.intervention)
        if found is not None:
            assert fault in found.causes[:3], fault.id


@pytest.mark.parametrize("fault_id", ["F30", "F31", "F40"])
def test_a_row_made_by_hand_is_no_row_of_a_batch(fault_id) -> None:
    found = diagnosed(LAB, fault_by_id(fault_id).intervention)
    assert found is not None
    assert found.check.where.run.startswith("row with ties")
    assert "neighbours" not in [entry.id for entry in found.symptoms]
