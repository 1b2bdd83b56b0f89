"""The lesson on the loop through AppTest: steps, stop reasons, both paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.lesson_page import odd_checkpoints, open_page, sound, texts
from tinydec import ui
from tinydec.evidence import loop_tables
from tinydec.evidence.csv_format import read_csv
from tinydec.generation.generate import generate
from tinydec.generation.stopping import STOP_REASONS
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec

pytestmark = pytest.mark.filterwarnings("default")

PAGE = "pages/generation_loop.py"


def visit(repository: Path, upload: Checkpoint | None = None, /, **query: str) -> AppTest:
    return open_page(repository, PAGE, query, upload)


def button(app, label: str):
    return next(b for b in app.button if b.label == label)


def stop_line(app) -> str:
    return next(t.value for t in app.text if t.value.startswith("This run stops"))


@pytest.mark.parametrize("reason", STOP_REASONS)
def test_every_stop_reason_is_one_click_away(repository: Path, reason: str) -> None:
    app = visit(repository, policy="sample", seed="7", max_new_tokens="2")
    button(app, reason).click().run()
    sound(app)
    assert f"with {reason}:" in stop_line(app)


def test_presets_undo_each_other(repository: Path) -> None:
    app = visit(repository)
    for reason in (*STOP_REASONS, *STOP_REASONS[::-1]):
        button(app, reason).click().run()
        assert f"with {reason}:" in stop_line(app)


def test_back_and_step_walk_through_the_run(repository: Path) -> None:
    app = visit(repository, step="1")
    button(app, "Step").click().run()
    assert app.session_state["step"] == 2
    assert "position 2, highest 5.294) = D" in texts(app)
    button(app, "Back").click().run()
    button(app, "Back").click().run()
    assert app.session_state["step"] == 0
    assert button(app, "Back").disabled
    sound(app)


def test_step_beyond_the_run_is_said(repository: Path) -> None:
    app = visit(repository, step="3", max_new_tokens="1")
    sound(app)
    assert "this run has 1 step, so step 0 is shown" in texts(app)


@pytest.mark.parametrize("cache", ["true", "false"])
def test_both_paths_are_shown_to_be_the_same(repository: Path, cache: str) -> None:
    app = visit(repository, cache=cache, policy="sample", top_k="3")
    shown = [t.value for t in app.text]
    assert any(t.startswith("The same tokens, the same draws and the same stop") for t in shown)


def test_tables_are_those_of_the_core(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr(
        ui, "download", lambda label, data, name, *, key: taken.__setitem__(name, data)
    )
    visit(repository, prompt="<bos> X")
    checkpoint = load_checkpoint()
    trace = generate(checkpoint, RunSpec(prompt=("<bos>", "X")))
    turns = read_csv(taken["turns.csv"](), loop_tables.TURNS)
    assert turns.equals(loop_tables.turns(checkpoint.vocabulary, trace))
    rows = read_csv(taken["logit_rows.csv"](), loop_tables.LOGIT_ROWS)
    assert rows["logit"].tolist() == [
        value for step in trace.steps for value in step.selection.logits.tolist()
    ]
    paths = read_csv(taken["paths.csv"](), loop_tables.PATHS)
    assert paths["same token"].all()
    other = generate(checkpoint, RunSpec(prompt=("<bos>", "Y")))
    assert not turns.equals(loop_tables.turns(checkpoint.vocabulary, other))


@pytest.mark.parametrize("name", list(odd_checkpoints()))
def test_other_checkpoints_run_too(repository: Path, name: str) -> None:
    app = visit(repository, odd_checkpoints()[name])
    sound(app)
    for reason in STOP_REASONS:
        button(app, reason).click().run()
        sound(app)


@pytest.mark.parametrize(
    "query",
    [
        {"prompt": "<bos> A B D"},
        {"cache": "false", "dtype": "float16", "step": "3"},
        {"policy": "sample", "temperature": "0.05", "top_k": "1", "top_p": "0.05"},
        {"policy": "sample", "temperature": "5", "dtype": "float64", "seed": str(2**53 - 1)},
        {"max_new_tokens": "4", "stop_tokens": "<bos> <eos> A B C D X Y"},
        {"step": "-1", "max_new_tokens": "0", "policy": "best"},
    ],
)
def test_ends_of_the_controls_give_a_page(repository: Path, query: dict[str, str]) -> None:
    sound(visit(repository, **query))
