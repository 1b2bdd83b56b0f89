"""A bundle: the same bytes every time, and a directory that is written whole or not at all."""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tinydec.errors import InputError
from tinydec.evidence import bundle
from tinydec.evidence.audit import AuditReport
from tinydec.evidence.bundle import bundle_files, bundle_zip_bytes, check_output, write_bundle
from tinydec.evidence.registry import TABLES
from tinydec.model.storage import FROZEN_PATH, load_checkpoint

HASHES = """
import hashlib, json
from tinydec.evidence.audit import run_audit
from tinydec.evidence.bundle import bundle_files, bundle_zip_bytes
from tinydec.model.storage import load_checkpoint
files = bundle_files(run_audit(load_checkpoint()))
files["zip"] = bundle_zip_bytes(files)
print(json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in files.items()}))
"""
SMALL = {"a.csv": b"x\n1\n", "manifest.json": b"{}\n"}


def hashes_in_a_new_process(seed: str, folder: Path) -> dict[str, str]:
    environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", HASHES],
        capture_output=True, text=True, check=True, env=environment, cwd=folder,
    )  # fmt: skip
    result: dict[str, str] = json.loads(done.stdout)
    return result


def test_three_processes_write_the_same_bytes(
    shipped_files: dict[str, bytes], repository: Path
) -> None:
    one, other = (hashes_in_a_new_process(seed, repository) for seed in ("1", "2"))
    assert one == other
    files = shipped_files | {"zip": bundle_zip_bytes(shipped_files)}
    assert one == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_time_is_written_only_when_it_is_given(
    report: AuditReport, shipped_files: dict[str, bytes]
) -> None:
    stamped = bundle_files(report, created="2024-02-29T12:00:00Z")
    assert json.loads(stamped["manifest.json"])["created"] == "2024-02-29T12:00:00Z"
    changed = {name for name in stamped if stamped[name] != shipped_files[name]}
    assert changed == {"manifest.json"}


def test_bundle_holds_every_table_and_the_checkpoint(shipped_files: dict[str, bytes]) -> None:
    assert set(shipped_files) == {*TABLES, "manifest.json", "checkpoint.safetensors"}
    assert shipped_files["checkpoint.safetensors"] == FROZEN_PATH.read_bytes()


def test_manifest_records_what_the_run_depends_on(
    report: AuditReport, shipped_files: dict[str, bytes]
) -> None:
    manifest = json.loads(shipped_files["manifest.json"])
    assert manifest["run"] == report.spec.to_dict()
    assert manifest["checkpoint_digest"] == load_checkpoint().digest
    assert (manifest["dtype"], manifest["tolerance"], manifest["passed"]) == ("float32", 1e-5, True)
    assert manifest["context_prompt"] == ["<bos>", "A", "A", "A"]
    assert set(manifest["environment"]) == {"python", "numpy", "blas", "platform"}
    assert set(manifest["code"]) == {"version", "source_sha256"}


def test_zip_holds_the_same_files_whatever_their_order(shipped_files: dict[str, bytes]) -> None:
    data = bundle_zip_bytes(shipped_files)
    assert data == bundle_zip_bytes(dict(reversed(shipped_files.items())))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name) for name in archive.namelist()}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert found == {f"tinydec-evidence/{name}": d for name, d in shipped_files.items()}


@pytest.mark.parametrize("exists", [False, True])
def test_directory_is_made_or_an_empty_one_replaced(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "evidence"
    if exists:
        target.mkdir()
    write_bundle(SMALL, target)
    assert {p.name: p.read_bytes() for p in target.iterdir()} == SMALL
    assert [p.name for p in tmp_path.iterdir()] == ["evidence"]
    assert target.stat().st_mode & 0o777 == 0o755


def test_link_to_an_empty_directory_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_bundle(SMALL, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert {p.name for p in (tmp_path / "real").iterdir()} == set(SMALL)


def refused_paths(folder: Path) -> dict[str, Path]:
    (folder / "file").write_text("mine", encoding="utf-8")
    (folder / "full").mkdir()
    (folder / "full" / "kept").write_text("mine", encoding="utf-8")
    (folder / "loop").symlink_to(folder / "loop")
    return {
        "a file": folder / "file",
        "not empty": folder / "full",
        "no folder": folder / "missing" / "evidence",
        "Not a directory|no folder": folder / "file" / "evidence",
        "found": folder / "loop" / "evidence",
        "null": folder / "a\0b",
        "too long": folder / ("n" * 300),
    }


@pytest.mark.parametrize("index", range(7))
def test_path_that_cannot_become_a_bundle_is_refused_in_one_line(
    tmp_path: Path, index: int
) -> None:
    words, path = list(refused_paths(tmp_path).items())[index]
    before = sorted(tmp_path.rglob("*"))
    for refuse in (lambda: check_output(path), lambda: write_bundle(SMALL, path)):
        with pytest.raises(InputError, match=words) as caught:
            refuse()
        assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "full" / "kept").read_text(encoding="utf-8") == "mine"


def test_current_directory_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="found the current directory"):
        check_output(Path())


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    original = Path.write_bytes

    def write(path: Path, data: bytes) -> int:
        if path.name == "manifest.json":
            raise error
        return original(path, data)

    monkeypatch.setattr(Path, "write_bytes", write)
    expected = InputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_bundle(SMALL, tmp_path / "evidence")
    assert list(tmp_path.iterdir()) == []


def test_directory_filled_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "evidence"
    target.mkdir()
    original = bundle.check_output

    def check_then_fill(directory: Path) -> Any:
        found = original(directory)
        (target / "other").write_text("theirs", encoding="utf-8")
        return found

    monkeypatch.setattr(bundle, "check_output", check_then_fill)
    with pytest.raises(InputError, match="expected a directory that can be written"):
        write_bundle(SMALL, target)
    assert [p.name for p in target.iterdir()] == ["other"]
    assert [p.name for p in tmp_path.iterdir()] == ["evidence"]
