"""Every symptom leads to faults that do show it."""

from __future__ import annotations

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.diagnosis import SYMPTOMS, diagnose
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.fault import BATCH, REQUEST
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.scenario import frozen_scenario, scenario_for
from tinydec.verification.lab.symptom_index import symptom_index

LAB = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)
INDEX = symptom_index(LAB, FAULTS)


def candidates(symptom_id: str) -> set[str]:
    symptom = next(s for s in SYMPTOMS if s.id == symptom_id)
    return {candidate.fault.id for candidate in INDEX[symptom]}


def test_no_symptom_is_without_a_candidate_on_the_frozen_checkpoint() -> None:
    assert list(INDEX) == list(SYMPTOMS)
    assert all(INDEX.values())


def test_candidates_are_those_of_the_course_and_more() -> None:
    assert "F16" in candidates("embedding")  # positions reset
    assert candidates("later_layer") == {"F19"}  # wrong layer's cache
    assert {"F07", "F08"} <= candidates("length")  # doubled append, doubled prompt token
    assert candidates("weights") == {"F01", "F02", "F03"}
    assert {"F40", "F32"} <= candidates("selection")
    assert {"F33", "F34"} <= candidates("stream")
    assert {"F23", "F37"} <= candidates("past_context")
    assert candidates("stopping") == {"F36", "F38"}
    assert "F36" not in candidates("embedding")


def test_each_candidate_is_what_the_audit_reports() -> None:
    for found in INDEX.values():
        for candidate in found:
            part = BATCH if candidate.fault.part == BATCH else REQUEST
            recording = LAB.run(candidate.fault.intervention, part)
            report = LAB.judge(recording)
            diagnosis = diagnose(recording, report)
            assert diagnosis is not None
            assert candidate.caught_by == diagnosis.check.id
            assert candidate.max_abs_error == report.logit_error
            assert candidate.fault.id == diagnosis.causes[0].id


def test_fault_that_does_not_fit_the_model_is_left_out() -> None:
    one_layer = random_checkpoint(ModelConfig(5, 3, 6, 1, 2, 7), 5, "float64")
    lab = laboratory(one_layer, scenario_for(one_layer), 1e-9)
    found = symptom_index(lab, [fault_by_id("layers-swapped"), fault_by_id("positions-reset")])
    assert {c.fault.id for candidates in found.values() for c in candidates} == {"F16"}
