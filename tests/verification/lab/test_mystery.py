"""Hidden cases: the same number the same faults, always ones that the audit can name."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.diagnosis import diagnose
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.intervention import NOTHING
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.mystery import draw_case, intervention_of
from tinydec.verification.lab.scenario import frozen_scenario, scenario_for

LAB = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)
CASES = [draw_case(LAB, number, FAULTS) for number in range(1, 41)]


def test_case_is_the_same_for_the_same_number() -> None:
    again = [draw_case(LAB, case.number, tuple(reversed(FAULTS))) for case in CASES[:10]]
    assert [[f.id for f in case.faults] for case in again] == [
        [f.id for f in case.faults] for case in CASES[:10]
    ]


def test_cases_vary_and_some_hide_two_faults_from_different_stages() -> None:
    assert set(Counter(len(case.faults) for case in CASES)) == {1, 2}
    assert len({fault.id for case in CASES for fault in case.faults}) > 20
    for case in CASES:
        stages = [fault.stage for fault in case.faults]
        assert stages == sorted(set(stages))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.number))
def test_audit_names_every_hidden_fault_in_turn(case) -> None:
    left = case.faults
    while left:
        recording = LAB.run(intervention_of(left))
        found = diagnose(recording, LAB.judge(recording))
        assert found is not None
        assert found.check.stage == left[0].stage
        assert left[0].id in [cause.id for cause in found.causes]
        left = left[1:]


def test_faults_that_cannot_act_are_not_hidden() -> None:
    one_layer = random_checkpoint(ModelConfig(5, 3, 6, 1, 2, 7), 5, "float64")
    lab = laboratory(one_layer, scenario_for(one_layer), 1e-9)
    layered = [fault_by_id(name) for name in ("wrong-layer", "layers-swapped")]
    assert draw_case(lab, 1, layered).faults == ()
    assert draw_case(lab, 1, [*layered, fault_by_id("positions-reset")]).faults == (
        fault_by_id("positions-reset"),
    )


def test_two_faults_that_do_not_fit_one_cache_leave_one() -> None:
    pair = [fault_by_id("duplicate-append"), fault_by_id("positions-reset")]
    for number in range(1, 30):
        assert draw_case(LAB, number, pair).faults


def test_fault_switched_on_twice_acts_once() -> None:
    fault = fault_by_id("rows-shifted-on-leave")
    assert intervention_of([fault, fault]) == fault.intervention
    assert intervention_of([]) is NOTHING
