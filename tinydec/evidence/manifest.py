"""The manifest of a bundle: written, read back and checked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from tinydec.errors import InputError
from tinydec.runspec import RunSpec, check_integer, shown

FORMAT = 2
#: Kinds of bundles.
AUDIT, FAULTS = "audit", "faults"
MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint.safetensors"

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileEntry:
    """What the manifest records of one file; ``rows`` is None for the checkpoint."""

    sha256: str
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class Manifest:
    """Everything a replay needs besides the checkpoint.

    Attributes:
        kind: ``audit`` or ``faults``.
        run: the RunSpec.
        checkpoint_digest: of the checkpoint beside the manifest.
        dtype: number format of the arithmetic; also in ``run``.
        tolerance: the effective one; ``run`` may leave it to the dtype.
        passed: the verdict.
        code: version and source digest of the package that wrote the bundle.
        environment: what else the last bits may depend on.
        files: every other file by name.
        context_prompt: the prompt of an audit's run named ``context``.
        created: date and time, when one was given.
    """

    kind: str
    run: RunSpec
    checkpoint_digest: str
    dtype: str
    tolerance: float
    passed: bool
    code: Mapping[str, str]
    environment: Mapping[str, str]
    files: Mapping[str, FileEntry]
    context_prompt: tuple[str, ...] | None = None
    created: str | None = None

    def to_bytes(self) -> bytes:
        """Return the manifest as UTF-8 JSON with LF line ends."""
        values: dict[str, Any] = {"format": FORMAT}
        values |= {field.name: getattr(self, field.name) for field in fields(self)}
        values["run"] = self.run.to_dict()
        values["code"], values["environment"] = dict(self.code), dict(self.environment)
        values["files"] = {name: _plain(entry) for name, entry in self.files.items()}
        if self.context_prompt is not None:
            values["context_prompt"] = list(self.context_prompt)
        values = {name: value for name, value in values.items() if value is not None}
        return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_manifest(data: bytes) -> Manifest:
    """Read a manifest and check the type of every value.

    Raises:
        InputError: no JSON, an unknown or missing field, a wrong type.
    """
    try:
        values: Any = json.loads(data.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{MANIFEST}: expected JSON, found: {error}") from None
    try:
        return _manifest(values)
    except InputError as error:
        raise InputError(f"{MANIFEST}: {error}") from None


def _plain(entry: FileEntry) -> dict[str, Any]:
    values = {"sha256": entry.sha256, "bytes": entry.bytes}
    return values if entry.rows is None else values | {"rows": entry.rows}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a field that occurs twice")
    return values


def _manifest(values: Any) -> Manifest:
    optional = {"created", "context_prompt"}
    known = {"format", *(field.name for field in fields(Manifest))}
    found = _checked_object("the whole", values, known, optional)
    if type(found["format"]) is not int or found["format"] != FORMAT:
        raise InputError(f"format: expected {FORMAT}, found {shown(found['format'])}")
    for name, expected in _TYPES.items():
        if name in found and type(found[name]) is not expected:
            raise InputError(
                f"{name}: expected a {_TYPE_NAMES[expected]}, found {shown(found[name])}"
            )
    if found["kind"] not in (AUDIT, FAULTS):
        raise InputError(f"kind: expected {AUDIT} or {FAULTS}, found {shown(found['kind'])}")
    if ("context_prompt" in found) is not (found["kind"] == AUDIT):
        raise InputError("context_prompt: expected one in an audit alone, found another")
    return Manifest(
        kind=found["kind"],
        run=RunSpec.from_dict(found["run"]),
        checkpoint_digest=_checked_hash("checkpoint_digest", found["checkpoint_digest"]),
        dtype=found["dtype"],
        tolerance=found["tolerance"],
        passed=found["passed"],
        code=_checked_texts("code", found["code"]),
        environment=_checked_texts("environment", found["environment"]),
        files=_checked_files(found["files"]),
        context_prompt=_checked_prompt(found.get("context_prompt", ())),
        created=found.get("created"),
    )


def _checked_prompt(value: Any) -> tuple[str, ...] | None:
    if value == ():  # none at all
        return None
    # A RunSpec checks the prompt's words and reports what is wrong with them.
    return RunSpec(prompt=tuple(value) if isinstance(value, list) else value).prompt


_TYPES: dict[str, type] = {
    "kind": str,
    "dtype": str,
    "tolerance": float,
    "passed": bool,
    "created": str,
}
_TYPE_NAMES = {str: "string", float: "float", bool: "boolean"}


def _checked_object(what: str, values: Any, known: set[str], optional: set[str]) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise InputError(f"{what}: expected a JSON object, found {shown(values)}")
    for name in sorted(known - optional - values.keys()):
        raise InputError(f"{what}: expected the field {name!r}, found none")
    for name in sorted(values.keys() - known):
        raise InputError(f"{what}: expected no field {shown(name)}, found one")
    return values


def _checked_texts(what: str, values: Any) -> Mapping[str, str]:
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise InputError(f"{what}: expected a JSON object of strings, found {shown(values)}")
    return MappingProxyType(values)


def _checked_files(values: Any) -> Mapping[str, FileEntry]:
    if not isinstance(values, dict):
        raise InputError(f"files: expected a JSON object, found {shown(values)}")
    entries = {}
    for name, entry in values.items():
        what = f"files {shown(name)}"
        found = _checked_object(what, entry, {"sha256", "bytes", "rows"}, {"rows"})
        for count in ("bytes", "rows"):
            if count in found:
                check_integer(f"{what} {count}", found[count], 0)
        entries[name] = FileEntry(
            _checked_hash(f"{what} sha256", found["sha256"]), found["bytes"], found.get("rows")
        )
    return MappingProxyType(entries)


def _checked_hash(what: str, value: Any) -> str:
    if not isinstance(value, str) or _HASH.fullmatch(value) is None:
        raise InputError(f"{what}: expected 64 hexadecimal digits, found {shown(value)}")
    return value
