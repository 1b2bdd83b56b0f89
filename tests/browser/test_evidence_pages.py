"""Equivalence, memory and evidence in a real browser: every view, downloads, second handles."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.harness import (
    Server,
    Visit,
    axe_violations,
    chart_text_contrast,
    overflow,
)
from tinydec.evidence.audit import default_spec, run_audit
from tinydec.evidence.bundle import bundle_files
from tinydec.evidence.manifest import MANIFEST
from tinydec.evidence.registry import TABLES
from tinydec.model.storage import load_checkpoint

pytestmark = pytest.mark.browser

VIEWS = {
    "equivalence": ("eq_view", ("Prefixes", "Tensors", "Tolerance", "Choices")),
    "memory": ("mem_view", ("Payload", "Left out", "Real models", "Work")),
    "evidence": ("ev_view", ("Tables", "Manifest")),
}
LINKS = [(path, key, view) for path, (key, views) in VIEWS.items() for view in views]


def opened(visit: Visit, link: str) -> Visit:
    """A page by its link, on a server that has shown a page before."""
    visit.open()
    visit.open(link.replace(" ", "%20"))
    return visit


def query(visit: Visit) -> dict[str, list[str]]:
    return parse_qs(urlsplit(visit.page.url).query)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["1280", "375"])
def test_every_view_is_accessible_and_readable(
    server: Server, visitor: Callable[..., Visit], theme: str, size: str
) -> None:
    visit = visitor(server, theme=theme, size=size, height=2600)
    for path, key, view in LINKS:
        opened(visit, f"{path}?{key}={view}")
        assert visit.exceptions() == [], view
        assert axe_violations(visit.page) == [], view
        texts = chart_text_contrast(visit.page)
        assert texts, view
        assert [entry for entry in texts if entry[1] < 4.5] == [], view
        assert overflow(visit.page) == 0, view
    assert visit.watch.console == []
    assert visit.watch.foreign == []


def test_main_picture_of_every_view_is_above_the_fold(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(server)
    for path, key, view in LINKS:
        opened(visit, f"{path}?{key}={view}")
        box = visit.page.locator(".js-plotly-plot").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, (view, box)


def test_tolerance_and_format_reach_the_url_and_a_reload_keeps_them(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = opened(visitor(server), "equivalence")
    visit.page.get_by_role("radio", name="float64", exact=True).first.click()
    visit.idle()
    slider = visit.page.get_by_role("slider").first
    slider.focus()
    slider.press("ArrowRight")
    visit.idle()
    assert query(visit)["dtype"] == ["float64"]
    assert [float(t) for t in query(visit)["tolerance"]] == [3e-12]
    numbers = visit.page.locator(".td-numbers").first.inner_text()
    assert "3e−12" in numbers
    visit.page.reload()
    visit.idle()
    assert visit.page.locator(".td-numbers").first.inner_text() == numbers
    visit.page.get_by_role("button", name="Declared").click()
    visit.idle()
    assert "tolerance" not in query(visit)
    assert visit.exceptions() == []


def downloaded(visit: Visit, name: str) -> bytes:
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name=name, exact=False).first.click()
    return Path(waiting.value.path()).read_bytes()


def test_downloads_are_the_bytes_of_the_core(server: Server, visitor: Callable[..., Visit]) -> None:
    checkpoint = load_checkpoint()
    report = run_audit(checkpoint, default_spec(checkpoint))
    visit = opened(visitor(server), "equivalence")
    for name in ("prefix_equivalence.csv", "prefix_logits.csv", "deliberate_failures.csv"):
        assert downloaded(visit, name) == TABLES[name].csv(report)
    opened(visit, "memory")
    assert downloaded(visit, "memory.csv") == TABLES["memory.csv"].csv(report)
    opened(visit, "evidence")
    found, expected = unpacked(downloaded(visit, "Whole bundle")), bundle_files(report)
    ours, theirs = (json.loads(files.pop(MANIFEST)) for files in (found, expected))
    assert found == expected
    # The server may be older than the code that this test sees: that is the manifest's to say.
    assert ours | {"code": None} == theirs | {"code": None}


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
