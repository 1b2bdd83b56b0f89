"""Colours: one meaning, one colour, on every page and in both themes.

Every meaning has three variants, because the theme is only known in the browser:

- ``mark``: bars, lines, markers, borders. At least 3:1 on both backgrounds.
- ``light`` and ``dark``: text on the light and on the dark theme, at least 4.5:1 there.

Colour is never the only sign: add a label, a dash or a marker. The hues start from the
colour-blind-safe set of Okabe and Ito (2008).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """One meaning's colour: ``mark`` for both themes, ``light`` and ``dark`` for text."""

    mark: str
    light: str
    dark: str

    @property
    def css(self) -> str:
        """The text colour as a CSS value that follows the theme."""
        return f"light-dark({self.light}, {self.dark})"


QUERY = Colour(mark="#a26abf", light="#8a46b3", dark="#bb93d4")
KEY = Colour(mark="#0080c8", light="#006aa5", dark="#11aaff")
VALUE = Colour(mark="#c48700", light="#875d00", dark="#d89500")
FULL = Colour(mark="#7b7b7b", light="#656565", dark="#a2a2a2")
CACHED = Colour(mark="#00956d", light="#007354", dark="#00b886")
ERROR = Colour(mark="#d83c14", light="#b23210", dark="#ef7e60")

#: Every meaning by name; the names are what the rest of the app says.
COLOURS: dict[str, Colour] = {
    "query": QUERY,
    "key": KEY,
    "value": VALUE,
    "full": FULL,
    "cached": CACHED,
    "error": ERROR,
}

#: Page and raised background of each theme, and its text; the app's theme settings say the same.
BACKGROUNDS: dict[str, tuple[str, str]] = {
    "light": ("#ffffff", "#f4f5f8"),
    "dark": ("#14161b", "#22252d"),
}
TEXT: dict[str, str] = {"light": "#1f2430", "dark": "#f2f4f8"}

#: Links, focus rings and pressed buttons: the theme's primary colour.
PRIMARY: dict[str, str] = {"light": "#0b5cad", "dark": "#8ab8ff"}

# Scales --------------------------------------------------------------------------------------
# Small magnitudes fade into the background of either theme. The full colours have such a
# luminance that black text (light theme) and white text (dark theme) both reach 4.5:1 on them.

#: Full colour of a magnitude, of a positive and of a negative value.
MAGNITUDE = "#007abf"
POSITIVE = "#007abf"
NEGATIVE = "#d54019"

Scale = list[tuple[float, str]]


def rgba(colour: str, alpha: float) -> str:
    """Return ``#rrggbb`` with an opacity, as CSS and plotly both read it."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha:g})"


#: Magnitudes from 0 (the background) to the largest; use it with ``zmin=0``.
SEQUENTIAL: Scale = [(0.0, rgba(MAGNITUDE, 0.0)), (1.0, rgba(MAGNITUDE, 1.0))]

#: Signed values, zero (the background) in the middle; use it with ``zmin = -zmax``.
DIVERGING: Scale = [
    (0.0, rgba(NEGATIVE, 1.0)),
    (0.5, rgba(NEGATIVE, 0.0)),
    (0.5, rgba(POSITIVE, 0.0)),
    (1.0, rgba(POSITIVE, 1.0)),
]


# Contrast ------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two ``#rrggbb`` colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def blend(colour: str, alpha: float, background: str) -> str:
    """Return the opaque colour that ``colour`` at opacity ``alpha`` gives on ``background``."""
    pairs = [(int(colour[i : i + 2], 16), int(background[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(alpha * a + (1 - alpha) * b):02x}" for a, b in pairs)
