"""Take pictures of every page in both themes and both sizes, from the running app.

Usage: python tools/pictures.py FOLDER [--page URL_PATH] [--query QUERY] [--whole] [--demo]

Writes FOLDER/{page}_{light,dark}_{1280,375}.png. With --whole the picture goes on below the fold.
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.app.demo.catalogue import DEMO  # noqa: E402
from tests.browser.harness import SIZES, THEMES, launch, served, visit  # noqa: E402
from tests.conftest import find_chromium  # noqa: E402
from tinydec.ui.pages import CATALOGUE  # noqa: E402


def main() -> None:
    """Start the app, visit each page, take its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", action="append", help="url_path; all pages without it")
    parser.add_argument("--query", default="", help="as in policy=sample&top_k=3")
    parser.add_argument("--whole", action="store_true", help="the whole page, not one screen")
    parser.add_argument("--demo", action="store_true", help="the demo app of the tests")
    arguments = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("expected Chromium on the path or in TINYDEC_CHROMIUM, found none")
    catalogue = DEMO if arguments.demo else CATALOGUE
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = arguments.page or [info.url_path for info in catalogue.existing()]
    first = catalogue.existing()[0].url_path
    with sync_playwright() as playwright, served(catalogue.root / "app.py") as server:
        browser = launch(playwright, chromium)
        for name in names:
            for theme in THEMES:
                for size in SIZES:
                    height = 3200 if arguments.whole else 0
                    with visit(browser, server, theme=theme, size=size, height=height) as seen:
                        seen.open(f"{'' if name == first else name}?{arguments.query}", 600)
                        path = arguments.folder / f"{name}_{theme}_{size}.png"
                        seen.page.screenshot(path=path)
                        print(path, *seen.exceptions(), *seen.watch.console, *seen.watch.foreign)


if __name__ == "__main__":
    main()
