"""The commands: what they print, write and return."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec import __main__ as program
from tinydec.__main__ import main
from tinydec.cli.parser import build_parser
from tinydec.model.config import ModelConfig
from tinydec.model.storage import FROZEN_PATH, load_checkpoint, save_checkpoint
from tinydec.model.vocabulary import Vocabulary

SAMPLED = ["generate", "--policy", "sample", "--temperature", "1", "--top-k", "3", "--seed", "41"]
NO_PANDAS = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "plotly", "streamlit", "threadpoolctl"):
            raise ImportError(f"refused: {name}")
sys.meta_path.insert(0, Refuse())
from tinydec.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def printed(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def values(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> Any:
    return json.loads(printed(capsys, [*arguments, "--json"]))


# generate ---------------------------------------------------------------------------------------


def test_greedy_trace_is_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, ["generate", "--prompt", "<bos>", "--policy", "greedy"])
    assert "\n<bos> A B D <eos>\nStop reason: eos" in text
    assert "does not measure how good the language is" in text
    steps = [line.split() for line in text.splitlines() if line[:1].isdigit()][:4]
    assert [step[:5] for step in steps] == [
        ["0", "prefill", "0", "<bos>", "A"],
        ["1", "decode", "1", "A", "B"],
        ["2", "decode", "2", "B", "D"],
        ["3", "decode", "3", "D", "<eos>"],
    ]
    assert steps[-1][-1] == "eos"
    assert "4 of 4 inputs consumed, 4 tokens returned" in text


def test_sampled_trace_is_the_published_one_with_numbers_that_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = values(capsys, SAMPLED)
    assert found["tokens"] == "<bos> Y X Y <eos>"
    assert found["stop_reason"] == "eos"
    assert found["run"]["policy"] == {
        "kind": "sample", "temperature": 1.0, "top_k": 3, "top_p": None,
    }  # fmt: skip
    for step in found["steps"]:
        low, high = step["interval"]
        assert low <= step["uniform"] < high
        assert step["probability"] == step["probabilities"][step["returned_id"]] > 0
        assert len(step["kept"]) == 3
    states = [(s["state_before"]["state"], s["state_after"]["state"]) for s in found["steps"]]
    assert all(isinstance(state, str) for pair in states for state in pair)
    assert [after for _, after in states[:-1]] == [before for before, _ in states[1:]]
    text = printed(capsys, SAMPLED)
    assert "sample with temperature 1, top-k 3, seed 41" in text
    assert f"{found['steps'][0]['uniform']:.6f}" in text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("options", [[], SAMPLED[1:], ["--prompt", "<bos> X"]])
def test_cache_does_not_change_the_tokens(
    capsys: pytest.CaptureFixture[str], options: list[str], dtype: str
) -> None:
    arguments = ["generate", *options, "--dtype", dtype]
    cached, full = values(capsys, arguments), values(capsys, [*arguments, "--no-cache"])
    assert cached["token_ids"] == full["token_ids"]
    assert {step["phase"] for step in full["steps"]} == {"full"}
    assert [step["phase"] for step in cached["steps"]][:2] == ["prefill", "decode"]


def test_full_context_stops_with_context(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, ["generate", "--prompt", "<bos> A A A"])
    assert "Stop reason: context (all 4 positions are consumed, so Y cannot be)" in text
    assert "4 of 4 inputs consumed, 1 tokens returned; the last one was not consumed" in text


@pytest.mark.parametrize(
    ("options", "reason", "tokens"),
    [
        (["--max-new-tokens", "2"], "max_new_tokens (2 tokens were asked for)", "<bos> A B"),
        (["--stop-tokens", "B X"], "stop_token (the policy returned B)", "<bos> A B"),
    ],
)
def test_further_rules_stop_the_run(
    capsys: pytest.CaptureFixture[str], options: list[str], reason: str, tokens: str
) -> None:
    text = printed(capsys, ["generate", *options])
    assert f"\n{tokens}\nStop reason: {reason}." in text


def test_numbers_that_greedy_ignores_are_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, ["generate", "--policy", "greedy", "--top-k", "3"])
    assert "temperature, top-k and top-p change nothing" in text
    assert "<bos> A B D <eos>" in text
    assert "change nothing" not in printed(capsys, SAMPLED)


def test_token_that_controls_a_terminal_is_written_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = ModelConfig(vocab_size=3, n_positions=2, n_embd=2, n_layer=1, n_head=1, n_inner=3)
    vocabulary = Vocabulary(("a\x1b[31m", "b\x07", "c"))
    base = random_checkpoint(config, 3)
    path = tmp_path / "odd.safetensors"
    save_checkpoint(type(base).build(config, vocabulary, base.tensors), path)
    text = printed(capsys, ["generate", "--checkpoint", str(path)])
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "a\\x1b[31m" in text


def test_other_tokens_reach_a_terminal_that_knows_only_ascii(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = ModelConfig(vocab_size=2, n_positions=2, n_embd=2, n_layer=1, n_head=1, n_inner=3)
    base = random_checkpoint(config, 3)
    path = tmp_path / "cats.safetensors"
    save_checkpoint(type(base).build(config, Vocabulary(("猫", "é")), base.tensors), path)
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["generate", "--checkpoint", str(path)]) == 0
    assert b"\\u732b" in raw.getvalue()


# audit and replay -------------------------------------------------------------------------------


def test_audit_then_replay_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    text = printed(capsys, ["audit", "--out", str(out)])
    assert "16 of 16 prefixes pass (11 distinct, 40 runs)" in text
    assert text.endswith(f"Wrote 17 files to {out}.\nVerdict: pass\n")
    assert len(list(out.iterdir())) == 17
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


# train and memory -------------------------------------------------------------------------------


def test_training_writes_a_checkpoint_that_loads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "trained.safetensors"
    text = printed(capsys, ["train", "--seed", "3", "--out", str(out)])
    trained = load_checkpoint(out)
    assert f"Digest: {trained.digest}" in text
    assert "Trained 368 parameters from seed 3" in text
    assert "Compared with checkpoint " in text
    again = printed(capsys, ["train", "--seed", "3", "--out", str(out), "--checkpoint", str(out)])
    assert "the same, bit for bit" in again
    assert [path.name for path in tmp_path.iterdir()] == ["trained.safetensors"]


def test_memory_of_the_checkpoint_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, ["memory", "--tokens", "3", "--batch", "5"])
    assert "2 x 2 x 5 x 2 x 3 x 2 = 240 scalars" in text
    assert "240 scalars x 4 bytes = 960 bytes" in text
    assert "Measured: 960 bytes of arrays, pass" in text
    assert "Measured: 256 bytes of arrays, pass" in printed(capsys, ["memory"])
    half = printed(capsys, ["memory", "--dtype", "float16"])
    assert "Measured: 128 bytes of arrays, pass" in half


@pytest.mark.parametrize("options", [["--dtype", "int8"], ["--batch", "1000000000"]])
def test_memory_that_cannot_be_measured_says_so(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert "Measured: not here" in printed(capsys, ["memory", *options])


def test_memory_of_a_preset(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(
        capsys,
        [
            "memory",
            "--model",
            "llama-2-7b",
            "--tokens",
            "4096",
            "--batch",
            "1",
            "--dtype",
            "float16",
        ],
    )
    # 2 x 32 layers x 32 heads x 4096 tokens x 128 x 2 bytes = 2 GiB
    assert "= 2147483648 bytes (2 GiB)" in text
    assert text.startswith("Llama-2-7B (not verified)")


# The program ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "replay", "generate", "train", "memory"])
def test_help_shows_an_example_that_parses(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    text = printed(capsys, [command, "--help"])
    assert "--checkpoint FILE" in text
    assert "Exit codes: 0 pass, 1 fail, 2 bad input." in text
    example = text.split("Example:\n  python -m tinydec ")[1].splitlines()[0]
    options = build_parser().parse_args(example.replace("'", "").split())
    assert options.command == command
    assert f"python -m tinydec {command}" in printed(capsys, ["--help"])


@pytest.mark.parametrize("arguments", [SAMPLED, ["memory"], ["generate", "--json"], ["--version"]])
def test_generation_and_memory_need_no_pandas(repository: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_PANDAS, *arguments],
        cwd=repository, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["audit", "--out", "x"], ["replay", "x"]])
def test_tables_without_pandas_are_refused_in_one_line(
    repository: Path, tmp_path: Path, arguments: list[str]
) -> None:
    code = f"import sys; sys.path.insert(0, {str(repository)!r})" + NO_PANDAS
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"tinydec: {arguments[0]}: expected pandas to be installed, found none\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "tinydec: interrupted\n"),
        (MemoryError(), 2, "tinydec: memory: expected enough for this input, found too little\n"),
    ],
)
def test_what_stops_a_command_is_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    line: str,
) -> None:
    def stop(_options: Any) -> Any:
        raise error

    monkeypatch.setitem(program._COMMANDS, "memory", stop)
    assert main(["memory"]) == code
    assert capsys.readouterr().err == line


def test_decoder_that_overflows_is_refused_without_a_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    frozen = load_checkpoint()
    huge = dict(frozen.tensors) | {"ln_f.weight": np.full(4, 3e38, np.float32)}
    path = tmp_path / "huge.safetensors"
    save_checkpoint(frozen.with_tensors(huge), path)
    assert main(["generate", "--checkpoint", str(path)]) == 2
    error = capsys.readouterr().err
    assert error == "tinydec: logits: expected finite values, found NaN or infinity\n"
