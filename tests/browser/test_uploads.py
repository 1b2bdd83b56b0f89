"""Uploads in a real browser: smaller and larger checkpoints, refusals, and the way back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.harness import Server, Visit
from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import checkpoint_bytes

pytestmark = pytest.mark.browser


def upload(visit: Visit, name: str, data: bytes) -> None:
    choose = visit.page.locator("[data-testid='stFileUploader'] input[type=file]")
    choose.set_input_files({"name": f"{name}.safetensors", "mimeType": "", "buffer": data})
    visit.idle()


def model(tokens: int, context: int) -> bytes:
    config = ModelConfig(tokens, context, 4, 2, 2, 8)
    return checkpoint_bytes(random_checkpoint(config, 3, "float32"))


@pytest.mark.parametrize("path", ["decoding_policy", "generation_loop"])
def test_smaller_and_larger_vocabularies_and_back(
    server: Server, visitor: Callable[..., Visit], path: str
) -> None:
    visit = visitor(server)
    visit.open(f"{path}?policy=sample&top_k=7&step=3&prompt=%3Cbos%3E+A&max_new_tokens=4")
    visit.open_panel("Run")
    for tokens, context in ((4, 4), (5, 3), (1, 1), (12, 6), (5, 1)):
        upload(visit, f"v{tokens}", model(tokens, context))
        assert visit.exceptions() == []
        assert visit.page.get_by_text(f"Running v{tokens}.safetensors").is_visible()
    visit.page.get_by_role("button", name="Back to the frozen checkpoint").click()
    visit.idle()
    assert visit.exceptions() == []
    assert visit.page.get_by_label("Prompt", exact=True).input_value() == "<bos>"
    visit.go_to("Home")
    assert visit.exceptions() == []
    assert visit.notes() == []
    assert visit.watch.console == []


def test_refused_file_leaves_the_running_checkpoint_in_place(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(server)
    visit.open("generation_loop")
    visit.open_panel("Run")
    upload(visit, "bad", b"nothing")
    assert "Still running: the frozen checkpoint." in visit.notes()[0]
    upload(visit, "good", model(5, 6))
    upload(visit, "bad", b"nothing")
    assert "Still running: good.safetensors." in visit.notes()[0]
    assert visit.page.get_by_text("Running good.safetensors").is_visible()
    visit.page.locator("[data-testid='stFileUploader'] button[aria-label*='emove']").click(
        timeout=5000
    )
    visit.idle()
    assert visit.page.get_by_text("Running good.safetensors").is_visible()
    assert visit.exceptions() == []


def test_cards_of_home_lead_to_their_pages_and_keep_the_upload(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(server)
    visit.open("?seed=7")
    visit.open_panel("Run")
    upload(visit, "own", model(5, 6))
    visit.page.get_by_role("link", name="Largest error").click()
    visit.idle()
    assert visit.page.locator("h1").inner_text() == "7 Equivalence"
    assert "seed=7" in visit.page.url
    visit.open_panel("Run")
    assert visit.page.get_by_text("Running own.safetensors").is_visible()
    assert visit.exceptions() == []
