"""The frame through AppTest, on the demo app."""

from __future__ import annotations

import random
import sys
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.test_parameters import random_query
from tinydec.ui import NAMES

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def demo(repository, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(sys, "path", [str(repository), *sys.path])
    return AppTest.from_file(str(repository / "tests/app/demo/app.py"), default_timeout=30)


def sound(app: AppTest) -> None:
    """The page is drawn and nothing failed."""
    assert not app.exception
    assert not app.error
    assert len(app.title) == 1


def notes(app: AppTest) -> list[str]:
    return [h.proto.body for h in app.get("html") if 'class="td-notes"' in h.proto.body]


def test_every_shared_control_is_drawn_on_every_page(demo: AppTest) -> None:
    sound(demo.run())
    assert [name for name in NAMES if name not in demo.session_state] == []
    demo.switch_page("pages/second.py").run()
    sound(demo)
    assert demo.title[0].value == "1 Second"
    assert [name for name in NAMES if name not in demo.session_state] == []


def test_page_without_a_script_is_no_link(demo: AppTest) -> None:
    demo.run()
    with pytest.raises(ValueError, match="Could not find page"):
        demo.switch_page("pages/missing.py")


@pytest.mark.parametrize(
    ("kind", "key", "values"),
    [
        ("slider", "temperature", (0.05, 5.0)),
        ("slider", "top_k", (1, 8)),
        ("slider", "top_p", (0.05, 1.0)),
        ("number_input", "seed", (0, 2**53 - 1)),
        ("number_input", "max_new_tokens", (1, 4, None)),
        ("number_input", "tolerance", (1e-16, 1.0, None)),
        ("number_input", "step", (0, 3)),
        ("text_input", "prompt", ("<bos>", "<bos> A A A")),
        ("text_input", "stop_tokens", ("A", "<bos> <eos> A B C D X Y", "")),
        ("toggle", "cache", (False, True)),
        ("segmented_control", "dtype", ("float16", "float64")),
    ],
)
def test_ends_of_every_control_give_a_page(
    demo: AppTest, kind: str, key: str, values: tuple
) -> None:
    demo.query_params["policy"] = "sample"
    demo.run()
    for value in values:
        getattr(demo, kind)(key=key).set_value(value).run()
        sound(demo)
        assert notes(demo) == []


def test_typed_prompt_that_cannot_run_is_named_until_it_is_mended(demo: AppTest) -> None:
    demo.run()
    demo.text_input(key="prompt").set_value("<bos> Q").run()
    sound(demo)
    assert "found &#x27;Q&#x27;; ran with &lt;bos&gt;" in notes(demo)[0]
    demo.text_input(key="prompt").set_value("<bos> A").run()
    assert notes(demo) == []


def test_every_example_prompt_can_be_chosen(demo: AppTest) -> None:
    demo.run()
    menu = demo.menu_button(key="_examples")
    assert len(menu.options) == 12
    menu.click_index(4).run()
    sound(demo)
    assert demo.session_state["prompt"] == "<bos> A B"


def test_note_about_the_url_goes_when_its_control_is_moved(demo: AppTest) -> None:
    demo.query_params["temperature"] = "abc"
    demo.run()
    assert "temperature" in notes(demo)[0]
    demo.number_input(key="seed").set_value(3).run()
    assert "temperature" in notes(demo)[0]
    demo.slider(key="temperature").set_value(2.0).run()
    assert notes(demo) == []


def test_set_controls_moves_the_shared_step(demo: AppTest) -> None:
    demo.run()
    demo.button[0].click().run()
    assert demo.session_state["step"] == 1
    demo.button[1].click().run()
    assert demo.session_state["step"] == 0


def test_two_hundred_random_queries_each_give_a_page(repository, demo: AppTest) -> None:
    rng = random.Random(11)
    noted = 0
    for _ in range(200):
        app = AppTest.from_file(str(repository / "tests/app/demo/app.py"), default_timeout=30)
        app.query_params.update(parse_qs(random_query(rng), keep_blank_values=True))
        sound(app.run())
        noted += bool(notes(app))
    assert 100 < noted < 200
