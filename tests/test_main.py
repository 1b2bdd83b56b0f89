"""The program as a whole: help, imports, and what stops a command."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import SAMPLED, printed
from tinydec import __main__ as program
from tinydec.__main__ import main
from tinydec.cli.parser import build_parser
from tinydec.model.storage import load_checkpoint, save_checkpoint

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


def test_core_libraries_that_are_missing_are_one_line(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-m", "tinydec", "generate"],  # -S: no site-packages
        cwd=repository, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tinydec: numpy and safetensors are not installed here: "
        'run "make run" once, then ". .venv/bin/activate"\n'
    )


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
