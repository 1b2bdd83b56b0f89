"""Tables of the lab: what they hold is what the core found, and their CSV reads back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tinydec.evidence import lab_tables
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.model.storage import load_checkpoint
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.kill_matrix import kill, laboratory
from tinydec.verification.lab.pairing import Difference, TensorPair
from tinydec.verification.lab.scenario import frozen_scenario
from tinydec.verification.lab.symptom_index import symptom_index

LAB = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)


def test_checks_keep_order_verdict_and_what_was_seen() -> None:
    report = LAB.judge(LAB.run(fault_by_id("F19").intervention))
    assert report.first_failure is not None
    table = lab_tables.checks(report.checks)
    assert table["stage"].tolist() == [check.stage for check in report.checks]
    failed = table[table["verdict"] == "failed"]
    assert failed["check"].tolist() == ["cache.reads"]
    assert failed["observed"].tolist() == [report.first_failure.observed]
    assert set(table[table["stage"] > 2]["verdict"]) == {"not judged"}
    assert read_csv(write_csv(table, lab_tables.CHECKS), lab_tables.CHECKS).equals(table)


def test_catalogue_lists_every_fault_once() -> None:
    table = lab_tables.fault_rows(FAULTS)
    assert table["id"].tolist() == [f"F{number:02}" for number in range(1, 43)]
    assert table[table["silent"]]["id"].tolist() == ["F02", "F04", "F05", "F13", "F14"]
    assert read_csv(write_csv(table, lab_tables.FAULTS), lab_tables.FAULTS).equals(table)


def test_name_has_id_and_variant() -> None:
    fault = fault_by_id("F17")
    assert lab_tables.named(fault) == "F17 position-off-by-one"
    assert lab_tables.named(fault, "one too low") == "F17 position-off-by-one (one too low)"


def test_differences_and_candidates_hold_what_was_found() -> None:
    found = [Difference("session", None, "mode", "evaluation", "training")]
    assert lab_tables.difference_rows(found).iloc[0].tolist() == list(found[0])
    index = symptom_index(LAB, [fault_by_id("F19")])
    (candidates,) = [entry for entry in index.values() if entry]
    row = lab_tables.candidates(candidates).iloc[0]
    assert row["fault"] == "F19 wrong-layer"
    assert row["max_abs_error"] == kill(LAB, fault_by_id("F19")).max_abs_error


def test_values_hold_every_place_of_either_shape() -> None:
    pair = TensorPair(
        "h.0.keys",
        np.arange(6.0).reshape(1, 3, 2),
        np.array([[[0.0, 1.0], [2.0, 7.0], [np.nan, 5.0], [8.0, 9.0]]]),
        math.inf,
    )
    table = lab_tables.values(pair)
    assert table["index"].tolist()[:3] == ["0, 0, 0", "0, 0, 1", "0, 1, 0"]
    assert len(table) == 1 * 4 * 2
    assert table["difference"].tolist() == [0.0, 0.0, 0.0, 4.0, math.inf, 0.0, None, None]
    assert table["correct"].tolist()[-2:] == [None, None]
    assert table["faulty"].tolist()[-2:] == [8.0, 9.0]


@pytest.mark.parametrize("fault", ["F19", "F36"])
def test_verdict_says_what_became_of_a_fault(fault: str) -> None:
    row = kill(LAB, fault_by_id(fault))
    table = lab_tables.verdicts([row], {fault: "no further"})
    assert table["verdict"].tolist() == ["caught"]
    assert table["guard_message"].tolist() == ["no further"]
    assert table["stage_found"].tolist() == [row.stage_found]
