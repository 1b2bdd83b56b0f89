"""``audit`` and ``replay``: a bundle written, replayed, tampered with."""

import json
from pathlib import Path

import pytest

from tests.command_line import printed
from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import FROZEN_PATH, save_checkpoint


def test_audit_then_replay_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    text = printed(capsys, ["audit", "--out", str(out)])
    assert "16 of 16 prefixes pass (11 distinct, 40 runs)" in text
    assert text.endswith(f"Wrote 21 files to {out}.\nVerdict: pass\n")
    assert len(list(out.iterdir())) == 21
    assert "23.0252" in text
    replayed = printed(capsys, ["replay", str(out)])
    assert replayed.endswith("Verdict: pass\n")
    assert "FAIL" not in replayed
    assert printed(capsys, ["replay", str(out), "--checkpoint", str(FROZEN_PATH)])


def test_failed_audit_is_written_and_returns_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "evidence"
    text = printed(capsys, ["audit", "--out", str(out), "--tolerance", "1e-9"], code=1)
    assert text.endswith("Verdict: FAIL\n")
    assert "0 of 16 prefixes pass" in text
    replayed = printed(capsys, ["replay", str(out)])
    assert "The recorded audit's own verdict: FAIL" in replayed
    assert replayed.endswith("Verdict: pass\n")


def test_audit_records_its_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    options = ["--dtype", "float64", "--seed", "7", "--temperature", "0.5", "--top-k", "2",
               "--top-p", "0.9", "--prompt", "<bos> X", "--tolerance", "1e-9"]  # fmt: skip
    printed(capsys, ["audit", "--out", str(out), *options])
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    run = manifest["run"]
    assert (run["dtype"], run["seed"], run["tolerance"]) == ("float64", 7, 1e-9)
    assert run["prompt"] == ["<bos>", "X"]
    assert run["policy"] == {"kind": "sample", "temperature": 0.5, "top_k": 2, "top_p": 0.9}
    assert printed(capsys, ["replay", str(out)]).endswith("Verdict: pass\n")


def test_same_bytes_whether_the_checkpoint_is_named_or_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    printed(capsys, ["audit", "--out", str(tmp_path / "a")])
    printed(capsys, ["audit", "--out", str(tmp_path / "b"), "--checkpoint", str(FROZEN_PATH)])
    files = [{p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in "ab"]
    assert files[0] == files[1]


def test_replay_names_the_first_difference_and_returns_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "evidence"
    printed(capsys, ["audit", "--out", str(out)])
    path = out / "stops.csv"
    path.write_bytes(path.read_bytes().replace(b"context,0", b"eos,0", 1))
    text = printed(capsys, ["replay", str(out)], code=1)
    assert (
        "First difference: stops.csv, row 5, column stop_reason: expected context, found eos\n"
        in text
    )
    assert text.endswith("Verdict: FAIL\n")
    failed = [line.split() for line in text.splitlines() if line.endswith("  FAIL")]
    assert [words[0] for words in failed] == ["stops.csv"]


def test_replay_with_another_checkpoint_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, other = tmp_path / "evidence", tmp_path / "other.safetensors"
    printed(capsys, ["audit", "--out", str(out)])
    save_checkpoint(random_checkpoint(ModelConfig(7, 5, 6, 2, 2, 11), 3), other)
    text = printed(capsys, ["replay", str(out), "--checkpoint", str(other)], code=1)
    assert "First difference: checkpoint.safetensors: expected the digest" in text
