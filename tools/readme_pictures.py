"""Take the pictures that the README shows, from the running app.

Usage: python tools/readme_pictures.py

Writes assets/pictures/{home,equivalence,fault_lab}.png: one screen of 1280 x 800, light theme.
"""

import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser.harness import launch, served, visit  # noqa: E402
from tests.conftest import find_chromium  # noqa: E402

FOLDER = ROOT / "assets" / "pictures"
#: Name of the picture, and the address that it shows.
PICTURES = {
    "home": "",
    "equivalence": "equivalence",
    "fault_lab": "fault_lab?faults=F19&reveal=true",
}
#: Enough for flat colours; a third of the bytes of full colour.
COLOURS = 128


def main() -> None:
    """Start the app and take each picture."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit("expected Chromium on the path or in TINYDEC_CHROMIUM, found none")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, served(ROOT / "app.py") as server:
        browser = launch(playwright, chromium)
        for name, address in PICTURES.items():
            with visit(browser, server, theme="light", size="1280") as seen:
                seen.open(address, 800)
                path = FOLDER / f"{name}.png"
                seen.page.screenshot(path=path)
            Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
            print(path.relative_to(ROOT), path.stat().st_size)


if __name__ == "__main__":
    main()
