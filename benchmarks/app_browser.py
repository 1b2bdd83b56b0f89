"""From a click to the new picture, in Chromium without a graphics card."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, sync_playwright

from benchmarks.app_server import AppServer
from tinydec.ui.pages import CATALOGUE, PageInfo

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = 400  # milliseconds without a change after which a page counts as drawn
#: What is clicked on pages whose picture does not follow the shared step: radio buttons by name,
#: one after another.
_RADIOS = {
    "equivalence": ("float64", "float32"),
    "memory": ("float16", "float32"),
    "batches": ("right", "ragged", "left"),
    "review": ("shapes", "scores", "positions", "memory", "policies"),
    "evidence": ("Manifest", "Tables"),
}
#: Buttons by name, one after another; the first one once before.
_BUTTONS = {"audit": ("Start over", *["Judge the next"] * 6)}
_CHECKBOX = {"fault_lab": "reveal"}

# Times the last change below the page's main part, and says when there was none for a while.
_WATCH = """() => {
  window.__last = 0;
  const main = document.querySelector('[data-testid=stMainBlockContainer]');
  window.__watch && window.__watch.disconnect();
  window.__watch = new MutationObserver(() => {
    requestAnimationFrame(() => { window.__last = performance.now(); });
  });
  window.__watch.observe(main, {childList: true, characterData: true, subtree: true});
  document.addEventListener('click', (e) => { window.__start = e.timeStamp; }, {capture: true});
}"""
_SETTLED = """(quiet) => {
  const app = document.querySelector("[data-testid='stApp']");
  return app.getAttribute('data-test-script-state') === 'notRunning'
    && performance.now() - Math.max(window.__last, window.__start) > quiet;
}"""


@dataclass(frozen=True)
class PageTiming:
    """Seconds from each click to the last change it made, and the charts on the page."""

    spans: tuple[float, ...]
    charts: int


def find_chromium() -> str | None:
    """Return the path of Chromium: TINYDEC_CHROMIUM when set, else the first on the path."""
    named = os.environ.get("TINYDEC_CHROMIUM")
    return next(
        (path for name in ((named,) if named else _NAMES) if (path := shutil.which(name))), None
    )


def time_in_browser(
    server: AppServer, pages: Sequence[PageInfo], chromium: str, clicks: int
) -> dict[str, PageTiming]:
    """Time clicks on each page, at most ``clicks`` of them and at least one round."""
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        first = CATALOGUE.existing()[0]  # stands at the top of the app
        for info in pages:
            url = f"{server.url}/{'' if info is first else info.url_path}"
            found[info.url_path] = _time_page(page, url, info.url_path, clicks)
        browser.close()
    return found


def _time_page(page: Page, url: str, url_path: str, clicks: int) -> PageTiming:
    page.goto(f"{url}?prompt=%3Cbos%3E+A")
    page.wait_for_selector("[data-testid='stMainBlockContainer'] h1", timeout=60_000)
    page.evaluate(f"({_WATCH})(); window.__start = performance.now()")
    page.wait_for_function(_SETTLED, arg=1000, timeout=60_000)
    targets = _targets(page, url_path)
    spans = []
    for number in range(clicks + len(targets)):
        targets[number % len(targets)].click()
        page.wait_for_function(_SETTLED, arg=_QUIET, timeout=60_000)
        span = page.evaluate("(window.__last - window.__start) / 1000")
        if number >= len(targets) and span > 0:  # the first round computes what later ones find
            spans.append(span)
    return PageTiming(tuple(spans), page.locator(".js-plotly-plot").count())


def _targets(page: Page, url_path: str) -> list[Locator]:
    if url_path in _RADIOS:
        return [
            page.get_by_role("radio", name=name, exact=True).first for name in _RADIOS[url_path]
        ]
    if url_path in _BUTTONS:
        return [page.get_by_role("button", name=name).first for name in _BUTTONS[url_path]]
    if url_path in _CHECKBOX:
        return [page.locator(f".st-key-{_CHECKBOX[url_path]} label").first]
    up = page.locator(".st-key-step [data-testid='stNumberInputStepUp']")
    down = page.locator(".st-key-step [data-testid='stNumberInputStepDown']")
    return [up, up, down, down]
