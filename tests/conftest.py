"""Shared pytest configuration: hypothesis profiles, and what a test marked `browser` needs."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
NO_CHROMIUM = (
    "expected Chromium for this browser test, found none: install it "
    "(Debian, Ubuntu: apt-get install chromium) or name it in TINYDEC_CHROMIUM"
)


def is_set(name: str) -> bool:
    """Whether an environment variable says yes (set, and not 0, false or no)."""
    return os.environ.get(name, "").strip().lower() not in {"", "0", "false", "no"}


def find_chromium() -> str | None:
    """Path of the Chromium binary: TINYDEC_CHROMIUM when set, else the first one on the path."""
    named = os.environ.get("TINYDEC_CHROMIUM")
    for name in (named,) if named else CHROMIUM_NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    return None


# CI repeats the same examples on every run; a deadline would only measure how busy the machine is.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if is_set("CI") else "default")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all browser tests in one of the parallel processes: one server, one browser."""
    for item in items:
        if item.get_closest_marker("browser") is not None:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without Chromium a browser test is skipped, or fails where the browser is required."""
    if item.get_closest_marker("browser") is None or find_chromium() is not None:
        return
    if is_set("CI") or is_set("TINYDEC_REQUIRE_BROWSER"):
        pytest.fail(NO_CHROMIUM, pytrace=False)
    pytest.skip(NO_CHROMIUM)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The Chromium binary; only for tests marked `browser`, whose set-up has found it."""
    path = find_chromium()
    if path is None:
        pytest.fail("expected the marker `browser` on a test that uses chromium_path, found none")
    return path


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the project."""
    return Path(__file__).resolve().parent.parent
