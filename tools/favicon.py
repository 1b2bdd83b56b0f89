"""Draw assets/favicon.svg: the causal triangle, its last row in the colour of the cache.

Usage: python tools/favicon.py
"""

from pathlib import Path

from tinydec.figures.palette import CACHED, KEY

SIZE = 4
CELL = 14
GAP = 2
OUT = Path(__file__).resolve().parent.parent / "assets" / "favicon.svg"


def favicon() -> str:
    """Return the picture as SVG."""
    cells = "".join(
        f'<rect x="{1 + column * (CELL + GAP)}" y="{1 + row * (CELL + GAP)}" width="{CELL}" '
        f'height="{CELL}" rx="3" fill="{(CACHED if row == SIZE - 1 else KEY).mark}"/>'
        for row in range(SIZE)
        for column in range(row + 1)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">{cells}</svg>\n'


if __name__ == "__main__":
    OUT.write_text(favicon(), encoding="utf-8")
