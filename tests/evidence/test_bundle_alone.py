"""A bundle read by somebody who has nothing but it and Python's csv module.

These checks import nothing of the project: they recompute figures from other figures.
"""

import csv
import hashlib
import io
import json
import math
from typing import Any

import pytest

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def tables(shipped_files: dict[str, bytes]) -> dict[str, Rows]:
    return {
        name: list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))
        for name, data in shipped_files.items()
        if name.endswith(".csv")
    }


def prefix_of(row: dict[str, str]) -> tuple[str, int]:
    return row["pattern"], int(row["length"])


def token_by_token(tables: dict[str, Rows]) -> Rows:
    return [r for r in tables["prefix_equivalence.csv"] if r["mode"].startswith("prefill 1 ")]


def test_largest_and_mean_error_follow_from_the_logits(tables: dict[str, Rows]) -> None:
    logits: dict[Any, dict[str, list[float]]] = {}
    for row in tables["prefix_logits.csv"]:
        paths = logits.setdefault(prefix_of(row), {"full": [], "cached": []})
        paths[row["path"]].append(float(row["logit"]))
    rows = token_by_token(tables)
    assert len(rows) == len(logits) == 16
    for row in rows:
        full, cached = logits[prefix_of(row)].values()
        errors = [abs(a - b) for a, b in zip(full, cached, strict=True)]
        assert max(errors) == float(row["max_abs_error"])
        assert math.isclose(sum(errors) / 8, float(row["mean_abs_error"]), rel_tol=1e-12)
        assert full.index(max(full)) == int(row["full_argmax"])
        assert max(errors) <= float(row["tolerance"]) == 1e-5
        assert row["passed"] == "true"


@pytest.mark.parametrize("path", ["full", "cached"])
def test_attention_weighted_values_give_the_mix(tables: dict[str, Rows], path: str) -> None:
    values = {
        (prefix_of(r), r["layer"], r["head"], r["position"], r["index"]): float(r["value"])
        for r in tables["kv_values.csv"]
        if r["tensor"] == "v" and r["path"] == path
    }
    mixed: dict[Any, float] = {}
    for row in tables["attention.csv"]:
        if row["tensor"] == "attention" and row["path"] == path:
            for index in "01":
                at = (prefix_of(row), row["layer"], row["head"])
                key = (*at, row["query_position"], index)
                value = values[(*at, row["key_position"], index)]
                mixed[key] = mixed.get(key, 0.0) + float(row["value"]) * value
    recorded = {
        (prefix_of(r), r["layer"], r["head"], r["position"], r["index"]): float(r["value"])
        for r in tables["intermediates.csv"]
        if r["tensor"] == "mix" and r["path"] == path
    }
    assert recorded.keys() == mixed.keys()
    assert len(recorded) == 40 * 2 * 2 * 2
    for key, value in recorded.items():
        assert math.isclose(value, mixed[key], rel_tol=1e-5, abs_tol=1e-6)


@pytest.mark.parametrize("path", ["full", "cached"])
def test_attention_is_the_softmax_of_the_scores(tables: dict[str, Rows], path: str) -> None:
    rows: dict[Any, dict[str, list[float]]] = {}
    for row in tables["attention.csv"]:
        if row["path"] == path:
            key = (prefix_of(row), row["layer"], row["head"], row["query_position"])
            found = rows.setdefault(key, {"scores": [], "attention": []})
            found[row["tensor"]].append(float(row["value"]))
            hidden = int(row["key_position"]) > int(row["query_position"])
            assert row["visible"] == ("false" if hidden else "true")
            if hidden:
                assert row["value"] == {"scores": "-inf", "attention": "0.0"}[row["tensor"]]
    assert len(rows) == 40 * 2 * 2
    for found in rows.values():
        top = max(found["scores"])
        weights = [math.exp(score - top) for score in found["scores"]]
        for weight, recorded in zip(weights, found["attention"], strict=True):
            assert math.isclose(weight / sum(weights), recorded, rel_tol=1e-5, abs_tol=1e-7)


def test_scores_are_queries_times_keys(tables: dict[str, Rows]) -> None:
    keys: dict[Any, float] = {}
    queries: dict[Any, float] = {}
    for row in tables["kv_values.csv"]:
        if row["tensor"] == "k" and row["path"] == "cached":
            place = (prefix_of(row), row["layer"], row["head"], row["position"], row["index"])
            keys[place] = float(row["value"])
    for row in tables["intermediates.csv"]:
        if row["tensor"] == "q" and row["path"] == "cached":
            place = (prefix_of(row), row["layer"], row["head"], row["position"], row["index"])
            queries[place] = float(row["value"])
    checked = 0
    for row in tables["attention.csv"]:
        if row["tensor"] == "scores" and row["path"] == "cached":
            at = (prefix_of(row), row["layer"], row["head"])
            score = sum(
                queries[(*at, row["query_position"], i)] * keys[(*at, row["key_position"], i)]
                for i in "01"
            ) / math.sqrt(2)
            assert math.isclose(score, float(row["value"]), rel_tol=1e-5, abs_tol=1e-5)
            checked += 1
    assert checked == 4 * 20 * 2 * 2


def test_payload_is_64_bytes_a_token(tables: dict[str, Rows]) -> None:
    payload: dict[Any, int] = {}
    for row in tables["cache_trace.csv"]:
        length = int(row["length_after"])
        assert row["k_shape"] == row["v_shape"] == row["expected_shape"] == f"(1, 2, {length}, 2)"
        assert int(row["length_before"]) == int(row["position"]) == length - 1
        assert int(row["payload_bytes"]) == 4 * int(row["payload_scalars"]) == 32 * length
        key = (prefix_of(row), length)
        payload[key] = payload.get(key, 0) + int(row["payload_bytes"])
    assert len(payload) == 40
    assert all(total == 64 * length for (_, length), total in payload.items())
    frozen = [row for row in tables["memory.csv"] if row["model"] == "frozen"]
    assert [int(row["measured_bytes"]) for row in frozen] == [0, 64, 128, 192, 256]


def test_stored_keys_and_values_are_as_far_off_as_the_trace_says(tables: dict[str, Rows]) -> None:
    values: dict[Any, dict[str, float]] = {}
    for row in tables["kv_values.csv"]:
        key = (prefix_of(row), row["tensor"], row["layer"], row["head"], row["position"])
        values.setdefault((*key, row["index"]), {})[row["path"]] = float(row["value"])
    for row in tables["cache_trace.csv"]:
        if int(row["length_after"]) == int(row["length"]):  # the whole prefix is stored
            for tensor in "kv":
                largest = max(
                    abs(pair["full"] - pair["cached"])
                    for key, pair in values.items()
                    if key[:3] == (prefix_of(row), tensor, row["layer"])
                )
                assert largest == float(row[f"{tensor}_max_error"])


def test_every_token_follows_from_its_uniform_number(tables: dict[str, Rows]) -> None:
    steps: dict[Any, Rows] = {}
    for row in tables["probabilities.csv"]:
        steps.setdefault((row["run"], row["path"], row["step"]), []).append(row)
    returned = {
        (row["run"], row["path"], row["returned_step"]): row["token"]
        for row in tables["traces.csv"]
        if row["returned"] == "true"
    }
    assert steps.keys() == returned.keys()
    for key, rows in steps.items():
        (chosen,) = (row for row in rows if row["chosen"] == "true")
        assert chosen["token"] == returned[key]
        assert math.isclose(sum(float(row["probability"]) for row in rows), 1)
        if key[0] != "sample":
            assert chosen["uniform"] == chosen["cdf_low"] == ""
            assert float(chosen["logit"]) == max(float(row["logit"]) for row in rows)
            assert chosen["state_before"] == chosen["state_after"]
            continue
        kept = [row for row in rows if row["kept"] == "true"]
        assert len(kept) == 3
        assert [row["cdf_low"] for row in kept[1:]] == [row["cdf_high"] for row in kept[:-1]]
        assert (float(kept[0]["cdf_low"]), float(kept[-1]["cdf_high"])) == (0, 1)
        assert float(chosen["cdf_low"]) <= float(chosen["uniform"]) < float(chosen["cdf_high"])
        assert chosen["state_before"] != chosen["state_after"]


def test_gate_figures_follow_from_the_other_files(tables: dict[str, Rows]) -> None:
    figure = {row["number"]: float(row["figure"]) for row in tables["acceptance_gate.csv"]}
    prefixes: dict[Any, bool] = {}
    for row in tables["prefix_equivalence.csv"]:
        passed = row["passed"] == "true"
        prefixes[prefix_of(row)] = prefixes.get(prefix_of(row), True) and passed
    assert figure["1"] == sum(prefixes.values()) == 16
    failures = tables["deliberate_failures.csv"]
    acting = [float(row["max_abs_error"]) for row in failures if row["can_act"] == "true"]
    assert figure["3"] == min(acting) > 1e-2
    assert len(acting) == 28
    assert figure["5"] == len(tables["stops.csv"]) == 6
    assert {row["stop_reason"] for row in tables["stops.csv"]} == {"eos", "context"}


def test_manifest_has_the_hash_and_row_count_of_every_file(
    shipped_files: dict[str, bytes], tables: dict[str, Rows]
) -> None:
    manifest = json.loads(shipped_files["manifest.json"])
    assert manifest["files"].keys() == shipped_files.keys() - {"manifest.json"}
    for name, entry in manifest["files"].items():
        data = shipped_files[name]
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["bytes"] == len(data)
        assert entry.get("rows") == (len(tables[name]) if name in tables else None)
    text = shipped_files["manifest.json"].decode()
    assert "created" not in manifest
    assert text.isascii()
    assert text.endswith("}\n")


def test_every_file_is_plain_utf8_with_line_feeds(shipped_files: dict[str, bytes]) -> None:
    for name, data in shipped_files.items():
        if name != "checkpoint.safetensors":
            assert not data.startswith(b"\xef\xbb\xbf")
            assert b"\r" not in data
            assert data.decode("utf-8").endswith("\n")


def test_no_cell_is_a_formula(tables: dict[str, Rows]) -> None:
    for rows in tables.values():
        for cell in (cell for row in rows for cell in row.values()):
            if cell.strip()[:1] in {"=", "+", "-", "@"}:
                float(cell)  # a number, not a formula
