"""The page on one decode step through AppTest: every stage, every control's ends, junk, uploads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.random_models import random_checkpoint
from tinydec.generation.generate import generate
from tinydec.model.activations import tensor_names
from tinydec.model.config import ModelConfig
from tinydec.model.storage import FROZEN_PATH, load_checkpoint, save_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.checkpoints import Upload
from tinydec.ui.html import digits
from tinydec.ui.lessons.decode_step import CONTROLS
from tinydec.ui.pages import CATALOGUE
from tinydec.verification.explain import Element, Recording

pytestmark = pytest.mark.filterwarnings("default")
PAGE = "pages/decode_step.py"
FROZEN = load_checkpoint(FROZEN_PATH)
LARGE = ModelConfig(29, 37, 30, 3, 5, 67, 1e-5, "gelu", True, False)


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """The page list declares the page's own parameters, as it does in the app."""
    before = CATALOGUE.pages
    pages = [replace(info, parameters=CONTROLS) if info.path == PAGE else info for info in before]
    object.__setattr__(CATALOGUE, "pages", tuple(pages))
    yield
    object.__setattr__(CATALOGUE, "pages", before)


@pytest.fixture
def link(repository: Path) -> Callable[..., AppTest]:
    """A visit that begins with a link to the page: `link(step="1", tensor="logits")`."""

    def visit(**query: str) -> AppTest:
        started = AppTest.from_file(str(repository / "app.py"), default_timeout=60)
        started.query_params.update(query)
        return started.switch_page(PAGE).run()

    return visit


@pytest.fixture
def app(link: Callable[..., AppTest]) -> AppTest:
    return link()


def sound(app: AppTest) -> None:
    assert not app.exception
    assert not app.error
    assert [title.value for title in app.title] == ["5 One decode step"]


def bodies(app: AppTest, mark: str) -> list[str]:
    return [h.proto.body for h in app.get("html") if mark in h.proto.body]


def notes(app: AppTest) -> list[str]:
    return bodies(app, 'class="td-notes"')


def checks(app: AppTest) -> list[str]:
    return [text.value for text in app.text if "float64 arithmetic" in text.value]


def first_numbers(app: AppTest) -> str:
    return bodies(app, "td-numbers")[0]


def uploaded(app: AppTest, tmp_path: Path, config: ModelConfig) -> None:
    path = tmp_path / "mine.safetensors"
    save_checkpoint(random_checkpoint(config, 3, "float32"), path)
    data = path.read_bytes()
    app.session_state["_upload"] = Upload("mine", data, hashlib.sha256(data).hexdigest())


def test_page_opens_at_the_first_number(app: AppTest) -> None:
    sound(app.run())
    assert "token_embedding[0, 0] = row 0, column 0" in first_numbers(app)
    assert len(checks(app)) == 1
    assert checks(app)[0].startswith("✓")


def test_every_tensor_is_shown_and_its_arithmetic_holds(app: AppTest) -> None:
    app.run()
    for tensor in tensor_names(2):
        app.selectbox(key="tensor").set_value(tensor).run()
        sound(app)
        assert notes(app) == []
        assert f"{tensor}[" in first_numbers(app)
        assert checks(app)[0].startswith("✓")


def test_next_stage_walks_to_the_logits(app: AppTest) -> None:
    app.run()
    stages = []
    while not app.button(key="_walk.1").disabled:
        app.button(key="_walk.1").click().run()
        sound(app)
        stages.append(app.session_state["tensor"])
    assert len(stages) == 2 * 10 + 2
    assert stages[-1] == "logits"
    app.button(key="_walk.-1").click().run()
    assert app.session_state["tensor"] == "ln_f"


def test_stage_and_layer_buttons_lead_to_their_tensor(app: AppTest) -> None:
    app.run()
    app.segmented_control(key="_stage").set_value("MLP").run()
    assert app.session_state["tensor"] == "h.0.mlp_output"
    app.segmented_control(key="_layer").set_value(1).run()
    assert app.session_state["tensor"] == "h.1.mlp_output"
    app.segmented_control(key="_stage").set_value("logits").run()
    assert app.session_state["tensor"] == "logits"
    app.segmented_control(key="_layer").set_value(0).run()
    assert app.session_state["tensor"] == "h.0.ln_1"
    sound(app)


def test_shown_number_is_the_core_s(link: Callable[..., AppTest]) -> None:
    app = link(prompt="<bos> A", step="1", tensor="h.1.mix", head="1", index="1")
    sound(app)
    trace = generate(FROZEN, RunSpec(prompt=("<bos>", "A")), keep_activations=True)
    value = Recording.of_trace(FROZEN, trace).value(Element(1, "h.1.mix", 2, 1, 1))
    shown = [m.value for m in app.markdown if "`h.1.mix[1, 2, 1]`" in m.value]
    assert len(shown) == 1
    assert digits(value, 6) in shown[0]
    assert "h.1.mix[1, 2, 1] = " in first_numbers(app)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tensor", "wte"), ("position", "9"), ("index", "99"), ("index", "nan"), ("head", "7")],
)
def test_junk_in_the_url_falls_back_with_a_note(
    link: Callable[..., AppTest], name: str, value: str
) -> None:
    app = link(**{"tensor": "h.0.q", name: value})
    sound(app)
    assert any(f"{name}: expected" in note for note in notes(app))


def test_url_that_is_fine_gives_no_note(link: Callable[..., AppTest]) -> None:
    app = link(tensor="h.0.q", position="0", head="1", index="1", step="2")
    sound(app)
    assert notes(app) == []
    assert "h.0.q[1, 0, 1] = " in first_numbers(app)


def test_position_moves_with_the_shared_step(app: AppTest) -> None:
    app.run()
    app.selectbox(key="tensor").set_value("h.0.q").run()
    app.number_input(key="step").set_value(2).run()
    assert "h.0.q[0, 2, 0] = " in first_numbers(app)
    app.selectbox(key="position").set_value("1").run()
    assert "h.0.q[0, 1, 0] = " in first_numbers(app)
    app.number_input(key="step").set_value(3).run()
    assert "h.0.q[0, 3, 0] = " in first_numbers(app)
    sound(app)


def test_index_beyond_the_next_tensor_returns_to_its_first(app: AppTest) -> None:
    app.run()
    app.selectbox(key="tensor").set_value("logits").run()
    app.selectbox(key="index").set_value("7").run()
    app.selectbox(key="tensor").set_value("ln_f").run()
    sound(app)
    assert "ln_f[0, 0] = " in first_numbers(app)


def test_operands_open_level_by_level_down_to_a_table(app: AppTest) -> None:
    app.run()
    app.selectbox(key="tensor").set_value("h.0.ln_1").run()
    for levels in (1, 2):  # ln_1, then embedding, then token_embedding, which is a lookup
        assert len(checks(app)) == len(app.pills) == levels
        last = app.pills[-1]
        last.set_value(last.options[0]).run()
        sound(app)
    assert len(checks(app)) == 3
    assert len(app.pills) == 2
    assert all(text.startswith("✓") for text in checks(app))
    app.selectbox(key="tensor").set_value("ln_f").run()
    assert len(checks(app)) == 1


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("prompt", ["<bos>", "<bos> A A A", "A"])
def test_every_kind_of_run_gives_a_page(
    link: Callable[..., AppTest], dtype: str, cache: bool, prompt: str
) -> None:
    app = link(dtype=dtype, cache=str(cache).lower(), prompt=prompt, step="3")
    for tensor in ("h.0.keys", "h.1.attention", "logits"):
        app.selectbox(key="tensor").set_value(tensor).run()
        sound(app)
        assert checks(app)[0].startswith("✓")
    assert dtype in checks(app)[0]


def test_extreme_controls_give_a_page(link: Callable[..., AppTest]) -> None:
    app = link(
        policy="sample",
        temperature="5.0",
        top_p="0.05",
        top_k="1",
        max_new_tokens="1",
        stop_tokens="A",
        step="3",
        tensor="logits",
    )
    sound(app)
    assert app.session_state["max_new_tokens"] == 1
    assert "logits[0, 0] = " in first_numbers(app)


@pytest.mark.parametrize(
    "config", [LARGE, ModelConfig(2, 1, 1, 1, 1, 1), ModelConfig(11, 7, 15, 1, 3, 13)]
)
def test_uploaded_checkpoint_gives_a_page_for_every_tensor(
    app: AppTest, tmp_path: Path, config: ModelConfig
) -> None:
    app.run()
    app.selectbox(key="tensor").set_value("h.1.mlp_output").run()
    app.selectbox(key="index").set_value("3").run()
    uploaded(app, tmp_path, config)
    app.run()
    sound(app)
    for tensor in tensor_names(config.n_layer):
        app.selectbox(key="tensor").set_value(tensor).run()
        sound(app)
        assert checks(app)[0].startswith("✓")
    indices = app.selectbox(key="index")
    indices.set_value(indices.options[-1]).run()
    sound(app)


def test_token_id_is_shown_as_the_integer_that_it_is(link: Callable[..., AppTest]) -> None:
    app = link(step="2", tensor="token_embedding")
    sound(app)
    (operands,) = bodies(app, "Operands of token_embedding")
    assert '<td>token id[2]</td><td class="number">3</td>' in operands
