"""``faults`` and ``audit --fault``: a kill matrix, one fault judged, and what cannot be judged."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import printed
from tests.random_models import random_checkpoint, random_tensors
from tinydec.__main__ import main
from tinydec.evidence import bundle
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import save_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.faults import FAULTS

PRIMES = ModelConfig(vocab_size=7, n_positions=5, n_embd=6, n_layer=2, n_head=2, n_inner=11)
#: One random checkpoint whose heads are far from uniform.
SHARP = ModelConfig(vocab_size=11, n_positions=9, n_embd=5, n_layer=3, n_head=1, n_inner=7)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed does not depend on the files, which take longer than the verdict."""
    monkeypatch.setattr(bundle, "bundle_files", lambda report: {"manifest.json": b"{}\n"})


def saved(folder: Path, checkpoint: Checkpoint) -> str:
    path = folder / "other.safetensors"
    save_checkpoint(checkpoint, path)
    return str(path)


def test_faults_then_replay_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "lab"
    text = printed(capsys, ["faults", "--out", str(out)])
    assert "42 of 42 faults caught at their own stage; 5 variants tried as well." in text
    assert "Without a fault: no finding in any of the six stages." in text
    assert "Fixture: strong; every head gets at least 0.5" in text
    assert text.endswith(f"Wrote 6 files to {out}.\nVerdict: pass\n")
    assert "FAIL" not in text
    with (out / "kill_matrix.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 47
    assert all(row["stage_found"] == row["stage_expected"] for row in rows)
    replayed = printed(capsys, ["replay", str(out)])
    assert replayed.endswith("own verdict: pass\nVerdict: pass\n")


def test_tampered_matrix_fails_the_replay(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "lab"
    printed(capsys, ["faults", "--out", str(out), "--dtype", "float64"])
    path = out / "kill_matrix.csv"
    path.write_bytes(path.read_bytes().replace(b"F13,doubled-uniformly,,2,2", b"F13,x,,2,2"))
    text = printed(capsys, ["replay", str(out)], code=1)
    assert "kill_matrix.csv, row 13, column name: expected doubled-uniformly, found x\n" in text


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_audit_names_the_stage_of_every_fault(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, fault: object
) -> None:
    assert isinstance(fault, type(FAULTS[0]))
    text = printed(capsys, ["audit", "--out", str(tmp_path / "a"), "--fault", fault.id], code=1)
    assert f"Switched on: {fault.id} {fault.name}" in text
    assert f"\nCaught by stage {fault.stage}, check " in text
    for label in ("where", "observed", "expected", "first difference", "guard, when on"):
        assert f"\n  {label}: " in text
    said = text.split("guard, when on:")[1].splitlines()[0]
    assert ("expected" in said) is (fault.guard is not None)
    causes = text.split("likely causes:")[1].splitlines()[0]
    assert f"{fault.id} {fault.name}" in causes
    verdicts = [line.split()[-2:] for line in text.splitlines() if line[:3].strip() in {*"123456"}]
    stages = verdicts[5:]  # five conditions, which judge the correct code, stand before
    assert verdicts[:5] == [words for words in verdicts[:5] if words[-1] == "pass"]
    assert all(words[-1] == "pass" for words in stages[: fault.stage - 1])
    assert stages[fault.stage - 1][0] == "FAIL"
    assert all(words == ["not", "judged"] for words in stages[fault.stage :])
    assert text.endswith("Verdict: FAIL\n")


def test_faulty_bundle_replays_with_its_verdict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "broken"
    arguments = ["audit", "--out", str(out), "--fault", "wrong-layer", "--fault", "F19"]
    assert "check cache.reads" in printed(capsys, arguments, code=1)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["run"]["faults"], manifest["run"]["guards_off"]) == (["F19"], ["layer"])
    assert manifest["passed"] is False
    replayed = printed(capsys, ["replay", str(out)])
    assert "The recorded audit's own verdict: FAIL\nVerdict: pass\n" in replayed


@pytest.mark.usefixtures("quick")
def test_two_faults_are_judged_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["audit", "--out", str(tmp_path / "a"), "--fault", "F36", "--fault", "F01"]
    text = printed(capsys, arguments, code=1)
    assert text.index("Switched on: F01") < text.index("Switched on: F36")
    assert "Caught by stage 3, check position.checkpoint" in text
    assert "none refuses F36" in text


@pytest.mark.parametrize("name", ["F43", "", "f19", "nothing"])
def test_unknown_fault_lists_the_valid_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    assert main(["audit", "--out", str(tmp_path / "a"), "--fault", name]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("tinydec: fault: expected one of F01 (stale-cache), F02 ")
    assert "F42 (rows-shifted-on-leave)" in line
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_fault_that_cannot_act_leaves_a_correct_session(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One head: its axes cannot be mistaken for those of another one."""
    path = saved(tmp_path, random_checkpoint(SHARP, 1))
    out = tmp_path / "a"
    arguments = ["audit", "--out", str(out), "--checkpoint", path, "--fault", "F15"]
    text = printed(capsys, arguments)
    assert "It cannot act here: the session is the correct one, and passes. F15 needs " in text
    assert text.endswith("Verdict: pass\n")
    assert printed(capsys, ["replay", str(out)]).endswith("Verdict: pass\n")


def flat(config: ModelConfig) -> Checkpoint:
    tensors = random_tensors(config, 3)
    for name, array in tensors.items():
        if ".c_attn." in name:
            array[..., : 2 * config.n_embd] = 0.0  # queries and keys: every head is uniform
    return Checkpoint.build(config, Vocabulary.numbered(config.vocab_size), tensors)


@pytest.mark.parametrize("command", ["audit", "faults"])
def test_weak_fixture_is_no_pass_and_says_why(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    out, path = tmp_path / "a", saved(tmp_path, flat(PRIMES))
    text = printed(capsys, [command, "--out", str(out), "--checkpoint", path], code=1)
    assert "Fixture: too weak, so no verdict on it means anything: attention of layer 0" in text
    assert text.endswith("Verdict: FAIL\n")
    assert "no verdict on it" not in printed(capsys, ["generate"])
    replayed = printed(capsys, ["replay", str(out)])
    assert "own verdict: FAIL\nVerdict: pass\n" in replayed


@pytest.mark.parametrize("config", [ModelConfig(2, 1, 2, 1, 1, 3), ModelConfig(1, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("command", [["audit"], ["audit", "--fault", "F25"], ["faults"]])
def test_smallest_checkpoints_get_a_verdict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, config: ModelConfig, command: list[str]
) -> None:
    out, path = tmp_path / "a", saved(tmp_path, random_checkpoint(config, 1))
    text = printed(capsys, [*command, "--out", str(out), "--checkpoint", path], code=1)
    assert "Fixture: too weak" in text
    assert "annot act here" in text or command == ["audit"]
    assert printed(capsys, ["replay", str(out)]).endswith("Verdict: pass\n")


@pytest.mark.parametrize("command", ["audit", "faults"])
def test_checkpoint_too_large_to_record_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    path = saved(tmp_path, random_checkpoint(replace(PRIMES, n_positions=1031), 1))
    assert main([command, "--out", str(tmp_path / "a"), "--checkpoint", path]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected at most 20000000 attention scores to record, found about" in line
    assert [entry.name for entry in tmp_path.iterdir()] == ["other.safetensors"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dtype", "float8"], "dtype: expected one of float16, float32, float64"),
        (["--tolerance", "0"], "tolerance: expected a finite number above 0"),
        (["--tolerance", "many"], "tolerance: expected a finite number"),
        (["--checkpoint", "missing.safetensors"], "missing.safetensors"),
        (["--fault", "F19"], "unrecognized arguments"),
    ],
)
def test_bad_options_of_faults_get_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    assert main(["faults", "--out", str(tmp_path / "a"), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert list(tmp_path.iterdir()) == []


def test_directory_that_is_not_empty_is_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("mine", encoding="utf-8")
    assert main(["faults", "--out", str(tmp_path)]) == 2
    assert "expected a new or empty directory" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]


def test_help_names_both(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, ["--help"])
    assert "python -m tinydec faults --out lab" in text
    assert "python -m tinydec audit --out broken --fault F19" in text
    assert "--fault ID" in printed(capsys, ["audit", "--help"])
