"""The lesson on policies through AppTest: one fixed row, one draw, moved sliders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.lesson_page import odd_checkpoints, open_page, sound, texts
from tinydec import ui
from tinydec.evidence import policy_tables
from tinydec.evidence.csv_format import read_csv
from tinydec.generation.generate import generate
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec

pytestmark = pytest.mark.filterwarnings("default")

PAGE = "pages/decoding_policy.py"


def visit(repository: Path, upload: Checkpoint | None = None, /, **query: str) -> AppTest:
    return open_page(repository, PAGE, query, upload)


SAMPLED = {"policy": "sample", "top_k": "3"}


def button(app, label: str):
    return next(b for b in app.button if b.label == label)


def said(app) -> list[str]:
    return [t.value for t in app.text]


def test_draw_is_numpys_and_falls_into_its_interval(repository: Path) -> None:
    rng = np.random.default_rng(41)
    app = visit(repository, **SAMPLED)
    for step in range(4):
        assert f"u = {rng.random():.4f} &lt; " in texts(app)
        app.number_input(key="step").set_value(min(step + 1, 3)).run()
    sound(app)


def test_near_tie_is_one_click_away_and_its_gap_is_said(repository: Path) -> None:
    app = visit(repository)
    button(app, "Near-tie: C or D").click().run()
    assert app.session_state["prompt"] == "<bos> A B"
    row = generate(load_checkpoint(), RunSpec(prompt=("<bos>", "A", "B"))).steps[0].selection.logits
    gap = float(row[5]) - float(row[4])
    assert f"D leads C by {ui.digits(gap, 3)} logits. A near-tie: greedy always takes D." in said(
        app
    )


def test_sample_and_next_draw_set_the_shared_controls(repository: Path) -> None:
    app = visit(repository)
    button(app, "Sample").click().run()
    assert (app.session_state["policy"], app.session_state["top_k"]) == ("sample", 3)
    for step in (1, 2, 3):
        button(app, "Next draw").click().run()
        assert app.session_state["step"] == step
    button(app, "First draw").click().run()
    assert app.session_state["step"] == 0
    sound(app)


def test_moved_slider_leaves_the_generator_as_it_was(repository: Path) -> None:
    app = visit(repository, **SAMPLED)
    assert any(t.startswith("Move a slider") for t in said(app))
    app.slider(key="temperature").set_value(5.0).run()
    line = next(t for t in said(app) if t.startswith("You moved the policy"))
    assert "from sample, temperature 1, top-k 3 to sample, temperature 5, top-k 3" in line
    assert "0 numbers consumed" in line
    app.number_input(key="seed").set_value(42).run()
    line = next(t for t in said(app) if t.startswith("Seed or step moved"))
    assert "another generator state" in line


def test_stages_and_record_come_from_the_core(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr(
        ui, "download", lambda label, data, name, *, key: taken.__setitem__(name, data)
    )
    visit(repository, prompt="<bos> Y", temperature="2", step="1", **SAMPLED)
    stages = read_csv(taken["stages.csv"](), policy_tables.STAGES)
    row = generate(load_checkpoint(), RunSpec(prompt=("<bos>", "Y"))).steps[0].selection.logits
    assert stages["logit"].tolist() == row.tolist()
    weights = np.exp(row.astype(float) / 2)
    np.testing.assert_allclose(stages["softmax"], weights / weights.sum(), rtol=1e-12)
    assert stages["drawn"].sum() == 1000
    record = read_csv(taken["draw_record.csv"](), policy_tables.RECORD)
    values = dict(zip(record["what"], record["value"], strict=True))
    assert values["uniform number u"] == repr(float(np.random.default_rng(41).random(2)[1]))
    others = read_csv(taken["other_policies.csv"](), policy_tables.OTHER_POLICIES)
    assert others["same state before"].all()


def test_row_does_not_depend_on_the_policy(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr(
        ui, "download", lambda label, data, name, *, key: taken.__setitem__(name, data)
    )
    rows = []
    for query in ({}, SAMPLED, {"prompt": "<bos> A"}):
        visit(repository, **query)
        rows.append(read_csv(taken["stages.csv"](), policy_tables.STAGES)["logit"].tolist())
    assert rows[0] == rows[1] != rows[2]


@pytest.mark.parametrize("policy", ["greedy", "sample"])
@pytest.mark.parametrize("name", list(odd_checkpoints()))
def test_other_checkpoints_have_policies_too(repository: Path, name: str, policy: str) -> None:
    app = visit(repository, odd_checkpoints()[name], policy=policy, top_p="0.5")
    sound(app)
    assert len(app.get("plotly_chart")) == 1


@pytest.mark.parametrize(
    "query",
    [
        {"prompt": "<bos> A B D"},
        {"cache": "false", "dtype": "float16", "step": "3"},
        {"policy": "sample", "temperature": "0.05", "top_k": "1", "top_p": "0.05"},
        {"policy": "sample", "temperature": "5", "dtype": "float64", "seed": str(2**53 - 1)},
        {"policy": "sample", "top_k": "8", "top_p": "1", "step": "3"},
        {"policy": "", "temperature": "nan", "seed": "1e400"},
    ],
)
def test_ends_of_the_controls_give_a_page(repository: Path, query: dict[str, str]) -> None:
    sound(visit(repository, **query))
