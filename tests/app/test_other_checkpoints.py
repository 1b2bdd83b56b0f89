"""Checkpoints that come and go within a visit: controls follow, nothing breaks."""

from __future__ import annotations

import hashlib

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.page_checks import html, open_page, sound
from tests.random_models import random_checkpoint
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import checkpoint_bytes
from tinydec.ui import NAMES
from tinydec.ui.checkpoints import Upload
from tinydec.ui.pages import PAGES

pytestmark = pytest.mark.filterwarnings("default")

#: Every control at an end that the frozen checkpoint allows.
ENDS = {
    "policy": "sample", "top_k": "7", "step": "3", "max_new_tokens": "4", "prompt": "<bos> A B",
    "stop_tokens": "D", "temperature": "0.5", "seed": "7",
}  # fmt: skip


def model(tokens: int, context: int) -> Checkpoint:
    return random_checkpoint(ModelConfig(tokens, context, 4, 2, 2, 8), 3, "float32")


def run_with(app: AppTest, checkpoint: Checkpoint | None) -> AppTest:
    """Let the visit run another checkpoint, or the frozen one again."""
    if checkpoint is None:
        del app.session_state["_upload"]
    else:
        data = checkpoint_bytes(checkpoint)
        app.session_state["_upload"] = Upload("own", data, hashlib.sha256(data).hexdigest())
    return app.run()


@pytest.mark.parametrize(("tokens", "context"), [(4, 4), (5, 3), (1, 3), (5, 1), (1, 1), (12, 6)])
@pytest.mark.parametrize("page", ["home", "decoding_policy"])
def test_controls_follow_another_checkpoint_and_come_back(
    page: str, tokens: int, context: int
) -> None:
    app = open_page(page, ENDS)
    sound(app)
    sound(run_with(app, model(tokens, context)))
    assert app.session_state["prompt"] == "t0"
    assert app.session_state["stop_tokens"] == ""
    assert app.session_state["temperature"] == 0.5
    assert app.session_state["seed"] == 7
    assert "prompt: expected one of t0" in html(app)
    assert len(app.get("file_uploader")) == 1
    assert [b for b in app.button if b.key == "_drop"]
    sound(app.run())
    sound(run_with(app, None))
    assert app.session_state["prompt"] == "<bos>"
    assert [n for n in NAMES if n not in app.session_state] == []


def test_default_of_one_checkpoint_is_the_default_of_the_next() -> None:
    app = open_page("decoding_policy")
    sound(run_with(app, model(12, 6)))
    assert app.session_state["top_k"] == 12
    assert "td-notes" not in html(app).replace(".td-notes", "")
    sound(run_with(app, None))
    assert app.session_state["top_k"] == 8
    assert app.session_state["prompt"] == "<bos>"


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.url_path)
def test_every_page_survives_small_and_back(info) -> None:
    app = open_page(info.url_path, ENDS)
    sound(app)
    for checkpoint in (model(4, 3), model(1, 1), None):
        sound(run_with(app, checkpoint))
