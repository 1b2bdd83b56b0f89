"""Options without a value, outputs that cannot be used, streams that are full or closed."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import variables
from tinydec.__main__ import main
from tinydec.cli import evidence, faults
from tinydec.cli.parser import read_options

VALUES = {
    "audit": ["prompt", "temperature", "top-k", "top-p", "seed", "dtype", "tolerance", "fault",
              "checkpoint", "out"],
    "replay": ["checkpoint"],
    "faults": ["dtype", "tolerance", "checkpoint", "out"],
    "generate": ["prompt", "policy", "temperature", "top-k", "top-p", "seed", "max-new-tokens",
                 "stop-tokens", "dtype", "checkpoint"],
    "train": ["seed", "checkpoint", "out"],
    "memory": ["model", "tokens", "batch", "dtype", "checkpoint"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"), [(c, n) for c, names in VALUES.items() for n in names]
)
def test_two_dashes_are_no_value(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    needed = {"replay": ["none"], "audit": ["--out", "a"], "faults": ["--out", "a"],
              "train": ["--out", "a"]}  # fmt: skip
    assert main([command, *needed.get(command, []), f"--{name}=--"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert "found" in line
    assert "'--'" in line
    assert list(tmp_path.iterdir()) == []


def test_faults_are_read_although_they_come_as_a_list() -> None:
    options = read_options(["audit", "--out", "a", "--fault", "F01", "--fault", "F02"])
    assert options.faults == ["F01", "F02"]


@pytest.mark.parametrize("command", ["audit", "faults", "train"])
def test_output_is_checked_before_anything_is_computed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def computed(*_: Any, **__: Any) -> None:
        raise AssertionError("computed before the output was checked")

    monkeypatch.setattr(evidence, "run_audit", computed)
    monkeypatch.setattr(faults, "run_faults", computed)
    monkeypatch.setattr("tinydec.training.train_to_file", computed)
    (tmp_path / "kept").write_text("mine", encoding="utf-8")
    out = tmp_path if command != "train" else tmp_path / "none" / "new"
    assert main([command, "--out", str(out)]) == 2
    assert "expected" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert main([command, "--out", str(tmp_path / "new")]) == 2
    assert "expected an open standard output" in capsys.readouterr().err


class Full(io.StringIO):
    """A stream with no room left."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--tolerance", "1e-9"], 1)])
def test_text_that_is_lost_after_the_files_were_written_changes_no_code(
    options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdout", Full())
    out = tmp_path / "new"
    assert main(["audit", "--out", str(out), *options]) == code
    files = len(list(out.iterdir()))
    assert capsys.readouterr().err == (
        "tinydec: output: expected one that can be written, found: No space left on device; "
        f"Wrote {files} files to {out}; exit code {code}\n"
    )


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/full and shell redirections")
@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&-", "> /dev/full 2> /dev/full"])
def test_full_or_closed_standard_error_keeps_the_code(tmp_path: Path, redirection: str) -> None:
    line = f'exec "{sys.executable}" -m tinydec generate --seed x {redirection}'
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=variables(), check=False)
    assert done.returncode == 2
