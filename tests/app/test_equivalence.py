"""The page of the equivalence through AppTest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.app.page_checks import html, open_page, sound, take_downloads
from tests.random_models import random_checkpoint
from tinydec.__main__ import main
from tinydec.figures.equivalence import shortened
from tinydec.figures.log_axis import short
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.ui.equivalence.controls import STEPS, nearest_step
from tinydec.ui.equivalence.views import VIEWS
from tinydec.ui.exercises.catalogue import EXERCISES
from tinydec.verification.equivalence import verify_prefixes
from tinydec.verification.noise import measure_noise

pytestmark = pytest.mark.filterwarnings("default")

FROZEN = load_checkpoint()
CSV = ("prefix_equivalence.csv", "prefix_logits.csv", "deliberate_failures.csv",
       "published_vs_measured.csv")  # fmt: skip


def open_view(view: str, query: dict[str, str] | None = None, **options):
    return open_page("equivalence", {"eq_view": view} | (query or {}), **options)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_a_contract_a_picture_a_table_and_exercises(view: str) -> None:
    app = open_view(view)
    sound(app)
    drawn = html(app)
    assert drawn.count('class="td-contract"') == 1
    assert "<table>" in drawn
    assert "Look for:" in drawn
    assert len(app.get("plotly_chart")) == 1
    titles = [exercise.title for exercise in EXERCISES if exercise.page == "equivalence"]
    assert [h.value for h in app.header if h.value in titles] == titles
    assert len(titles) == 2


def test_contract_gives_the_numbers_of_the_core() -> None:
    report = verify_prefixes(FROZEN)
    drawn = html(open_view("Prefixes"))
    # as in 2.861e−6: no leading zero in the exponent, a minus sign in place of the hyphen
    assert re.sub(r"e-0*", "e−", f"{report.max_abs_error:.3e}") in drawn
    assert "16 of 16 prefixes pass (11 distinct)" in drawn
    assert "cannot act on 4, as a one-token prefix has position 0 anyway" in drawn


def test_table_has_sixteen_rows_and_every_run_has_one() -> None:
    drawn = html(open_view("Prefixes"))
    tables = {t[0]: t[1].count("<tr>") - 1 for t in re.findall(
        r"<caption>(.*?)</caption>(.*?)</table>", drawn, re.DOTALL)}  # fmt: skip
    assert tables["Every prefix, over its splits, with its errors and verdict"] == 16
    assert tables["Every prefix in every split"] == 40
    assert tables["The course&#x27;s published values beside measured ones"] == 10


def test_prefix_that_fails_is_not_shown_by_a_run_that_passes() -> None:
    tables = html(open_view("Prefixes", {"dtype": "float16", "tolerance": "0.001"}))
    table = tables.split("Every prefix, over its splits")[2].split("</table>")[0]
    report = verify_prefixes(FROZEN, dtype="float16", tolerance=0.001)
    assert 0 < report.passed_count < 16
    assert table.count("✗ no") == 16 - report.passed_count
    for prefix in report.prefixes:
        assert prefix.worst.passed == prefix.passed
        assert prefix.max_abs_error == max(split.max_abs_error for split in prefix.splits)


@pytest.mark.parametrize("tokens", [("prefix", "-1.5", "1e-05"), ("x" * 40 + "1", "x" * 40 + "2")])
def test_any_vocabulary_has_its_tables(tokens: tuple[str, ...]) -> None:
    config = ModelConfig(len(tokens), 3, 4, 2, 2, 8)
    tensors = random_checkpoint(config, 3, "float32").tensors
    app = open_view("Prefixes", uploaded=Checkpoint.build(config, Vocabulary(tokens), tensors))
    sound(app)
    assert all(shortened(token) in html(app) for token in tokens)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({}, []),
        ({"dtype": "float64"}, ["--dtype", "float64"]),
        (
            {"dtype": "float16", "tolerance": "0.003"},
            ["--dtype", "float16", "--tolerance", "0.003"],
        ),
        ({"tolerance": "1e-06", "prompt": "<bos> A", "seed": "3"}, ["--tolerance", "1e-6"]),
    ],
)
def test_downloads_are_the_bytes_that_the_command_line_writes(
    query, options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    taken = take_downloads(monkeypatch)
    sound(open_view("Prefixes", query))
    sound(open_view("Tensors", query))
    assert main(["audit", "--out", str(tmp_path / "bundle"), *options]) in (0, 1)
    for file in (*CSV, "intermediates.csv", "cache_trace.csv"):
        assert taken[file]() == (tmp_path / "bundle" / file).read_bytes()


def test_a_number_format_gives_other_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    open_view("Prefixes")
    before = {file: taken[file]() for file in CSV}
    open_view("Prefixes", {"dtype": "float64"})
    assert all(taken[file]() != before[file] for file in CSV)


@pytest.mark.parametrize("view", VIEWS)
def test_number_format_and_tolerance_follow_the_pages_controls(view: str) -> None:
    app = open_view(view)
    for dtype in ("float16", "float64", "float32"):
        app.segmented_control(key="_eq_dtype").set_value(dtype).run()
        sound(app)
        assert app.session_state["dtype"] == dtype
    for tolerance in (STEPS[0], STEPS[-1], 1e-7):
        app.select_slider(key="_eq_tolerance").set_value(tolerance).run()
        sound(app)
        assert app.session_state["tolerance"] == tolerance
    app.button(key="_eq_declared").click().run()
    sound(app)
    assert app.session_state["tolerance"] is None
    assert app.select_slider(key="_eq_tolerance").value == 1e-5


def test_a_tolerance_below_the_noise_fails_prefixes() -> None:
    app = open_view("Prefixes", {"tolerance": "1e-07"})
    passed = verify_prefixes(FROZEN, tolerance=1e-7).passed_count
    assert passed < 16
    assert f"{passed} of 16 prefixes pass" in html(app)


def test_a_tolerance_between_the_steps_keeps_its_value() -> None:
    app = open_view("Tolerance", {"tolerance": "2.5e-06"})
    sound(app)
    assert app.session_state["tolerance"] == 2.5e-6
    assert app.select_slider(key="_eq_tolerance").value == nearest_step(2.5e-6) == 3e-6
    assert short(2.5e-6) in html(app)


def test_every_one_of_forty_runs_can_be_chosen_with_every_cache() -> None:
    app = open_view("Tensors")
    options = app.selectbox(key="eq_run").options
    assert len(options) == len(set(options)) == 40
    for option in (options[0], options[-1]):
        app.selectbox(key="eq_run").set_value(option).run()
        for cache in ("correct", "positions-reset", "wrong-layer"):
            app.segmented_control(key="eq_cache").set_value(cache).run()
            sound(app)


def test_first_tensor_that_differs_is_named() -> None:
    app = open_view("Tensors")
    assert "None beyond 1e−5" in html(app)
    app.segmented_control(key="eq_cache").set_value("wrong-layer").run()
    assert "First beyond 1e−5: h.1.keys at position 0" in html(app)
    app.segmented_control(key="eq_cache").set_value("positions-reset").run()
    assert "First beyond 1e−5: position_embedding at position" in html(app)


def test_every_prefix_and_failure_can_be_compared_by_choice() -> None:
    app = open_view("Choices")
    assert "keeps the choice on 11 of the 16 prefixes" in html(app)
    for fault in ("positions-reset", "wrong-layer"):
        app.segmented_control(key="eq_fault").set_value(fault).run()
        options = app.selectbox(key="eq_prefix").options
        assert len(options) == len(set(options)) == 16
        for option in (options[0], options[-1]):
            app.selectbox(key="eq_prefix").set_value(option).run()
            sound(app)
    app.segmented_control(key="eq_fault").set_value("positions-reset").run()
    app.selectbox(key="eq_prefix").set_value(options[0]).run()
    assert "it cannot act: a one-token prefix has position 0 anyway" in html(app)


def test_shares_move_with_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_downloads(monkeypatch)
    loose = html(open_view("Tolerance", {"tolerance": "1"}))
    tight = html(open_view("Tolerance", {"tolerance": "1e-08"}))
    missed = re.compile(r"it misses ([\d.]+)% of (\d+) faults .* refuses ([\d.]+)% of 200")
    found = [next(missed.finditer(text)).groups() for text in (loose, tight)]
    assert float(found[0][0]) > 10
    assert (found[0][2], found[1][0]) == ("0.0", "0.0")
    assert float(found[1][2]) > 95
    assert int(found[0][1]) > 100
    assert taken["noise.csv"]().count(b"\n") == 1 + 3 * 200
    assert b"wrong-layer,this model" in taken["fault_effects.csv"]()
    assert taken["tolerance_shares.csv"]().startswith(b"tolerance,faults_missed,dtype")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_claim_of_the_tolerance_holds_in_its_own_numbers(dtype: str) -> None:
    shown = html(open_view("Tolerance", {"dtype": dtype}))
    number = r"([\d.e−]+)"
    claim = re.search(rf"{dtype}, shipped sizes: {number} &lt; {number} &lt; {number}", shown)
    assert claim is not None
    noise, tolerance, fault = (float(text.replace("−", "-")) for text in claim.groups())
    assert noise < tolerance < fault
    beyond = sum(m.errors[dtype] > tolerance for m in measure_noise(200, 2024, (dtype,)))
    assert f"{beyond} round{'s' if beyond == 1 else ''} beyond" in shown


def test_the_claim_shows_where_a_chosen_tolerance_breaks_it() -> None:
    assert "≥ 1e−8 &lt;" in html(open_view("Tolerance", {"tolerance": "1e-08"}))


JUNK = {"eq_view": "nonsense", "eq_run": "1", "eq_cache": "", "eq_prefix": "💥", "eq_fault": "x"}


def test_junk_in_the_url_gives_the_page() -> None:
    sound(open_page("equivalence", JUNK))
    for view in VIEWS:
        sound(open_page("equivalence", JUNK | {"eq_view": view}))


OTHERS = {
    "one layer, one position": ModelConfig(2, 1, 2, 1, 1, 3),
    "one layer, two positions": ModelConfig(5, 2, 4, 1, 2, 3),
    "larger": ModelConfig(101, 37, 30, 3, 5, 41, tie_word_embeddings=False),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("view", VIEWS)
def test_any_checkpoint_of_the_architecture_has_its_page(name: str, view: str) -> None:
    app = open_view(view, uploaded=random_checkpoint(OTHERS[name], 3, "float32"))
    sound(app)
    for dtype in ("float16", "float64"):
        app.segmented_control(key="_eq_dtype").set_value(dtype).run()
        sound(app)


@pytest.mark.parametrize("query", [
    {"cache": "false"}, {"prompt": "<bos> A A A"}, {"policy": "sample", "temperature": "5"},
])  # fmt: skip
def test_the_run_of_the_shared_controls_does_not_change_the_comparison(query) -> None:
    plain, other = open_view("Prefixes"), open_view("Prefixes", query)
    sound(other)
    assert re.findall(r"<table>.*?</table>", html(other)) == re.findall(
        r"<table>.*?</table>", html(plain)
    )
