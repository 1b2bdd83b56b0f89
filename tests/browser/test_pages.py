"""What holds for every page alike, in a real browser: links, state, downloads, looks, access."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.browser.harness import (
    DESKTOP,
    ROOT,
    THEMES,
    Server,
    Visit,
    axe_violations,
    chart_text_contrast,
    overflow,
)
from tinydec.ui.pages import CATALOGUE, PageInfo

pytestmark = pytest.mark.browser

PAGES = CATALOGUE.existing()
MINE = {
    "policy": "sample", "temperature": "0.5", "top_k": "3", "top_p": "0.9", "seed": "7",
    "prompt": "<bos> A", "dtype": "float64", "max_new_tokens": "2", "stop_tokens": "D",
    "tolerance": "2e-6", "cache": "false", "step": "1",
}  # fmt: skip
#: Differs from MINE in every control, and from the defaults in most.
THEIRS = {
    "policy": "greedy", "temperature": "2", "top_k": "5", "top_p": "0.6", "seed": "5",
    "prompt": "<bos> X Y", "dtype": "float16", "max_new_tokens": "1", "stop_tokens": "A B",
    "tolerance": "0.5", "cache": "true", "step": "0",
}  # fmt: skip
#: Pages whose numbers do not depend on policy and step.
WITHOUT_RUN = ("equivalence", "fault_lab", "review")
#: Every page draws the first of these as its main picture.
PICTURE = ".js-plotly-plot, table[data-grid], .td-lanes, .td-flow, .td-stages, .td-cards"


def each_page(function):
    return pytest.mark.parametrize("info", PAGES, ids=lambda info: info.url_path)(function)


def link(info: PageInfo, values: dict[str, str]) -> str:
    """Path and query of a page; spaces and brackets written as a browser writes them."""
    spelled = "&".join(
        f"{name}={value.replace('<', '%3C').replace('>', '%3E').replace(' ', '+')}"
        for name, value in values.items()
    )
    return f"{'' if info is PAGES[0] else info.url_path}?{spelled}"


def query(visit: Visit) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: texts[-1] for name, texts in parse_qs(urlsplit(visit.page.url).query).items()}


def numbers(visit: Visit) -> str:
    """Every number that the page shows: formulas, tables, grids, charts, chips and cards."""
    found: str = visit.page.evaluate(
        """() => [...document.querySelectorAll('.td-numbers, .td-table, .td-chips, .td-cards,'
        + ' .td-lanes, .td-stages, table[data-grid], .js-plotly-plot')]
        .map((part) => part.textContent).join('\\n')"""
    )
    assert found
    return found


def clean(visit: Visit) -> None:
    """Nothing failed so far, and nothing left the host."""
    assert visit.exceptions() == []
    assert visit.watch.console == []
    assert visit.watch.foreign == []


def core_downloads(info: PageInfo, values: dict[str, str]) -> dict[str, bytes]:
    """What the page's buttons should give, computed by the core in this process."""
    taken: dict[str, Callable[[], bytes]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            st,
            "download_button",
            lambda _label, data, file_name, *_args, **_options: taken.update({file_name: data}),
        )
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params.update(values)
        app.switch_page(info.path).run()
    assert not app.exception
    return {name: data() if callable(data) else data for name, data in taken.items()}


@each_page
def test_cold_deep_link_opens_the_linked_view_and_gives_the_cores_files(
    cold_server: Callable[..., Server], visitor: Callable[..., Visit], info: PageInfo
) -> None:
    visit = visitor(cold_server(ROOT / "app.py"))
    visit.open(link(info, MINE))
    assert visit.page.title() == f"{info.title} · tinydec"
    assert visit.page.locator("h1").inner_text() == info.title
    assert visit.page.get_by_role("dialog").count() == 0
    assert visit.notes() == []
    assert query(visit) == MINE
    assert visit.page.get_by_label("Prompt", exact=True).input_value() == "<bos> A"
    assert visit.page.get_by_label("Step", exact=True).first.input_value() == "1"
    expected = core_downloads(info, MINE)
    assert expected
    buttons = visit.page.get_by_test_id("stDownloadButton").get_by_role("button")
    found = {}
    for index in range(buttons.count()):
        if buttons.nth(index).is_visible():
            with visit.page.expect_download() as waiting:
                buttons.nth(index).click()
            found[waiting.value.suggested_filename] = waiting.value.path().read_bytes()
    assert set(found) <= set(expected)
    assert found
    assert [name for name, data in found.items() if data != expected[name]] == []
    clean(visit)


@each_page
def test_state_survives_reload_switch_back_and_forward_and_no_other_visitor_sees_it(
    server: Server, visitor: Callable[..., Visit], info: PageInfo
) -> None:
    mine, other = visitor(server), visitor(server)
    mine.open(link(info, {"seed": "7"}))
    before = numbers(mine)
    mine.page.get_by_role("radio", name="sample", exact=True).first.click()
    mine.idle()
    mine.page.get_by_label("Step", exact=True).first.press("ArrowUp")
    mine.page.get_by_label("Step", exact=True).first.press("Enter")
    mine.idle()
    shared = {"seed": "7", "policy": "sample", "step": "1"}
    assert query(mine) == shared
    after = numbers(mine)
    assert (after != before) == (info.url_path not in WITHOUT_RUN)

    other.open(link(info, THEIRS))
    theirs = numbers(other)

    mine.page.reload()
    mine.idle()
    assert numbers(mine) == after
    other.page.reload()
    other.idle()
    assert numbers(other) == theirs
    assert query(other) == {
        name: value
        for name, value in THEIRS.items()
        if (name, value) not in {("policy", "greedy"), ("cache", "true"), ("step", "0")}
    }

    elsewhere = PAGES[(PAGES.index(info) + 1) % len(PAGES)]
    mine.go_to(elsewhere.title)
    assert query(mine) == shared
    mine.page.go_back()
    mine.idle()
    assert mine.page.title().startswith(info.title)
    assert query(mine) == shared
    assert numbers(mine) == after
    mine.page.go_forward()
    mine.idle()
    assert mine.page.title().startswith(elsewhere.title)
    assert query(mine) == shared
    clean(mine)
    clean(other)


@each_page
@pytest.mark.parametrize("size", ["1280", "375"])
def test_page_is_accessible_and_readable_in_both_themes(
    server: Server, visitor: Callable[..., Visit], info: PageInfo, size: str
) -> None:
    visit = visitor(server, size=size)
    visit.open(link(info, {"prompt": "<bos> A"}))
    if size == "1280":
        boxes = [
            box for place in visit.page.locator(PICTURE).all() if (box := place.bounding_box())
        ]
        assert boxes
        assert boxes[0]["y"] + boxes[0]["height"] / 2 <= DESKTOP["height"]
    visit.page.set_viewport_size({"width": int(size), "height": 4000})
    visit.idle()
    assert overflow(visit.page) == 0
    faults = []
    for theme in THEMES:
        visit.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        visit.idle(600)
        faults += [f"{theme}: {line}" for line in axe_violations(visit.page)]
        faults += [
            f"{theme}: {words} {ratio:.1f}:1"
            for words, ratio in chart_text_contrast(visit.page)
            if ratio < 4.5
        ]
    assert faults == []
    clean(visit)


@pytest.mark.parametrize("theme", THEMES)
def test_the_open_menu_of_pages_is_accessible_on_a_phone(
    server: Server, visitor: Callable[..., Visit], theme: str
) -> None:
    visit = visitor(server, theme=theme, size="375", height=3000)
    visit.open(link(PAGES[1], {}))
    visit.page.get_by_test_id("stExpandSidebarButton").click()
    visit.idle()
    titles = visit.page.get_by_test_id("stSidebarNavLink").all_inner_texts()
    assert [title.split("\n")[-1] for title in titles] == [info.title for info in PAGES]
    assert axe_violations(visit.page) == []
    clean(visit)


def test_a_dark_theme_turns_the_page_dark(server: Server, visitor: Callable[..., Visit]) -> None:
    """The look is tested by switching live; this shows that the switch reaches the page."""
    visit = visitor(server)
    visit.open()
    back = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    assert visit.page.evaluate(back) == "rgb(255, 255, 255)"
    visit.page.emulate_media(color_scheme="dark")
    visit.idle(600)
    assert visit.page.evaluate(back) == "rgb(20, 22, 27)"
