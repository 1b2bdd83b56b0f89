"""Bad input, as a user meets it: one line on standard error, exit code 2, nothing written."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from tests.cli.process import variables
from tinydec.__main__ import main
from tinydec.model.checkpoint import canonical_json
from tinydec.model.storage import FROZEN_PATH, load_checkpoint


def tinydec(
    arguments: Sequence[str], folder: Path, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder of its own."""
    settings: dict[str, Any] = {"capture_output": True, "text": True} | options
    command = [sys.executable, "-m", "tinydec", *arguments]
    return subprocess.run(command, check=False, cwd=folder, env=variables(), **settings)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def assert_refused(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tinydec: ")
    assert words in line
    assert "Traceback" not in line


def write_checkpoints(folder: Path) -> None:
    """Write one file for each way in which a checkpoint can be wrong."""
    frozen = load_checkpoint()
    header: dict[str, Any] = {
        "format": 1,
        "config": frozen.config.to_dict(),
        "vocabulary": frozen.vocabulary.to_dict(),
    }

    def write(name: str, changes: dict[str, Any], config: dict[str, Any] | None = None) -> None:
        tensors = {key: value for key, value in (dict(frozen.tensors) | changes).items()
                   if value is not None}  # fmt: skip
        named = header | {"config": header["config"] | (config or {})}
        data = save(tensors, metadata={"tinydec": canonical_json(named)})
        (folder / name).write_bytes(data)

    nan = np.array(frozen.tensors["wte.weight"])
    nan[3, 1] = np.nan
    write("good.safetensors", {})
    write("shape.safetensors", {"wpe.weight": np.zeros((4, 5), np.float32)})
    write("missing.safetensors", {"h.1.ln_2.bias": None})
    write("extra.safetensors", {"h.2.ln_1.bias": np.zeros(4, np.float32)})
    write("nan.safetensors", {"wte.weight": nan})
    write("config.safetensors", {}, {"n_layer": 3})
    write("heads.safetensors", {}, {"n_head": 3})
    (folder / "text.safetensors").write_text("no tensors here", encoding="utf-8")
    (folder / "cut.safetensors").write_bytes(FROZEN_PATH.read_bytes()[:-100])
    (folder / "empty.safetensors").write_bytes(b"")
    (folder / "file").write_text("mine", encoding="utf-8")
    (folder / "full").mkdir()
    (folder / "full" / "kept").write_text("mine", encoding="utf-8")
    (folder / "manifest").mkdir()
    (folder / "manifest" / "manifest.json").write_text("{", encoding="utf-8")


GENERATE = [
    (["--prompt", "<bos> Q"], "token: expected one of <bos> <eos> A B C D X Y, found 'Q'"),
    (["--prompt", ""], "prompt: expected at least one token, found none"),
    (["--prompt", "  "], "prompt: expected at least one token, found none"),
    (["--prompt", "<bos> A A A A"], "prompt: expected at most 4 tokens (the context), found 5"),
    (["--prompt", "\x1b[31m"], "token: expected one of"),
    (["--temperature", "0"], "temperature: expected a finite number above 0, found 0"),
    (["--temperature", "-1"], "temperature: expected a finite number above 0, found -1"),
    (["--temperature", "nan"], "temperature: expected a finite number, found 'nan'"),
    (["--temperature", "inf"], "temperature: expected a finite number, found 'inf'"),
    (["--temperature", "1e999"], "temperature: expected a finite number above 0, found inf"),
    (["--temperature", "1_0"], "temperature: expected a finite number, found '1_0'"),
    (["--temperature", "warm"], "temperature: expected a finite number, found 'warm'"),
    (["--temperature", ""], "temperature: expected a finite number, found ''"),
    (["--top-k", "0"], "top_k: expected an integer >= 1, found 0"),
    (["--top-k", "9"], "top_k: expected 1 to 8 (the vocabulary), found 9"),
    (["--top-k", "1.5"], "top_k: expected an integer, found '1.5'"),
    (["--top-k", "-1"], "top_k: expected an integer >= 1, found -1"),
    (["--top-k", "9" * 5000], "top_k: expected an integer, found"),
    (["--top-p", "0"], "top_p: expected a number above 0 and at most 1, found 0"),
    (["--top-p", "1.01"], "top_p: expected a number above 0 and at most 1, found 1.01"),
    (["--top-p", "-0.5"], "top_p: expected a number above 0 and at most 1, found -0.5"),
    (["--top-p", "nan"], "top_p: expected a finite number, found 'nan'"),
    (["--seed", "-1"], "seed: expected an integer >= 0, found -1"),
    (["--seed", "1.0"], "seed: expected an integer, found '1.0'"),
    (["--max-new-tokens", "0"], "max_new_tokens: expected an integer >= 1, found 0"),
    (["--stop-tokens", "Q"], "token: expected one of"),
    (["--dtype", "bf16"], "dtype: expected one of float16, float32, float64, found 'bf16'"),
    (["--policy", "beam"], "policy: expected one of greedy, sample, found 'beam'"),
    (["--checkpoint", "none.safetensors"], "expected a safetensors file, found none"),
    (["--checkpoint", "full"], "expected a safetensors file, found a directory"),
    (["--checkpoint", "text.safetensors"], "expected a whole safetensors file"),
    (["--checkpoint", "empty.safetensors"], "expected a whole safetensors file"),
    (["--checkpoint", "cut.safetensors"], "expected a whole safetensors file"),
    (["--checkpoint", "shape.safetensors"], "wpe.weight: expected shape (4, 4), found (4, 5)"),
    (["--checkpoint", "missing.safetensors"], "1 of them missing: h.1.ln_2.bias"),
    (["--checkpoint", "extra.safetensors"], "found 1 more: 'h.2.ln_1.bias'"),
    (["--checkpoint", "nan.safetensors"], "tensor wte.weight: expected finite values, found nan"),
    (["--checkpoint", "config.safetensors"], "missing: h.2.ln_1.weight"),
    (["--checkpoint", "heads.safetensors"], "config n_embd: expected a multiple of n_head = 3"),
    (["--checkpoint", ""], "expected a safetensors file"),
    (["--checkpoint", "two\nlines"], "expected a safetensors file, found none"),
    (["--no-such-option"], "unrecognized arguments: --no-such-option"),
    (["--temp", "1"], "unrecognized arguments: --temp 1"),
    (["--seed"], "argument --seed: expected one argument"),
    (["--dtype", ""], "dtype: expected one of float16, float32, float64, found ''"),
    (["--policy", ""], "policy: expected one of greedy, sample, found ''"),
    (["--prompt", "Q" * 5000], "found 'QQQ"),
]  # fmt: skip
OTHERS = [
    ([], "replay, faults, generate, train, memory, found none (try --help)"),
    (["dream"], "invalid choice: 'dream'"),
    (["audit"], "the following arguments are required: --out"),
    (["audit", "--out", "file"], "output file: expected a new or empty directory, found a file"),
    (["audit", "--out", "full"], "found a directory that is not empty"),
    (["audit", "--out", "."], "expected a new or empty directory, found"),
    (["audit", "--out", "none/new"], "expected a new or empty directory, found no folder"),
    (["audit", "--out", "file/new"], "output file/new: expected"),
    (["audit", "--out", "new", "--tolerance", "0"], "tolerance: expected a finite number above 0"),
    (["audit", "--out", "new", "--dtype", "int8"], "dtype: expected one of"),
    (["audit", "--out", "new", "--prompt", "Q"], "token: expected one of"),
    (["audit", "--out", "new", "--top-k", "9"], "top_k: expected 1 to 8"),
    (["audit", "--out", "new", "--checkpoint", "cut.safetensors"], "expected a whole safetensors"),
    (["replay"], "the following arguments are required: DIR"),
    (["replay", "none"], "bundle none: expected a directory, found none"),
    (["replay", "file"], "bundle file: expected a directory, found a file"),
    (["replay", "full"], "bundle full: expected a manifest.json, found none"),
    (["replay", "manifest"], "manifest.json: expected JSON"),
    (["train"], "the following arguments are required: --out"),
    (["train", "--out", "new", "--seed", "-1"], "training seed: expected an integer >= 0"),
    (["train", "--out", "new", "--seed", "x"], "seed: expected an integer, found 'x'"),
    (["train", "--out", "full"], "output full: expected a file to write, found a directory"),
    (["train", "--out", "none/new"], "output none/new: expected a folder that can be written"),
    (["train", "--out", "new", "--checkpoint", "none"], "expected a safetensors file, found none"),
    (["memory", "--model", "HAL"], "model: expected one of GPT-2 small"),
    (["memory", "--tokens", "5"], "tokens: expected a whole number of at least 1 and at most 4"),
    (["memory", "--tokens", "1.5"], "tokens: expected an integer, found '1.5'"),
    (["audit", "--out", "new", "--dtype", ""], "dtype: expected one of"),
    (["faults", "--out", "new", "--dtype", ""], "dtype: expected one of"),
    (["audit", "--out", "new", "--fault", ""], "fault: expected"),
    (["memory", "--batch", "0"], "batch: expected a whole number of at least 1, found 0"),
    (["memory", "--dtype", "bf16"], "dtype: expected one of float64"),
    (["memory", "--model", "GPT-2 small", "--checkpoint", "x"], "found both"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [*((["generate", *arguments], words) for arguments, words in GENERATE), *OTHERS],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_bad_input_gets_one_line_and_writes_nothing(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    write_checkpoints(tmp_path)
    before = snapshot(tmp_path)
    assert_refused(tinydec(arguments, tmp_path), words)
    assert snapshot(tmp_path) == before


def test_good_neighbours_of_the_bad_files_are_accepted(tmp_path: Path) -> None:
    write_checkpoints(tmp_path)
    done = tinydec(["generate", "--checkpoint", "good.safetensors", "--json"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["tokens"] == "<bos> A B D <eos>"


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/full and shell redirections")
@pytest.mark.parametrize(
    ("redirection", "words"),
    [
        ("> /dev/full", "expected one that can be written, found: No space left on device"),
        (">&-", "expected an open standard output, found none"),
    ],
)
@pytest.mark.parametrize("command", ["generate", "memory", "--help", "generate --help"])
def test_output_that_cannot_be_written_is_one_line(
    tmp_path: Path, command: str, redirection: str, words: str
) -> None:
    line = f'exec "{sys.executable}" -m tinydec {command} {redirection}'
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env=variables(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert_refused(done, words)


@pytest.mark.skipif(os.name != "posix", reason="needs a pipe whose reader has gone")
@pytest.mark.parametrize("command", ["generate", "--help"])
def test_closed_pipe_is_one_line(tmp_path: Path, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = tinydec(
            [command], tmp_path, capture_output=False, stdout=writer, stderr=subprocess.PIPE
        )
    finally:
        os.close(writer)
    done.stdout = ""
    assert_refused(done, "output: expected one that can be written, found: Broken pipe")


def test_error_line_survives_a_terminal_that_knows_only_ascii(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tinydec", "generate", "--prompt", "é 猫"],
        cwd=tmp_path, env=variables(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert_refused(done, "token: expected one of")


def test_error_line_is_never_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompt", "Q" * 5000]) == 2
    assert len(capsys.readouterr().err) < 200
