"""One browser and one server for all browser tests; cold servers where a test asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.harness import ROOT, Server, Visit, launch, served, visit

DEMO = ROOT / "tests" / "app" / "demo" / "app.py"


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    """The one Chromium."""
    with sync_playwright() as playwright:
        instance = launch(playwright, chromium_path)
        yield instance
        instance.close()


@pytest.fixture(scope="session")
def server(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app, warm."""
    with served(ROOT / "app.py", tmp_path_factory.mktemp("server") / "log.txt") as running:
        yield running


@pytest.fixture(scope="session")
def demo_server(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The frame's demo app, warm."""
    with served(DEMO, tmp_path_factory.mktemp("demo") / "log.txt") as running:
        yield running


@pytest.fixture
def cold_server(tmp_path: Path) -> Iterator[Callable[[Path], Server]]:
    """Start servers that nobody has visited yet: `cold_server(script)`."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(served(script, tmp_path / "log.txt"))


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open visits that end with the test: `visitor(server, theme="dark", size="375")`."""
    with ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(visit(browser, *args, **kwargs))
