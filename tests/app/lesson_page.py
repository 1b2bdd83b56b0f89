"""One page of the app under AppTest, with another checkpoint where a test wants one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.random_models import random_checkpoint
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import checkpoint_bytes
from tinydec.model.vocabulary import Vocabulary
from tinydec.ui.checkpoints import Upload


def open_page(
    repository: Path,
    path: str,
    query: Mapping[str, str] | None = None,
    upload: Checkpoint | None = None,
) -> AppTest:
    """Start at the router with a query, go to a page and run it."""
    app = AppTest.from_file(str(repository / "app.py"), default_timeout=60)
    if upload is not None:
        data = checkpoint_bytes(upload)
        app.session_state["_upload"] = Upload(
            "own.safetensors", data, hashlib.sha256(data).hexdigest()
        )
    for name, value in (query or {}).items():
        app.query_params[name] = value
    return app.switch_page(path).run()


def sound(app: AppTest) -> None:
    """The page is drawn to its end, and nothing failed."""
    assert not app.exception
    assert not app.error
    assert len(app.title) == 1
    assert [b.label for b in app.button if b.label == "Check"]


def texts(app: AppTest) -> str:
    """Every text of the page: Markdown and HTML."""
    html = [element.proto.body for element in app.get("html")]
    return "\n".join([m.value for m in app.markdown] + [c.value for c in app.caption] + html)


def odd_checkpoints() -> dict[str, Checkpoint]:
    """Checkpoints with other sizes, biases, vocabularies and contexts than the shipped one."""
    cramped = random_checkpoint(ModelConfig(2, 1, 3, 1, 1, 5), 3, "float32")
    config = ModelConfig(5, 3, 6, 2, 2, 7)
    strange = random_checkpoint(config, 5, "float32")
    vocabulary = Vocabulary(("<b>", "|", "`$x$`", "&amp;", "*" * 40))
    return {
        "one position": cramped,
        "two positions": random_checkpoint(ModelConfig(7, 2, 10, 3, 5, 11), 4, "float64"),
        "strange tokens": Checkpoint.build(config, vocabulary, strange.tensors),
        "unequal primes": random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7, "float16"),
        "largest": random_checkpoint(ModelConfig(256, 64, 64, 2, 8, 128), 6, "float32"),
    }
