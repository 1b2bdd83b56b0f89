"""The page of memory and cost through AppTest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.app.page_checks import html, open_page, sound, take_downloads
from tests.random_models import random_checkpoint
from tinydec.__main__ import main
from tinydec.evidence.cost_tables import REAL_MODELS, WORK
from tinydec.evidence.csv_format import read_csv
from tinydec.memory import generation_work, load_presets, memory_report, requests_that_fit
from tinydec.memory.measured import decoder_sizes
from tinydec.memory.shapes import SHAPES
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.ui.exercises.catalogue import EXERCISES
from tinydec.ui.memory.controls import BATCHES
from tinydec.ui.memory.models import BLOCKS, GIBS, TOKENS
from tinydec.ui.memory.views import VIEWS
from tinydec.ui.memory.work import LENGTHS

pytestmark = pytest.mark.filterwarnings("default")

FROZEN = load_checkpoint()


def open_view(view: str, query: dict[str, str] | None = None, **options):
    return open_page("memory", {"mem_view": view} | (query or {}), **options)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_a_contract_a_picture_a_table_and_exercises(view: str) -> None:
    app = open_view(view)
    sound(app)
    drawn = html(app)
    assert drawn.count('class="td-contract"') == 1
    assert "<table>" in drawn
    assert "Look for:" in drawn
    assert len(app.get("plotly_chart")) == 1
    titles = [e.title for e in EXERCISES if e.key.startswith("memory.")]
    assert [h.value for h in app.header if h.value in titles] == titles
    assert len(titles) == 3


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, "2 · 2 · 1 · 2 · 1 · 2 = 16 scalars\n16 scalars · 4 bytes = 64 bytes"),
        ({"step": "3"}, "2 · 2 · 1 · 2 · 4 · 2 = 64 scalars\n64 scalars · 4 bytes = 256 bytes"),
        ({"prompt": "<bos> A A A"}, "64 scalars · 4 bytes = 256 bytes"),
        ({"dtype": "float16", "step": "1"}, "32 scalars · 2 bytes = 64 bytes"),
        ({"mem_batch": "8"}, "2 · 2 · 8 · 2 · 1 · 2 = 128 scalars"),
    ],
)
def test_formula_holds_the_numbers_of_the_run(query: dict[str, str], numbers: str) -> None:
    app = open_view("Payload", query)
    sound(app)
    assert numbers in html(app)


def test_payload_line_is_64_bytes_for_each_token() -> None:
    drawn = html(open_view("Payload"))
    assert "on the blue line 64 T." in drawn
    assert "✗" not in drawn


def test_weights_too_large_for_float16_leave_the_other_formats() -> None:
    checkpoint = load_checkpoint()
    wte = checkpoint.tensors["wte.weight"].copy()
    wte[3, 1] = 70_000.0  # float16 ends at 65 504
    large = checkpoint.with_tensors(dict(checkpoint.tensors) | {"wte.weight": wte})
    app = open_view("Payload", uploaded=large)
    sound(app)
    assert any("too large for float16: there" in c.value for c in app.caption)
    drawn = html(app)
    assert "float32, bytes" in drawn
    assert "float64, bytes" in drawn
    assert "float16, bytes" not in drawn
    assert not any("too large" in c.value for c in open_view("Payload").caption)


def test_a_run_without_a_cache_says_that_it_keeps_nothing() -> None:
    captions = [c.value for c in open_view("Payload", {"cache": "false"}).caption]
    assert any("keeps 0 bytes" in text for text in captions)
    assert not any("keeps 0 bytes" in c.value for c in open_view("Payload").caption)


def test_memory_csv_is_that_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    taken = take_downloads(monkeypatch)
    open_view("Payload", {"dtype": "float64"})
    assert main(["audit", "--out", str(tmp_path / "bundle"), "--dtype", "float64"]) == 0
    assert taken["memory.csv"]() == (tmp_path / "bundle" / "memory.csv").read_bytes()


def test_ends_of_every_control_give_a_page() -> None:
    app = open_view("Payload")
    for batch in (BATCHES[0], BATCHES[-1]):
        app.segmented_control(key="mem_batch").set_value(batch).run()
        sound(app)
    for dtype in ("float16", "float64"):
        app.segmented_control(key="_mem_dtype").set_value(dtype).run()
        sound(app)
        assert app.session_state["dtype"] == dtype
    app = open_view("Work")
    for shape in ("this checkpoint", *SHAPES):
        app.selectbox(key="mem_shape").set_value(shape).run()
        for prompt in (LENGTHS[0], LENGTHS[-1]):
            for new in (LENGTHS[0], LENGTHS[-1]):
                app.select_slider(key="mem_prompt").set_value(prompt)
                app.select_slider(key="mem_new").set_value(new).run()
                sound(app)
    app = open_view("Real models")
    for tokens in (TOKENS[0], TOKENS[-1]):
        for gib in (GIBS[0], GIBS[-1]):
            for block in (next(iter(BLOCKS)), list(BLOCKS)[-1]):
                app.select_slider(key="mem_tokens").set_value(tokens)
                app.select_slider(key="mem_gib").set_value(gib)
                app.segmented_control(key="mem_block").set_value(block).run()
                sound(app)


def test_every_model_can_be_chosen_and_an_unverified_one_says_so() -> None:
    app = open_view("Real models")
    presets = load_presets()
    for name, layout in presets.items():
        app.selectbox(key="mem_model").set_value(name).run()
        sound(app)
        assert ("not verified" in html(app)) == (not layout.verified)
        report = memory_report(name, min(4096, layout.max_context))
        assert f"{report.bytes} bytes" in re.sub(r"(?<=\d) (?=\d)", "", html(app))
    assert len(presets) == 30


def test_requests_that_fit_are_those_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    open_view("Real models", {"mem_tokens": "2048", "mem_gib": "80", "mem_block": "16"})
    found = read_csv(taken["real_models.csv"](), REAL_MODELS)
    for row in found.itertuples():
        layout = load_presets()[str(row.model)]
        expected = requests_that_fit(layout, int(str(row.tokens)), 80 * 2**30, block_size=16)
        assert row.requests == expected
    assert found["tokens"].max() == 2048


def test_work_is_that_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    app = open_view("Work", {"mem_prompt": "2", "mem_new": "3"})
    steps = generation_work(decoder_sizes(FROZEN.config), 2, 3, "last")
    found = read_csv(taken["work.csv"](), WORK)
    assert found["full_total"].tolist() == [s.uncached.visible.total for s in steps]
    assert found["cached_sum"].tolist() == [s.cached_visible_sum.total for s in steps]
    ratio = steps[-1].uncached_visible_sum.total / steps[-1].cached_visible_sum.total
    assert f"= {ratio:.2f} x" in html(app)


def test_more_tokens_than_the_context_holds_are_cut_with_a_note() -> None:
    app = open_view("Work", {"mem_prompt": "512", "mem_new": "512"})
    sound(app)
    assert any("allows P = 4 and N = 1" in c.value for c in app.caption)
    assert not any("were asked for" in c.value for c in open_view("Work").caption)


def test_timing_runs_on_demand_alone_and_belongs_to_its_checkpoint() -> None:
    app = open_view("Work")
    assert "Microseconds of one step" not in html(app)
    app.button(key="_mem.time").click().run()
    sound(app)
    table = re.search(r"Microseconds of one step.*?</table>", html(app), re.DOTALL)
    assert table is not None
    assert table.group().count("<tr>") == 1 + 4
    app.segmented_control(key="dtype").set_value("float64").run()
    assert "Microseconds of one step" not in html(app)


JUNK = {
    "mem_batch": "3", "mem_model": "GPT-9", "mem_tokens": "x", "mem_gib": "-1", "mem_block": "7",
    "mem_shape": "", "mem_prompt": "1e400", "mem_new": "0",
}  # fmt: skip


@pytest.mark.parametrize("view", [*VIEWS, "nonsense"])
def test_junk_in_the_url_gives_the_page(view: str) -> None:
    sound(open_page("memory", JUNK | {"mem_view": view}))


OTHERS = {
    "one layer, one position": ModelConfig(2, 1, 2, 1, 1, 3),
    "larger": ModelConfig(101, 64, 30, 3, 5, 41, tie_word_embeddings=False),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("view", VIEWS)
def test_any_checkpoint_of_the_architecture_has_its_page(name: str, view: str) -> None:
    app = open_view(view, uploaded=random_checkpoint(OTHERS[name], 3, "float32"))
    sound(app)
    if view == "Work":
        app.button(key="_mem.time").click().run()
        sound(app)
