"""Open a page through AppTest, give it a checkpoint, and take its downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import checkpoint_bytes
from tinydec.ui import show
from tinydec.ui.checkpoints import Upload

ROOT = Path(__file__).resolve().parents[2]


def open_page(
    page: str, query: dict[str, str] | None = None, uploaded: Checkpoint | None = None
) -> AppTest:
    """Open ``pages/{page}.py`` through ``app.py``, as a browser does with a link."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params.update(query or {})
    if uploaded is not None:
        data = checkpoint_bytes(uploaded)
        app.session_state["_upload"] = Upload(
            "own.safetensors", data, hashlib.sha256(data).hexdigest()
        )
    return app.switch_page(f"pages/{page}.py").run()


def sound(app: AppTest) -> None:
    """The page is drawn and nothing failed."""
    assert not app.exception
    assert not app.error
    assert len(app.title) == 1


def html(app: AppTest) -> str:
    """Everything that the page drew as HTML: contract, captions, tables."""
    return "\n".join(element.proto.body for element in app.get("html"))


def take_downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], bytes]]:
    """Return a mapping that each page run fills: what a click on each button would give."""
    taken: dict[str, Callable[[], bytes]] = {}
    right = show.download

    def download(label, data, file_name, *, key, **options):
        taken[file_name] = data
        right(label, data, file_name, key=key, **options)

    monkeypatch.setattr(show, "download", download)
    return taken
