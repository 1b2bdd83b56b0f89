"""A checkpoint whose tokens try to be markup: every page shows them, none obeys them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.harness import Server, Visit
from tests.random_models import random_tensors
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import checkpoint_bytes
from tinydec.model.vocabulary import Vocabulary
from tinydec.ui.pages import CATALOGUE

pytestmark = pytest.mark.browser

HOST = "192.0.2.1"  # reserved for examples: nothing answers there
TOKENS = (
    f"`![x](http://{HOST}/a.png)`", f"![y](http://{HOST}/b.png)", f"[l](http://{HOST}/)", "<a",
    f"href='http://{HOST}/'>k</a>", f"<img/src=http://{HOST}/c.png/onerror=window.broken=1>",
    f"http://{HOST}/", "$x$", "|p|", "`", ":red[x]", "<script>window.broken=1</script>",
)  # fmt: skip
#: Whatever on the page was made from a token: links, pictures, or a script that ran.
MADE = f"""() => [...document.querySelectorAll('a, img, image, use, iframe')]
  .map((e) => ['href', 'src', 'xlink:href'].map((n) => e.getAttribute(n) || '').join(''))
  .filter((address) => address.includes('{HOST}'))
  .concat(window.broken ? ['script'] : [])"""
FILE = f"`![x](http:{HOST})`$a_b$:red[x].safetensors"


def hostile() -> Checkpoint:
    """A random model with the tokens above, the first of which begins every prompt."""
    config = ModelConfig(len(TOKENS), 6, 4, 2, 2, 8)
    tensors = {n: array.astype("float32") for n, array in random_tensors(config, 3).items()}
    return Checkpoint.build(config, Vocabulary(TOKENS, TOKENS[0], TOKENS[3]), tensors)


def upload(visit: Visit, name: str, data: bytes) -> None:
    choose = visit.page.locator("[data-testid='stFileUploader'] input[type=file]")
    choose.set_input_files({"name": name, "mimeType": "", "buffer": data})
    visit.idle()


def open_everything(visit: Visit) -> None:
    """Open every closed part of the page, so that its text is drawn."""
    visit.page.evaluate(
        "() => document.querySelectorAll('details:not([open]) > summary').forEach((s) => s.click())"
    )
    visit.idle(200)


def test_tokens_are_shown_and_never_obeyed(server: Server, visitor: Callable[..., Visit]) -> None:
    visit = visitor(server)
    visit.open()
    visit.open_panel("Run")
    upload(visit, FILE, b"no checkpoint")
    assert len(visit.notes()) == 1
    assert visit.page.evaluate(MADE) == []
    upload(visit, FILE, checkpoint_bytes(hostile()))
    assert f"Running {FILE}" in visit.page.inner_text("body")
    for info in CATALOGUE.existing():
        visit.go_to(info.title)
        open_everything(visit)
        assert visit.exceptions() == [], info.title
        assert visit.page.evaluate(MADE) == [], info.title
        assert visit.watch.foreign == [], info.title
    visit.go_to("Home")
    assert TOKENS[0] in visit.page.inner_text("body")
    visit.page.get_by_role("button", name="Try").click()
    visit.page.wait_for_timeout(500)
    visit.page.keyboard.press("Escape")
    visit.page.get_by_test_id("stTooltipHoverTarget").first.hover()
    visit.page.get_by_test_id("stTooltipContent").first.wait_for()
    assert visit.page.evaluate(MADE) == []
    assert visit.watch.foreign == []
