"""``generate``: traces, reasons, and what reaches a terminal."""

import io
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.command_line import SAMPLED, printed, values
from tests.random_models import random_checkpoint
from tinydec.__main__ import main
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint, save_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import RunSpec
from tinydec.ui.domains import Limits
from tinydec.ui.pages import PAGES
from tinydec.ui.parameters import read_query, settle


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


OPTIONS = [
    [],
    SAMPLED[1:],
    ["--prompt", "<bos> A", "--policy", "sample", "--temperature", "0.1", "--top-p", "0.9"],
    ["--no-cache", "--dtype", "float64", "--seed", "7", "--max-new-tokens", "2"],
    ["--stop-tokens", "B X", "--policy", "sample", "--top-k", "2"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_link_to_the_app_opens_the_same_run(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    last = printed(capsys, ["generate", *options]).splitlines()[-1]
    path, _, query = last.removeprefix("In the app: ").partition("?")
    assert path in {f"/{page.url_path}" for page in PAGES}
    limits = Limits.of(load_checkpoint())
    reading = read_query(parse_qs(query, keep_blank_values=True), limits)
    assert reading.notes == ()
    wanted = values(capsys, ["generate", *options])["run"]
    assert settle(reading.values, limits).spec == RunSpec.from_dict(wanted)


def test_another_decoder_has_no_link(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_checkpoint(random_checkpoint(ModelConfig(3, 2, 2, 1, 1, 3), 3), path)
    assert "In the app" not in printed(capsys, ["generate", "--checkpoint", str(path)])
