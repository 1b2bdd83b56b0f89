"""A real server and a real browser: what every browser test is made of."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.app_server import AppServer, app_server

ROOT = Path(__file__).resolve().parents[2]
THEMES = ("light", "dark")
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 812}
SIZES = {"1280": DESKTOP, "375": PHONE}

#: Streamlit looks for its base path under a deep link; these answers are part of that.
_EXPECTED = re.compile(r"/_stcore/(health|host-config)$")


# Server ------------------------------------------------------------------------------------------

Server = AppServer


@contextmanager
def served(script: Path = ROOT / "app.py", log: Path | None = None) -> Iterator[Server]:
    """Start a server of its own, cold, in the project's folder; stop it afterwards."""
    with (
        (log or Path(os.devnull)).open("wb") as stream,
        app_server(str(script), log=stream) as server,
    ):
        yield server


# Browser -----------------------------------------------------------------------------------------


def launch(playwright: Playwright, chromium: str) -> Browser:
    """Start Chromium as it runs in a container too."""
    return playwright.chromium.launch(
        executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
    )


@dataclass
class Watch:
    """What went wrong on a page while a test looked at it."""

    host: str
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        """Collect console errors, exceptions and requests that leave the host."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _console(self, message) -> None:
        if message.type == "error" and not _EXPECTED.search(message.location.get("url", "")):
            self.console.append(f"{message.text} ({message.location.get('url', '')})")

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self.host:
            self.foreign.append(url)


@dataclass
class Runs:
    """The script runs of a page, read off its websocket: asked for, begun, ended."""

    moment: int = 0
    asked: int = 0
    begun: int = 0
    ended: int = 0

    def follow(self, page: Page) -> None:
        """Listen to every websocket that the page opens."""
        page.on("websocket", self._socket)

    @property
    def pending(self) -> bool:
        """Whether a run that the page has asked for has not come to its end."""
        return self.asked > self.ended

    def _socket(self, socket: WebSocket) -> None:
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, data: bytes | str) -> None:
        self.moment += 1
        if isinstance(data, bytes) and BackMsg.FromString(data).HasField("rerun_script"):
            self.asked = self.moment

    def _received(self, data: bytes | str) -> None:
        self.moment += 1
        if not isinstance(data, bytes):
            return
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.begun = self.moment
        elif (
            kind == "script_finished"
            and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            and self.begun > self.asked
        ):
            self.ended = self.moment


@dataclass(frozen=True)
class Visit:
    """A visitor: a browser context of its own, a page, and the watch over it."""

    page: Page
    watch: Watch
    url: str
    runs: Runs

    def open(self, path: str = "", settle: int = 300) -> None:
        """Go to a path (with its query) of the app and wait until it is drawn."""
        self.page.goto(f"{self.url}/{path.lstrip('/')}")
        self.page.wait_for_selector("[data-testid='stApp']", timeout=30_000)
        self.idle(settle)

    def idle(self, settle: int = 300) -> None:
        """Wait until every run that was asked for has ended and nothing is drawn any more.

        On a busy machine a run may begin long after the click that asks for it: until then the
        page looks idle.
        """
        page = self.page
        page.wait_for_function(_IDLE, timeout=30_000)
        page.wait_for_timeout(settle)
        end = time.monotonic() + 30
        while self.runs.pending:
            if time.monotonic() > end:
                raise TimeoutError("expected the script to end within 30 s, found it running")
            page.wait_for_timeout(20)
        page.wait_for_function(_IDLE, timeout=30_000)

    def exceptions(self) -> list[str]:
        """Text of every Streamlit exception box on the page."""
        return self.page.locator("[data-testid='stException']").all_inner_texts()

    def notes(self) -> list[str]:
        """Text of every note or error that the frame shows."""
        return self.page.locator("[data-testid='stAlert'], .td-notes li").all_inner_texts()

    def go_to(self, title: str) -> None:
        """Follow the navigation to another page."""
        link = self.page.get_by_test_id("stSidebarNavLink").filter(has_text=title)
        if not link.first.is_visible():
            self.page.get_by_test_id("stExpandSidebarButton").click()
        link.first.click()
        self.idle()

    def open_panel(self, label: str) -> None:
        """Open a group of controls (`Sampling`, `Run`) or the popover `Link`."""
        if label == "Link":
            opener = self.page.get_by_test_id("stPopover").get_by_role("button")
            opener.filter(has_text=label).click()
            self.page.wait_for_selector("[data-testid='stPopoverBody']")
        else:
            panel = self.page.locator(f".st-key-_panel-{label.lower()}")
            panel.locator("summary").click()
            panel.locator("label").first.wait_for(state="visible")


# The app says "notRunning" when its script has ended; skeletons and stale marks are still drawn.
_IDLE = """() => {
  const app = document.querySelector("[data-testid='stApp']");
  return app && app.getAttribute('data-test-script-state') === 'notRunning'
    && app.getAttribute('data-test-connection-state') !== 'CONNECTING'
    && document.querySelector('h1')
    && !document.querySelector("[data-testid='stSkeleton'], [data-stale='true']");
}"""


@contextmanager
def visit(
    browser: Browser, server: Server, *, theme: str = "light", size: str = "1280", height: int = 0
) -> Iterator[Visit]:
    """Open a context of its own in a theme and size (`1280` or `375`; another height if given)."""
    viewport = SIZES[size] | ({"height": height} if height else {})
    context: BrowserContext = browser.new_context(
        viewport=viewport,  # type: ignore[arg-type]
        color_scheme=theme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    watch, runs = Watch(urlsplit(server.url).netloc), Runs()
    page = context.new_page()
    watch.follow(page)
    runs.follow(page)
    try:
        yield Visit(page, watch, server.url, runs)
    finally:
        context.close()


# Judgement ---------------------------------------------------------------------------------------


def axe_violations(page: Page) -> list[str]:
    """Violations of axe's rules, one line each; the script of axe comes with its package."""
    results = Axe().run(page)
    return [
        f"{v['id']}: {v['help']} at {[n['target'] for n in v['nodes']][:3]}"
        for v in results.response["violations"]
    ]


def chart_text_contrast(page: Page) -> list[tuple[str, float]]:
    """(text, contrast with the page's background) of every text in every chart."""
    pairs: list[list] = page.evaluate(_CHART_TEXT)
    return [(text, ratio) for text, ratio in pairs]


_CHART_TEXT = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => {
    const x = c / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const back = luminance(rgb(getComputedStyle(document.querySelector('.stApp')).backgroundColor));
  return [...document.querySelectorAll('.js-plotly-plot .main-svg text')]
    .filter((t) => t.textContent.trim() && t.getBoundingClientRect().width > 0)
    .map((t) => {
      const style = getComputedStyle(t);
      const fore = luminance(rgb(style.fill));
      const [low, high] = [fore, back].sort((a, b) => a - b);
      return [t.textContent, (high + 0.05) / (low + 0.05)];
    });
}"""


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window; 0 when nothing sticks out."""
    width: int = page.evaluate(
        "() => Math.max(0, document.querySelector('[data-testid=stMain]').scrollWidth"
        " - document.querySelector('[data-testid=stMain]').clientWidth)"
    )
    return width
