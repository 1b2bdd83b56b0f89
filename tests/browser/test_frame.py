"""The frame in a real browser, on the demo app: links, history, visitors, grid, access."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import DEMO
from tests.browser.harness import (
    ROOT,
    SIZES,
    THEMES,
    Server,
    Visit,
    axe_violations,
    chart_text_contrast,
    overflow,
)
from tinydec.model.storage import FROZEN_PATH

pytestmark = pytest.mark.browser

VIEW = (
    "policy=sample&temperature=0.5&top_k=3&top_p=0.9&seed=7&prompt=%3Cbos%3E+A&dtype=float64"
    "&max_new_tokens=2&stop_tokens=D&tolerance=2e-6&cache=false&step=1&tensor=values"
)


def query(visit: Visit) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: texts[-1] for name, texts in parse_qs(urlsplit(visit.page.url).query).items()}


def shown(visit: Visit) -> str:
    """The page's text, without the frame's."""
    return visit.page.locator("[data-testid='stText']").last.inner_text()


def clean(visit: Visit) -> None:
    """Nothing failed on the page so far, and nothing left the host."""
    assert visit.exceptions() == []
    assert visit.watch.console == []
    assert visit.watch.foreign == []


def test_cold_deep_link_opens_the_linked_view(
    cold_server: Callable[..., Server], visitor: Callable[..., Visit]
) -> None:
    visit = visitor(cold_server(DEMO))
    visit.open(f"second?{VIEW}")
    assert visit.page.title() == "1 Second · tinydec"
    expected = {name: texts[-1] for name, texts in parse_qs(VIEW).items()}
    assert query(visit) == expected
    visit.open_panel("Run")
    assert visit.page.get_by_label("Tolerance").first.input_value() == "0.000002"
    assert not visit.page.get_by_label("Keep a KV cache").is_checked()
    clean(visit)


def test_controls_reach_the_url_and_a_reload_gives_the_same_numbers(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(demo_server)
    visit.open("second")
    before = shown(visit)
    visit.page.get_by_role("radio", name="sample").click()
    visit.page.get_by_label("Seed").first.fill("12")
    visit.page.get_by_label("Seed").first.press("Enter")
    visit.idle()
    visit.page.get_by_label("Step").first.press("ArrowUp")
    visit.page.get_by_label("Step").first.press("Enter")
    visit.idle()
    assert query(visit) == {"policy": "sample", "seed": "12", "step": "1"}
    after = shown(visit)
    assert after != before
    visit.page.reload()
    visit.idle()
    assert shown(visit) == after
    clean(visit)


def test_page_switch_back_and_forward_keep_the_shared_controls(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(demo_server)
    visit.open("second?policy=sample&seed=7&top_k=3")
    shared = {"policy": "sample", "seed": "7", "top_k": "3"}
    visit.go_to("Home")
    assert query(visit) == shared
    visit.page.go_back()
    visit.idle()
    assert visit.page.title() == "1 Second · tinydec"
    assert query(visit) == shared
    visit.page.go_forward()
    visit.idle()
    assert visit.page.title() == "Home · tinydec"
    assert query(visit) == shared
    clean(visit)


@pytest.mark.parametrize(
    "junk",
    [
        "temperature=nan",
        "seed=1e400",
        "policy=",
        "prompt=%3Cbos%3E+Q",
        "step=99",
        "top_k=2&top_k=3",
        "temprature=2",
        "checkpoint=abc",
    ],
)
def test_junk_falls_back_with_a_note(
    demo_server: Server, visitor: Callable[..., Visit], junk: str
) -> None:
    visit = visitor(demo_server)
    visit.open(f"second?{junk}")
    assert len(visit.notes()) == 1
    assert visit.notes()[0].startswith("URL" if "temprature" in junk else junk.split("=")[0])
    clean(visit)
    visit.page.get_by_role("radio", name="sample").click()
    visit.idle()
    visit.go_to("Home")
    assert visit.notes() == []


def test_typed_prompt_runs_or_is_named(demo_server: Server, visitor: Callable[..., Visit]) -> None:
    visit = visitor(demo_server)
    visit.open("second")
    field = visit.page.get_by_label("Prompt", exact=True)
    for text, noted in (("<bos> B B", 0), ("<bos> Q", 1), ("<bos> A", 0)):
        field.fill(text)
        field.press("Enter")
        visit.idle()
        assert query(visit)["prompt"] == text
        assert len(visit.notes()) == noted
    visit.page.get_by_role("button", name="Try").click()
    visit.page.get_by_role("option", name="<bos> X Y X").or_(
        visit.page.get_by_role("menuitem", name="<bos> X Y X")
    ).click()
    visit.idle()
    assert query(visit)["prompt"] == "<bos> X Y X"
    clean(visit)


def test_two_visitors_differ_in_every_control_and_never_meet(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    first, second = visitor(demo_server), visitor(demo_server)
    first.open(f"second?{VIEW}")
    second.open("second?prompt=%3Cbos%3E+X&seed=5")
    mine, theirs = shown(first), shown(second)
    assert mine != theirs
    for visit, seed in ((first, "7"), (second, "5")):
        visit.page.get_by_role("radio", name="greedy").click()
        visit.page.get_by_role("radio", name="sample").click()
        visit.idle()
        visit.page.reload()
        visit.idle()
        assert query(visit)["seed"] == seed
    assert shown(first) == mine
    clean(first)
    clean(second)


def test_grid_is_walked_by_keyboard_and_stepped_in_the_browser(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(demo_server)
    visit.open("second?step=1")
    page = visit.page
    page.locator("table[data-grid='keys.1'] td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    visit.idle()
    assert "Cell(grid='keys.1', row=1, column=1, frame=1)" in page.inner_text("body")
    chosen = page.locator("td[aria-selected='true']")
    assert chosen.count() == 1
    assert "keys head 1, A, 1" in (chosen.get_attribute("aria-label") or "")
    assert page.locator("table[data-grid='keys.0'] tbody tr").count() == 2
    page.get_by_role("button", name="Next step ▶").click()
    assert page.locator("table[data-grid='keys.0'] tbody tr").count() == 3
    page.keyboard.press("Tab")
    page.locator("table[data-grid='keys.0'] td").nth(2).click()
    visit.idle()
    assert "frame=2" in page.inner_text("body")
    clean(visit)


def test_link_control_shows_and_copies_the_address(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(demo_server)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open("second?seed=9")
    visit.open_panel("Link")
    field = visit.page.get_by_label("Link to this view")
    assert field.input_value() == visit.page.url
    visit.page.get_by_role("button", name="Copy link").click()
    visit.page.get_by_text("Copied.").wait_for()
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    clean(visit)


def test_uploaded_checkpoint_stays_with_its_visitor(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(demo_server)
    visit.open("second")
    visit.open_panel("Run")
    data = FROZEN_PATH.read_bytes()
    choose = visit.page.locator("[data-testid='stFileUploader'] input[type=file]")
    choose.set_input_files({"name": "bad.safetensors", "mimeType": "", "buffer": data[:500]})
    visit.idle()
    assert [line for line in visit.notes() if "checkpoint bad.safetensors: expected" in line]
    choose.set_input_files({"name": "mine.safetensors", "mimeType": "", "buffer": data})
    visit.idle()
    assert "Running mine.safetensors: 368 parameters" in visit.page.inner_text("body")
    other = visitor(demo_server)
    other.open("second")
    other.open_panel("Run")
    assert "mine.safetensors" not in other.page.inner_text("body")
    clean(visit)


def test_download_is_the_bytes_that_the_page_made(
    demo_server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(demo_server)
    visit.open()
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Logits as CSV").click()
    data = waiting.value.path().read_bytes()
    assert waiting.value.suggested_filename == "logits.csv"
    assert data.startswith(b",token,logit,probability,kept\n0,<bos>,")
    clean(visit)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("path", ["?temperature=abc", "second?policy=sample"])
def test_page_is_accessible_in_both_themes_and_sizes(
    demo_server: Server, visitor: Callable[..., Visit], path: str, theme: str, size: str
) -> None:
    visit = visitor(demo_server, theme=theme, size=size, height=3000)
    visit.open(path)
    assert axe_violations(visit.page) == []
    assert overflow(visit.page) == 0
    charts = chart_text_contrast(visit.page)
    assert all(ratio >= 4.5 for _, ratio in charts)
    assert bool(charts) == (not path.startswith("second"))
    visit.open_panel("Run")
    visit.idle()
    assert axe_violations(visit.page) == []
    clean(visit)


def test_axe_sees_a_broken_page(demo_server: Server, visitor: Callable[..., Visit]) -> None:
    visit = visitor(demo_server)
    visit.open()
    visit.page.evaluate(
        "document.querySelector('[data-testid=stMainBlockContainer]')"
        ".insertAdjacentHTML('afterbegin', '<img src=\"data:,\"><p style=\"color:#ccc\">pale</p>')"
    )
    found = " ".join(axe_violations(visit.page))
    assert "image-alt" in found
    assert "color-contrast" in found


_SIDEBAR = """
  window.sidebars = [];
  new MutationObserver(() => {
    const links = [...document.querySelectorAll("[data-testid='stSidebarNavLink']")];
    if (links.length) window.sidebars.push(links.map((link) => link.innerText).join(' '));
  }).observe(document, {subtree: true, childList: true, characterData: true});
"""


@pytest.mark.parametrize("path", ["", "kv_cache"])
def test_sidebar_of_a_cold_server_never_shows_file_names(
    cold_server: Callable[..., Server], visitor: Callable[..., Visit], path: str
) -> None:
    visit = visitor(cold_server(ROOT / "app.py"))
    visit.page.add_init_script(_SIDEBAR)
    visit.open(path)
    seen: list[str] = visit.page.evaluate("window.sidebars")
    assert seen
    assert all("1 Generation loop" in text for text in seen)
