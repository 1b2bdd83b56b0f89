"""Published values: read with their source, and held beside what is measured."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.published import (
    PUBLISHED_PATH,
    compare_published,
    load_published,
    measurements,
)

#: As the course prints them.
PUBLISHED = {
    "parameters": 368,
    "prefixes_passed": 16,
    "tolerance": 1e-5,
    "max_abs_error": 4.7684e-6,
    "wrong_position_error": 23.0252,
    "wrong_layer_error": 3.6990,
    "greedy_trace": "<bos> A B D <eos>",
    "sampled_trace": "<bos> Y X Y <eos>",
    "cache_bytes_per_token": 64,
    "cache_bytes_at_4": 256,
}


def test_file_holds_the_published_values_with_their_source() -> None:
    source, values = load_published()
    assert "not published" in source
    assert {value.id: value.value for value in values} == PUBLISHED
    assert all(value.stated_in and value.note and value.unit for value in values)


def test_each_value_stands_beside_its_measurement(report: AuditReport) -> None:
    found = {c.published.id: c for c in compare_published(report)}
    assert found.keys() == PUBLISHED.keys()
    for comparison in found.values():
        assert comparison.same is comparison.published.same_expected
        assert comparison.note == comparison.published.note
    errors = (found["wrong_position_error"], found["wrong_layer_error"])
    for error in errors:
        assert isinstance(error.measured, float)
        assert 1e-2 < error.measured != error.published.value
    assert found["max_abs_error"].measured == report.equivalence.max_abs_error <= 5e-6


def test_measurements_follow_the_report(report: AuditReport) -> None:
    run, whole = report.run("greedy"), report.equivalence
    exchanged = replace(
        report,
        equivalence=replace(whole, tolerance=0.5, prefixes=whole.prefixes[:3]),
        memory=tuple(replace(m, valid_bytes=3 * m.tokens) for m in report.memory[:3]),
        runs=(replace(run, cached=report.run("sample").cached), report.run("sample")),
        failures=(),
    )
    found = measurements(exchanged)
    assert found["tolerance"] == 0.5
    assert found["prefixes_passed"] == 3
    assert (found["cache_bytes_per_token"], found["cache_bytes_at_4"]) == (3, None)
    assert found["greedy_trace"] == "<bos> Y X Y <eos>"
    assert found["wrong_layer_error"] is None


def test_other_set_up_is_remarked(report: AuditReport) -> None:
    spec = replace(report.spec, dtype="float64", seed=5)
    notes = [c.note for c in compare_published(run_audit(report.checkpoint, spec))]
    expected = "Measured in another set-up than the published one: seed 5, float64. "
    assert all(note.startswith(expected) for note in notes)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("source"),
        lambda found: found.update(source=3),
        lambda found: found.update(values=3),
        lambda found: found["values"][0].pop("note"),
        lambda found: found["values"][0].update(note=3),
        lambda found: found["values"][0].update(value=None),
        lambda found: found["values"][0].update(value=True),
        lambda found: found["values"][0].update(value=float("nan")),
        lambda found: found["values"][0].update(same_expected="yes"),
        lambda found: found["values"][0].update(other=1),
        lambda found: found["values"].append([1]),
    ],
)
def test_damaged_file_is_refused(tmp_path: Path, change: Any) -> None:
    found = json.loads(PUBLISHED_PATH.read_text(encoding="utf-8"))
    change(found)
    path = tmp_path / "published.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(InputError, match=r"published.json: expected") as caught:
        load_published(path)
    assert "\n" not in str(caught.value)


def test_missing_or_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.json"
    for text in (None, "{", "[" * 100_000):
        if text is not None:
            path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"published.json: expected"):
            load_published(path)
