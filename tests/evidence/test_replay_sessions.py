"""Replay of sessions with faults, and of the fault lab; whatever is tampered with is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.evidence_files import Table, parsed, with_true_hashes, written
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.bundle import bundle_files
from tinydec.evidence.fault_report import faults_spec, run_faults
from tinydec.evidence.registry import FAULT_TABLES, TABLES
from tinydec.evidence.replay import replay_bundle
from tinydec.evidence.session import with_faults
from tinydec.model.storage import load_checkpoint

pytestmark = pytest.mark.usefixtures("one_audit")


@pytest.fixture(scope="module")
def lab_files() -> dict[str, bytes]:
    checkpoint = load_checkpoint()
    return bundle_files(run_faults(checkpoint, faults_spec(checkpoint, "float32")))


@pytest.fixture(scope="module")
def faulty_files(report: AuditReport) -> dict[str, bytes]:
    return bundle_files(run_audit(report.checkpoint, with_faults(report.spec, ["F19", "F36"])))


def forged(files: dict[str, bytes], name: str, change: Callable[[Table], Any]) -> dict[str, bytes]:
    rows = parsed(files[name])
    change(rows)
    return with_true_hashes(files | {name: written(rows)})


def cell(name: str, row: int, column: str, text: str) -> Callable[[Table], Any]:
    place = TABLES[name].schema.names.index(column)

    def change(rows: Table) -> None:
        assert rows[row][place] != text
        rows[row][place] = text

    return change


def row_of(files: dict[str, bytes], name: str, **wanted: str) -> int:
    names = TABLES[name].schema.names
    return next(
        index
        for index, row in enumerate(parsed(files[name]))
        if all(row[names.index(column)] == text for column, text in wanted.items())
    )


def test_faulty_bundle_passes_and_says_that_its_audit_failed(
    faulty_files: dict[str, bytes],
) -> None:
    found = replay_bundle(faulty_files)
    assert found.passed, found.first_difference
    assert not found.manifest.passed
    assert found.manifest.run.faults == ("F19", "F36")
    assert found.manifest.run.guards_off == ("layer",)


def test_faulty_bundle_holds_the_failing_check_and_its_faults(
    faulty_files: dict[str, bytes],
) -> None:
    names = TABLES["audit.csv"].schema.names
    rows = [dict(zip(names, row, strict=True)) for row in parsed(faulty_files["audit.csv"])[1:]]
    assert [(r["stage"], r["check"]) for r in rows if r["verdict"] == "failed"] == [
        ("2", "cache.reads")
    ]
    assert {r["verdict"] for r in rows if int(r["stage"]) > 2} == {"not judged"}
    assert all(r["reason"] for r in rows if int(r["stage"]) > 2)
    kills = parsed(faulty_files["kill_matrix.csv"])[1:]
    assert [row[0] for row in kills] == ["F19", "F36"]


@pytest.mark.parametrize(
    ("faults", "off"),
    [([], []), (["F19"], ["layer"]), (["F36"], []), (["F20", "F36"], ["layer"]),
     (["F19", "F36"], []), (["F99"], [])],
)  # fmt: skip
def test_other_faults_in_the_manifest_are_named(
    faulty_files: dict[str, bytes], faults: list[str], off: list[str]
) -> None:
    manifest = json.loads(faulty_files["manifest.json"])
    manifest["run"] |= {"faults": faults, "guards_off": off}
    found = replay_bundle(faulty_files | {"manifest.json": json.dumps(manifest).encode()})
    assert not found.passed
    assert "\n" not in str(found.first_difference)


def test_lab_bundle_passes_and_every_cell_is_compared(lab_files: dict[str, bytes]) -> None:
    found = replay_bundle(lab_files)
    assert found.passed, found.first_difference
    sizes = {name: (len(parsed(d)) - 1) * len(parsed(d)[0])
             for name, d in lab_files.items() if name in FAULT_TABLES}  # fmt: skip
    assert {v.file: v.cells for v in found.verdicts if v.file in FAULT_TABLES} == sizes


@pytest.mark.parametrize("name", FAULT_TABLES)
def test_missing_or_changed_file_of_the_lab_is_named(
    lab_files: dict[str, bytes], name: str
) -> None:
    kept = {file: data for file, data in lab_files.items() if file != name}
    assert not replay_bundle(kept).passed
    shorter = replay_bundle(forged(lab_files, name, lambda rows: rows.pop()))
    assert [v.file for v in shorter.verdicts if not v.passed] == [name]


def test_kind_cannot_be_exchanged(
    lab_files: dict[str, bytes], shipped_files: dict[str, bytes]
) -> None:
    manifest = json.loads(lab_files["manifest.json"]) | {
        "kind": "audit", "context_prompt": ["<bos>", "A", "A", "A"]
    }  # fmt: skip
    found = replay_bundle(lab_files | {"manifest.json": json.dumps(manifest).encode()})
    assert not found.passed
    manifest = json.loads(shipped_files["manifest.json"]) | {"kind": "faults"}
    del manifest["context_prompt"]
    found = replay_bundle(shipped_files | {"manifest.json": json.dumps(manifest).encode()})
    assert not found.passed


#: One forgery for every column that says something: file, what to look for, column, new text.
FORGERIES = [
    ("audit.csv", {"check": "cache.length"}, "verdict", "failed"),
    ("audit.csv", {"check": "cache.length"}, "observed", "as expected in all 93 places"),
    ("audit.csv", {"check": "equivalence.logits"}, "observed", "largest difference 0.5"),
    ("audit.csv", {"check": "equivalence.logits"}, "observed", "largest difference inf"),
    ("audit.csv", {"check": "equivalence.logits"}, "expected", "difference at most 2e-05"),
    ("audit.csv", {"check": "equivalence.logits"}, "tolerance", "2e-05"),
    ("audit.csv", {"check": "cache.order"}, "contract", "slots stand in any order"),
    ("audit.csv", {"check": "cache.order"}, "stage", "3"),
    ("audit.csv", {"check": "cache.order"}, "where", "sampled"),
    ("audit.csv", {"check": "cache.order"}, "reason", "skipped"),
    ("batch_isolation.csv", {"row": "c", "layout": "right"}, "tokens_equal", "false"),
    ("batch_isolation.csv", {"row": "c", "layout": "right"}, "max_abs_error", "0.5"),
    ("batch_isolation.csv", {"row": "c", "layout": "right"}, "tolerance", "0.001"),
    ("batch_isolation.csv", {"row": "c", "layout": "right"}, "neighbours", "a b"),
    ("batch_isolation.csv", {"row": "c", "layout": "right"}, "excused", "true"),
    ("batch_isolation.csv", {"row": "c", "layout": "right"}, "steps", "9"),
    ("kill_matrix.csv", {"fault": "F19"}, "stage_found", "3"),
    ("kill_matrix.csv", {"fault": "F19"}, "stage_found", ""),
    ("kill_matrix.csv", {"fault": "F19"}, "max_abs_error", "8.61"),
    ("kill_matrix.csv", {"fault": "F19"}, "observed", "K read differs from K stored by 2.9"),
    ("kill_matrix.csv", {"fault": "F19"}, "observed", "K read differs from K stored by 2.95"),
    ("kill_matrix.csv", {"fault": "F19"}, "guard_message", ""),
    ("kill_matrix.csv", {"fault": "F19"}, "silent", "true"),
    ("kill_matrix.csv", {"fault": "F19"}, "first_position", "1"),
    ("kill_matrix.csv", {"fault": "F13"}, "max_abs_error", "2e-05"),
    ("kill_matrix.csv", {"fault": "F29", "variant": "position row"}, "passed", "false"),
    ("fixture.csv", {"layer": "1", "head": "0"}, "figure", "0.9"),
    ("fixture.csv", {"layer": "1", "head": "0"}, "expected", "0.01"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wanted", "column", "text"), FORGERIES)
def test_forged_cell_is_named(
    files: dict[str, bytes], name: str, wanted: dict[str, str], column: str, text: str
) -> None:
    row = row_of(files, name, **wanted)
    found = replay_bundle(forged(files, name, cell(name, row, column, text)))
    assert found.first_difference is not None
    difference = found.first_difference
    assert (difference.file, difference.row, difference.column) == (name, row, column)


@pytest.mark.parametrize(
    ("name", "wanted", "column", "change"),
    [
        ("audit.csv", {"check": "equivalence.logits"}, "observed",
         lambda text: "largest difference 1.02e-06"),
        ("kill_matrix.csv", {"fault": "F19"}, "max_abs_error",
         lambda text: repr(float(text) * (1 + 5e-6))),
        ("batch_isolation.csv", {"row": "c"}, "max_abs_error", lambda text: "1e-06"),
    ],
)  # fmt: skip
def test_what_another_kernel_may_find_passes(
    files: dict[str, bytes], name: str, wanted: dict[str, str], column: str, change: Any
) -> None:
    row = row_of(files, name, **wanted)
    text = change(parsed(files[name])[row][TABLES[name].schema.names.index(column)])
    found = replay_bundle(forged(files, name, cell(name, row, column, text)))
    assert found.passed, found.first_difference


def test_matrix_in_the_bundle_of_another_checkpoint_is_a_stranger(
    shipped_files: dict[str, bytes],
) -> None:
    """The shipped checkpoint named by its digest is audited as any other one is."""
    checkpoint = load_checkpoint()
    spec = json.loads(shipped_files["manifest.json"])
    spec["run"]["checkpoint"] = checkpoint.digest
    found = replay_bundle(shipped_files | {"manifest.json": json.dumps(spec).encode()})
    differences = [str(d) for v in found.verdicts for d in v.differences]
    assert "kill_matrix.csv: expected no such file, found one" in differences
