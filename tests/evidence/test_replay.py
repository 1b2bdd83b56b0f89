"""Replay: a true bundle passes; whatever is tampered with is found and named."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.evidence_files import Table, parsed, with_true_hashes, written
from tests.random_models import random_checkpoint
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.bundle import bundle_files
from tinydec.evidence.registry import TABLES
from tinydec.evidence.replay import read_bundle, replay_bundle
from tinydec.model.config import ModelConfig
from tinydec.runspec import SAMPLE, Policy

pytestmark = pytest.mark.usefixtures("one_audit")


def forged(files: dict[str, bytes], name: str, change: Callable[[Table], Any]) -> dict[str, bytes]:
    rows = parsed(files[name])
    change(rows)
    return with_true_hashes(files | {name: written(rows)})


def columns_of(name: str, kind: str, rules: tuple[str, ...]) -> list[int]:
    columns = enumerate(TABLES[name].schema.columns)
    return [i for i, column in columns if column.kind == kind and column.rule in rules]


def set_cell(rows: Table, row: int, column: int, text: str) -> None:
    rows[row][column] = text


def test_true_bundle_passes_and_every_cell_is_compared(files: dict[str, bytes]) -> None:
    found = replay_bundle(files)
    assert found.passed
    assert found.first_difference is None
    sizes = {
        name: (len(parsed(d)) - 1) * len(parsed(d)[0])
        for name, d in files.items()
        if name in TABLES
    }
    assert {v.file: v.cells for v in found.verdicts if v.file in TABLES} == sizes
    assert found.cells == sum(sizes.values()) > 100_000


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_bundle_of_another_run_passes(report: AuditReport, dtype: str) -> None:
    policy = Policy(SAMPLE, 0.7, 5, 0.9)
    spec = replace(report.spec, dtype=dtype, seed=2, policy=policy, prompt=("<bos>", "X"))
    assert replay_bundle(bundle_files(run_audit(report.checkpoint, spec))).passed


def test_bundle_of_another_checkpoint_passes_and_records_its_failure() -> None:
    config = ModelConfig(vocab_size=7, n_positions=3, n_embd=6, n_layer=1, n_head=2, n_inner=11)
    found = run_audit(random_checkpoint(config, 3), None)
    failed = run_audit(found.checkpoint, replace(found.spec, tolerance=1e-30))
    replayed = replay_bundle(bundle_files(failed, created="2024-02-29"))
    assert replayed.passed
    assert not replayed.manifest.passed


def test_reading_a_directory_gives_the_same_files(tmp_path: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert read_bundle(tmp_path) == files
    (tmp_path / "folder").mkdir()
    found = replay_bundle(read_bundle(tmp_path))
    assert str(found.first_difference) == "folder/: expected no such file, found one"


@pytest.mark.parametrize("name", TABLES)
def test_string_that_differs_is_named(files: dict[str, bytes], name: str) -> None:
    column = next(i for i, c in enumerate(TABLES[name].schema.columns) if c.kind == "text")
    last = len(parsed(files[name])) - 1
    found = replay_bundle(forged(files, name, lambda rows: set_cell(rows, last, column, "forged")))
    assert not found.passed
    difference = found.first_difference
    assert difference is not None
    assert (difference.file, difference.row) == (name, last)
    assert difference.column == TABLES[name].schema.columns[column].name
    assert difference.found == "forged"


FLOAT_RULES = ("close", "scaled", "session", "exact")
FLOAT_TABLES = [name for name in TABLES if columns_of(name, "float", FLOAT_RULES)]


@pytest.mark.parametrize("name", FLOAT_TABLES)
def test_float_beyond_the_tolerance_is_named(files: dict[str, bytes], name: str) -> None:
    column = columns_of(name, "float", FLOAT_RULES)[0]
    rows = parsed(files[name])
    row = next(i for i, cells in enumerate(rows) if i and cells[column] not in ("", "-inf"))
    value = float(rows[row][column])
    other = repr(value + 3e-5 * max(1.0, abs(value)))
    found = replay_bundle(forged(files, name, lambda rows: set_cell(rows, row, column, other)))
    differences = [d for verdict in found.verdicts for d in verdict.differences]
    header = TABLES[name].schema.columns[column].name
    named = [(d.row, d.column) for d in differences if d.file == name]
    assert (row, header) in named
    assert found.first_difference is not None
    assert found.first_difference.found == other


def test_float_within_the_tolerance_passes(files: dict[str, bytes]) -> None:
    def nudge(rows: Table) -> None:
        rows[1][-1] = repr(float(rows[1][-1]) + 5e-6)

    assert replay_bundle(forged(files, "intermediates.csv", nudge)).passed
    assert replay_bundle(forged(files, "attention.csv", nudge)).passed


@pytest.mark.parametrize("name", TABLES)
def test_dropped_row_is_named(files: dict[str, bytes], name: str) -> None:
    found = replay_bundle(forged(files, name, lambda rows: rows.pop()))
    assert not found.passed
    failed = [verdict.file for verdict in found.verdicts if not verdict.passed]
    assert failed == [name]
    count = len(parsed(files[name])) - 1
    assert f"expected {count} rows, found {count - 1}" in str(found.first_difference)


@pytest.mark.parametrize("name", TABLES)
def test_swapped_rows_are_named(files: dict[str, bytes], name: str) -> None:
    def swap(rows: Table) -> None:
        rows[1], rows[2] = rows[2], rows[1]

    found = replay_bundle(forged(files, name, swap))
    assert found.first_difference is not None
    assert (found.first_difference.file, found.first_difference.row) == (name, 1)


@pytest.mark.parametrize("name", TABLES)
def test_added_column_is_named(files: dict[str, bytes], name: str) -> None:
    def widen(rows: Table) -> None:
        for index, row in enumerate(rows):
            row.append("1" if index else "extra")

    found = replay_bundle(forged(files, name, widen))
    text = str(found.first_difference)
    assert text.startswith(f"{name}, column number")
    assert "found the header 'extra'" in text


@pytest.mark.parametrize(
    ("name", "listed"),
    [*((name, True) for name in TABLES), ("checkpoint.safetensors", True),
     ("checkpoint.safetensors", False), ("traces.csv", False)],
)  # fmt: skip
def test_missing_file_is_named(files: dict[str, bytes], name: str, listed: bool) -> None:
    del files[name]
    if not listed:
        manifest = json.loads(files["manifest.json"])
        del manifest["files"][name]
        files["manifest.json"] = json.dumps(manifest).encode()
    found = replay_bundle(files)
    assert not found.passed
    texts = [str(d) for verdict in found.verdicts for d in verdict.differences]
    assert f"{name}: expected the file, found none" in texts
    assert (f"manifest.json: expected an entry for {name}, found none" in texts) is not listed


def test_strange_file_is_named(files: dict[str, bytes]) -> None:
    found = replay_bundle(files | {"notes.txt": b"hello"})
    assert str(found.first_difference) == "notes.txt: expected no such file, found one"


@pytest.mark.parametrize("name", [*TABLES, "checkpoint.safetensors"])
def test_changed_byte_breaks_the_hash(files: dict[str, bytes], name: str) -> None:
    files[name] = files[name][:-2] + bytes([files[name][-2] ^ 1]) + files[name][-1:]
    found = replay_bundle(files)
    differences = [str(d) for v in found.verdicts for d in v.differences if v.file == name]
    assert any("SHA-256" in text for text in differences)


@pytest.mark.parametrize(
    "spelling", [(b"\n", b"\r\n"), (b"1e-05", b"0.00001"), (b"16.0,", b"16.00,")]
)
def test_other_spelling_of_the_same_values_is_named(
    files: dict[str, bytes], spelling: tuple[bytes, bytes]
) -> None:
    files["acceptance_gate.csv"] = files["acceptance_gate.csv"].replace(*spelling)
    found = replay_bundle(with_true_hashes(files))
    assert "cells spelled as the writer spells them" in str(found.first_difference)


@pytest.mark.parametrize(("column", "value"), [("max_abs_error", "0.0"), ("max_ulp", "3")])
def test_equivalence_row_must_agree_with_the_recorded_logits(
    files: dict[str, bytes], column: str, value: str
) -> None:
    """Even where another machine might find the value, the bundle must not contradict itself."""
    place = TABLES["prefix_equivalence.csv"].schema.names.index(column)
    found = replay_bundle(
        forged(files, "prefix_equivalence.csv", lambda rows: set_cell(rows, 2, place, value))
    )
    text = str(found.first_difference)
    assert text.startswith(f"prefix_equivalence.csv, row 2, column {column}: expected")
    assert "(from prefix_logits.csv)" in text


@pytest.mark.parametrize("column", ["full_argmax", "cached_argmax", "max_ulp"])
def test_argmax_and_ulp_beyond_what_logits_allow_are_named(
    files: dict[str, bytes], column: str
) -> None:
    place = TABLES["prefix_equivalence.csv"].schema.names.index(column)
    value = "0" if column.endswith("argmax") else str(10**9)
    found = replay_bundle(
        forged(files, "prefix_equivalence.csv", lambda rows: set_cell(rows, 3, place, value))
    )
    assert str(found.first_difference).startswith(f"prefix_equivalence.csv, row 3, column {column}")


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "stops.csv"])
def test_length_that_the_manifest_gets_wrong_is_named(files: dict[str, bytes], name: str) -> None:
    manifest = json.loads(files["manifest.json"])
    right = manifest["files"][name]["bytes"]
    manifest["files"][name]["bytes"] = right + 1
    found = replay_bundle(files | {"manifest.json": json.dumps(manifest).encode()})
    assert str(found.first_difference) == f"{name}: expected {right + 1} bytes, found {right}"
    assert not found.passed
