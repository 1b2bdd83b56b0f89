"""``train`` and ``memory``."""

from pathlib import Path

import pytest

from tests.command_line import printed
from tinydec.model.storage import load_checkpoint


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
