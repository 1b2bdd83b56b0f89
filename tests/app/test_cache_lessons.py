"""Prefill and decode, KV cache and Positions: any prompt, any control, any checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.lesson_page import odd_checkpoints, open_page, sound, texts
from tinydec import ui
from tinydec.ui.lessons.kv_controls import AMOUNTS

pytestmark = pytest.mark.filterwarnings("default")

PHASES, CACHE, POSITIONS = PAGES = (
    "pages/prefill_decode.py",
    "pages/kv_cache.py",
    "pages/positions.py",
)
ODD = odd_checkpoints()


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    path: str = request.param
    return path


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"prompt": "<bos> A B", "step": "1"},
        {"prompt": "<bos> A B D", "step": "3"},  # fills the context
        {"prompt": "<eos>", "step": "2"},
        {"prompt": "<bos> A B", "max_new_tokens": "1"},
        {"cache": "false", "step": "2"},
        {"cache": "false", "prompt": "<bos> X Y X", "dtype": "float64"},
        {"dtype": "float16", "tolerance": "1e-16", "step": "3"},
        {"policy": "sample", "temperature": "5", "top_k": "1", "top_p": "0.05", "seed": "0"},
        {"stop_tokens": "A B C D X Y", "prompt": "<bos>"},
        {"prompt": "<bos> Q", "step": "999", "dtype": "int8", "cache": "maybe", "layer": "7"},
    ],
)
def test_any_state_of_the_controls_gives_a_page(
    repository: Path, page: str, query: dict[str, str]
) -> None:
    sound(open_page(repository, page, query))


@pytest.mark.parametrize("name", ODD)
def test_any_checkpoint_gives_a_page(repository: Path, page: str, name: str) -> None:
    app = open_page(repository, page, upload=ODD[name])
    sound(app)
    tokens = ODD[name].vocabulary.tokens
    app.text_input(key="prompt").set_value(" ".join(tokens[: ODD[name].config.n_positions])).run()
    sound(app)
    app.toggle(key="cache").set_value(False).run()
    sound(app)
    app.number_input(key="step").set_value(ODD[name].config.n_positions - 1).run()
    sound(app)


def test_every_step_and_every_button_gives_a_page(repository: Path, page: str) -> None:
    app = open_page(repository, page)
    for _ in range(3):
        (step,) = [b for b in app.button if b.label == "Step"]
        step.click().run()
        sound(app)
    assert app.session_state["step"] == 3
    for label in ("New numbers", "Check"):
        for index in range(len([b for b in app.button if b.label == label])):
            [b for b in app.button if b.label == label][index].click().run()
            sound(app)


# Prefill and decode --------------------------------------------------------------------------


def test_shapes_of_both_phases_stand_side_by_side(repository: Path) -> None:
    text = texts(open_page(repository, PHASES, {"prompt": "<bos> A B"})).replace("\u00a0", " ")
    assert "prefill of 3: q (1, 2, 3, 2)  K, V (1, 2, 3, 2)" in text
    assert "decode step 1: q (1, 2, 1, 2)  K, V (1, 2, 4, 2)" in text


def test_without_a_cache_the_second_pass_is_a_triangle_too(repository: Path) -> None:
    text = texts(open_page(repository, PHASES, {"prompt": "<bos> A", "cache": "false"}))
    assert "the second triangle" in text
    assert "one row instead of a triangle" not in text
    assert "one row instead of a triangle" in texts(
        open_page(repository, PHASES, {"prompt": "<bos> A"})
    )


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ({"prompt": "<bos> A B D"}, "The prompt fills the context (4 of 4)"),
        ({"prompt": "<bos>", "max_new_tokens": "1"}, "stops after the prefill (max_new_tokens)"),
    ],
)
def test_page_says_when_the_decode_step_is_not_of_the_run(
    repository: Path, query: dict[str, str], note: str
) -> None:
    assert note in texts(open_page(repository, PHASES, query))
    assert note not in texts(open_page(repository, PHASES))


def test_single_position_has_no_decode_step(repository: Path) -> None:
    text = texts(open_page(repository, PHASES, upload=ODD["one position"]))
    assert "The context holds 1 input, so no decode step follows" in text


def test_longer_prompt_is_one_click_away(repository: Path) -> None:
    app = open_page(repository, PHASES)
    app.button(key="_longer").click().run()
    sound(app)
    assert len(app.session_state["prompt"].split()) == 3
    assert not [b for b in app.button if b.key == "_longer"]


# KV cache ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "numbers", "size"), [("0", 16, 64), ("3", 64, 256)])
def test_cache_grows_by_16_numbers_a_step(
    repository: Path, step: str, numbers: int, size: int
) -> None:
    text = texts(open_page(repository, CACHE, {"step": step}))
    assert f"= {numbers} numbers, {size} bytes" in text


def test_every_amount_leaves_past_queries_without_effect(repository: Path) -> None:
    app = open_page(repository, CACHE, {"step": "3"})
    for amount in AMOUNTS:
        app.segmented_control(key="kv_amount").set_value(amount).run()
        sound(app)
        assert f"Adding {amount} to a past query" in texts(app)
        assert "and the next logits by 0." in texts(app)


@pytest.mark.parametrize(
    ("given", "shown"), [("10", "10"), ("0.01", "0.01"), ("7", "1"), ("", "1"), ("1e400", "1")]
)
def test_amount_comes_from_the_link_or_is_the_default(
    repository: Path, given: str, shown: str
) -> None:
    app = open_page(repository, CACHE, {"step": "3", "kv_amount": given})
    sound(app)
    assert f"Adding {shown} to a past query" in texts(app)


@pytest.mark.parametrize(("given", "shown"), [("2", "layer 2"), ("9", "layer 0"), ("x", "layer 0")])
def test_layer_comes_from_the_link_or_is_the_first(
    repository: Path, given: str, shown: str
) -> None:
    app = open_page(repository, CACHE, {"kv_layer": given}, ODD["unequal primes"])
    sound(app)
    assert f"layer {app.selectbox(key='kv_layer').value}" == shown


def test_first_position_has_no_past(repository: Path) -> None:
    assert "There is no past at the first position" in texts(open_page(repository, CACHE))


def test_layer_and_head_can_be_chosen_where_there_are_many(repository: Path) -> None:
    app = open_page(repository, CACHE, upload=ODD["unequal primes"])
    app.selectbox(key="kv_layer").set_value(2).run()
    app.selectbox(key="kv_head").set_value(2).run()
    sound(app)
    assert not [s for s in open_page(repository, CACHE).selectbox if s.key == "kv_layer"]


def test_refusals_stand_in_the_cores_own_words(repository: Path) -> None:
    text = texts(open_page(repository, CACHE, {"step": "1"}))
    assert "request that owns the cache: expected request-0, found request-1" in text
    assert "checkpoint digest of the cache: expected" in text


# Positions -----------------------------------------------------------------------------------


def test_positions_go_on_from_the_prompt_and_end_at_3(repository: Path) -> None:
    text = texts(open_page(repository, POSITIONS, {"prompt": "<bos> A", "step": "2"}))
    assert "consumed before step 2: 3, reads row 3" in text
    assert "consumed after it: 4, no row 4, the last is 3" in text
    assert "would need row 4" in text


def test_run_that_ends_early_is_filled_up_and_says_so(repository: Path) -> None:
    query = {"max_new_tokens": "1"}
    assert "the last 3 of them were added greedily" in texts(
        open_page(repository, POSITIONS, query)
    )
    assert "added greedily" not in texts(open_page(repository, POSITIONS))


def test_cards_follow_the_tolerance(repository: Path) -> None:
    assert "beyond 1e−5" in texts(open_page(repository, POSITIONS))
    loose = texts(open_page(repository, POSITIONS, {"tolerance": "1.0"}))
    assert "beyond" not in loose
    assert "within 1" in loose


def downloads(app: AppTest) -> list[str]:
    return [element.proto.label for element in app.get("download_button")]


def test_every_table_can_be_downloaded(repository: Path) -> None:
    assert len(downloads(open_page(repository, PHASES))) == 3
    assert len(downloads(open_page(repository, CACHE, {"step": "2"}))) == 5
    assert len(downloads(open_page(repository, POSITIONS))) == 4


@pytest.mark.parametrize("key", ["_kv.rows", "_kv.past"])
def test_an_empty_section_has_its_own_way_on(repository: Path, key: str) -> None:
    app = open_page(repository, CACHE)
    app.button(key=key).click().run()
    assert not app.exception
    assert app.session_state["step"] == 1
    assert not [b for b in app.button if b.key == key]


def test_the_way_on_of_a_run_of_one_step_is_a_longer_prompt(repository: Path) -> None:
    app = open_page(repository, CACHE, {"max_new_tokens": "1"})
    app.button(key="_kv.past").click().run()
    assert len(str(app.session_state["prompt"]).split()) == 3
    assert not [b for b in app.button if b.key == "_kv.past"]


def test_a_word_where_a_number_belongs_is_said_to_be_one(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every run of AppTest is one on a cold server: the guard runs it twice, and a click is lost.
    monkeypatch.setattr(ui, "begin", lambda: None)
    app = open_page(repository, CACHE)
    for typed, said in (("two", "A number is expected, found `two`."), ("", "Compute it first")):
        next(t for t in app.text_input if (t.key or "").startswith("_kv.position")).set_value(
            typed
        ).run()
        app.button(key="_kv.position.check").click().run()
        assert [info.value for info in app.info if info.value.startswith(said)]
