"""Exercises of the audit and the lab: the answers are the audit's own."""

from __future__ import annotations

import random

import pytest

from tinydec.model.storage import load_checkpoint
from tinydec.ui.lab import audits
from tinydec.ui.lab.session import Session, judged_session
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.fault import Fault
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.mystery import intervention_of
from tinydec.verification.lab.scenario import frozen_scenario

LAB = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)


def recorded(faults: tuple[Fault, ...]) -> Session:
    ids = tuple(fault.id for fault in faults)
    return judged_session(LAB, LAB.correct, LAB.run(intervention_of(faults)), ids)


@pytest.mark.parametrize("seed", range(6))
def test_two_faults_are_named_in_the_order_in_which_the_audit_names_them(seed: int) -> None:
    task = audits.two_fault_task(recorded, random.Random(seed))
    first, second = str(task.answer).split(", then ")
    assert first == "wrong-layer"
    assert second in ("other-request", "slot-overwritten")
    assert fault_by_id(first).stage < fault_by_id(second).stage
    assert len(set(task.choices)) == 4
    assert task.answer in task.choices
    # The numbers in the question are those of the two recordings.
    both = recorded((fault_by_id(first), fault_by_id(second)))
    mended = recorded((fault_by_id(second),))
    for session in (both, mended):
        assert session.diagnosis is not None
        assert session.diagnosis.check.observed in task.question


def test_both_foreign_writes_are_asked_for() -> None:
    answers = {audits.two_fault_task(recorded, random.Random(seed)).answer for seed in range(8)}
    assert len(answers) == 2


@pytest.mark.parametrize("seed", range(6))
def test_stage_is_that_of_the_fault_described(seed: int) -> None:
    task = audits.stage_task(lambda fault: recorded((fault,)), random.Random(seed))
    (fault,) = [fault for fault in FAULTS if fault.what in task.question]
    assert task.answer == fault.stage


def test_nothing_is_asked_where_nothing_fails() -> None:
    correct = recorded(())
    assert audits.stage_task(lambda _: correct, random.Random(1)).answer == 0
    assert audits.two_fault_task(lambda _: correct, random.Random(1)).answer == 0
