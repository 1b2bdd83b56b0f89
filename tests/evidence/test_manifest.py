"""The manifest: read back as written, and every wrong value refused in one line."""

import json
from typing import Any

import pytest

from tinydec.errors import InputError
from tinydec.evidence.manifest import read_manifest


def broken(files: dict[str, bytes], name: str, value: Any) -> bytes:
    return json.dumps(json.loads(files["manifest.json"]) | {name: value}).encode()


def test_manifest_comes_back_as_the_same_bytes(files: dict[str, bytes]) -> None:
    assert read_manifest(files["manifest.json"]).to_bytes() == files["manifest.json"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff", b"null", b"[]", b"3", b'"text"', b"[" * 100_000, b'{"a": 1, "a": 2}'],
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"manifest.json: .*expected") as caught:
        read_manifest(data)
    assert "\n" not in str(caught.value)


HASH = "0" * 64


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 1),
        ("format", True),
        ("format", "2"),
        ("kind", "audits"),
        ("kind", "faults"),
        ("kind", None),
        ("kind", ["audit"]),
        ("run", None),
        ("run", {"promt": []}),
        ("run", {"seed": -1}),
        ("run", {"policy": {"temperature": 0}}),
        ("context_prompt", []),
        ("context_prompt", "<bos>"),
        ("context_prompt", [1]),
        ("context_prompt", None),
        ("checkpoint_digest", "abc"),
        ("checkpoint_digest", None),
        ("checkpoint_digest", HASH.replace("0", "G")),
        ("dtype", 32),
        ("tolerance", "1e-5"),
        ("tolerance", 1),
        ("passed", "true"),
        ("code", []),
        ("code", {"version": 1}),
        ("environment", {"numpy": None}),
        ("created", 3),
        ("files", []),
        ("files", {"a": None}),
        ("files", {"a": {"sha256": HASH}}),
        ("files", {"a": {"sha256": HASH, "bytes": -1}}),
        ("files", {"a": {"sha256": HASH, "bytes": 1, "rows": "2"}}),
        ("files", {"a": {"sha256": HASH, "bytes": 1, "other": 2}}),
        ("files", {"a": {"sha256": 5, "bytes": 1}}),
        ("surprise", 1),
    ],
)
def test_wrong_value_is_refused(files: dict[str, bytes], name: str, value: Any) -> None:
    with pytest.raises(InputError, match=r"^manifest.json: .*expected") as caught:
        read_manifest(broken(files, name, value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["format", "kind", "run", "files", "tolerance", "environment"])
def test_missing_field_is_named(files: dict[str, bytes], name: str) -> None:
    values = json.loads(files["manifest.json"])
    del values[name]
    with pytest.raises(InputError, match=f"expected the field '{name}', found none"):
        read_manifest(json.dumps(values).encode())


def test_field_that_occurs_twice_is_refused(files: dict[str, bytes]) -> None:
    twice = files["manifest.json"].replace(b'"format": 2,', b'"format": 2, "format": 2,')
    with pytest.raises(InputError, match="found: a field that occurs twice"):
        read_manifest(twice)
