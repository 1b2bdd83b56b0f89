"""The demo's pages."""

from pathlib import Path

from tinydec.ui import Catalogue, PageInfo

DEMO = Catalogue(
    (
        PageInfo("Home", "home", "pages/first.py", "home"),
        PageInfo("1 Second", "grid_on", "pages/second.py", "second", ("tensor",), sampling=True),
        PageInfo("2 Missing", "bug_report", "pages/missing.py", "missing"),
    ),
    Path(__file__).resolve().parent,
)
