"""The fault lab's bundle, read by somebody who has Python's csv module alone."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport
from tinydec.evidence.bundle import bundle_files
from tinydec.evidence.fault_report import FaultReport, faults_spec, run_faults
from tinydec.evidence.registry import FAULT_TABLES
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec

Rows = list[dict[str, str]]

#: The stage of every fault, from the course's order of dependencies; typed in here once more.
STAGES = {
    1: "F04 F05 F06 F29",
    2: "F07 F08 F09 F10 F11 F12 F13 F14 F15 F19 F20",
    3: "F01 F02 F03 F16 F17 F18 F21 F22 F23 F27 F37 F42",
    4: "F24 F25 F26 F28",
    5: "F30 F31 F32 F33 F34 F35 F39 F40 F41",
    6: "F36 F38",
}


@pytest.fixture(scope="module")
def lab() -> FaultReport:
    checkpoint = load_checkpoint()
    return run_faults(checkpoint, faults_spec(checkpoint, "float32"))


@pytest.fixture(scope="module")
def lab_files(lab: FaultReport) -> dict[str, bytes]:
    return bundle_files(lab)


def read(data: bytes) -> Rows:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))


@pytest.fixture(scope="module")
def rows(lab_files: dict[str, bytes]) -> Rows:
    return read(lab_files["kill_matrix.csv"])


def test_every_one_of_42_faults_has_a_row_and_variants_have_more(rows: Rows) -> None:
    main = [row["fault"] for row in rows if row["variant"] == ""]
    assert main == [f"F{number:02}" for number in range(1, 43)]
    assert len({(row["fault"], row["variant"]) for row in rows}) == len(rows) == 47


def test_every_fault_is_caught_at_its_own_stage(rows: Rows) -> None:
    stage_of = {fault: str(stage) for stage, names in STAGES.items() for fault in names.split()}
    for row in rows:
        assert row["stage_found"] == row["stage_expected"] == stage_of[row["fault"]]
        assert (row["passed"], row["acts"], row["verdict"]) == ("true", "true", "caught")
        assert row["caught_by"]
        assert row["observed"] != row["expected"] != ""


def test_silent_faults_leave_the_logits_within_the_tolerance(rows: Rows) -> None:
    silent = [row for row in rows if row["silent"] == "true"]
    assert {row["fault"] for row in silent} == {"F02", "F04", "F05", "F13", "F14"}
    for row in silent:
        assert float(row["max_abs_error"]) <= 1e-5
        assert row["greedy_changed"] == "false"
    loud = {row["fault"] for row in rows if float(row["max_abs_error"]) > 1e-5}
    assert len(loud) >= 17
    assert not loud & {row["fault"] for row in silent}


def test_guarded_faults_say_what_the_guard_says(rows: Rows) -> None:
    for row in rows:
        guarded = row["guard"] != ""
        assert (row["guard_message"] != "") is guarded
        if guarded:
            assert "expected" in row["guard_message"]
    guarded_faults = {row["fault"] for row in rows if row["guard"]}
    numbers = (1, 2, 3, 16, 17, 18, 19, 20, 21, 23, 27, 37, 42)
    assert guarded_faults == {f"F{number:02}" for number in numbers}


def test_no_fault_gives_no_finding(lab_files: dict[str, bytes]) -> None:
    checks = read(lab_files["audit.csv"])
    assert {row["verdict"] for row in checks} == {"passed"}
    assert sorted({row["stage"] for row in checks}) == list("123456")
    fixture = read(lab_files["fixture.csv"])
    assert len(fixture) == 2 * 2 + 1  # a row for each head, and one for the failures
    assert all(float(row["figure"]) > float(row["expected"]) for row in fixture)


def test_bundle_holds_its_own_kind_and_tables(
    lab: FaultReport, lab_files: dict[str, bytes]
) -> None:
    assert set(lab_files) == {*FAULT_TABLES, "manifest.json", "checkpoint.safetensors"}
    manifest = json.loads(lab_files["manifest.json"])
    assert (manifest["kind"], manifest["passed"], manifest["tolerance"]) == ("faults", True, 1e-5)
    assert "context_prompt" not in manifest
    assert manifest["run"] == lab.spec.to_dict()
    files = {row["file"] for row in read(lab_files["columns.csv"])}
    assert files == set(FAULT_TABLES)


def test_two_runs_write_the_same_bytes(lab_files: dict[str, bytes]) -> None:
    checkpoint = load_checkpoint()
    assert bundle_files(run_faults(checkpoint, faults_spec(checkpoint, "float32"))) == lab_files


def test_audit_of_the_shipped_checkpoint_holds_the_same_matrix(
    report: AuditReport, shipped_files: dict[str, bytes], lab_files: dict[str, bytes]
) -> None:
    assert report.is_frozen
    for name in ("kill_matrix.csv", "audit.csv", "fixture.csv"):
        assert shipped_files[name] == lab_files[name]


def test_one_missed_fault_fails_the_lab(lab: FaultReport) -> None:
    assert lab.passed
    session = replace(lab.session)
    session.__dict__["kills"] = (replace(lab.session.kills[0], passed=False),)
    assert not replace(lab, session=session).passed


def test_matrix_on_a_weak_fixture_is_no_pass(lab: FaultReport) -> None:
    weak = replace(lab.session, fixture=replace(lab.session.fixture, weakness="too flat"))
    weak.__dict__["kills"] = lab.session.kills
    assert not replace(lab, session=weak).passed


def test_tolerance_below_the_rounding_fails_the_correct_session() -> None:
    checkpoint = load_checkpoint()
    found = run_faults(checkpoint, faults_spec(checkpoint, "float32", 1e-12))
    assert not found.session.report.passed
    assert not found.passed


@pytest.mark.parametrize(
    "change",
    [{"faults": ("F19",), "guards_off": ("layer",)}, {"seed": 7}, {"prompt": ("A",)},
     {"checkpoint": "0" * 64}, {"max_new_tokens": 1}],
)  # fmt: skip
def test_another_run_is_refused(change: dict[str, Any]) -> None:
    checkpoint = load_checkpoint()
    spec = replace(faults_spec(checkpoint, "float32"), **change)
    with pytest.raises(InputError, match="faults: expected the checkpoint, a dtype"):
        run_faults(checkpoint, spec)


def test_other_checkpoint_says_where_a_fault_cannot_act() -> None:
    checkpoint = random_checkpoint(ModelConfig(7, 5, 6, 1, 2, 11), 3)
    spec = faults_spec(checkpoint, "float64")
    table = read(bundle_files(run_faults(checkpoint, spec))["kill_matrix.csv"])
    idle = {row["fault"]: row for row in table if row["acts"] == "false"}
    assert {"F19", "F20"} <= idle.keys()
    assert idle["F19"]["verdict"] == "cannot act here"
    assert idle["F19"]["passed"] == "true"
    assert idle["F19"]["stage_found"] == ""
    assert "two layers" in idle["F19"]["needs"]


def test_wrong_dtype_is_refused() -> None:
    with pytest.raises(InputError, match="dtype: expected one of"):
        faults_spec(load_checkpoint(), "float8")
    assert faults_spec(load_checkpoint(), "float32") != RunSpec()
