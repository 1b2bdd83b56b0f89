"""Contrast of every colour in both themes, by the formula of WCAG 2.2."""

import re
import tomllib
from pathlib import Path

import pytest

from tinydec.figures import palette
from tinydec.figures.palette import BACKGROUNDS, COLOURS, blend, contrast

TEXT_RATIO = 4.5
MARK_RATIO = 3.0
THEMES = ("light", "dark")


def test_contrast_of_known_pairs() -> None:
    # Black on white is 21:1 by definition; #767676 on white is the classic 4.54:1.
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.005)
    assert contrast("#777777", "#ffffff") < TEXT_RATIO


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", COLOURS)
def test_text_colour_reaches_its_ratio_on_both_backgrounds(name: str, theme: str) -> None:
    text = getattr(COLOURS[name], theme)
    assert min(contrast(text, back) for back in BACKGROUNDS[theme]) >= TEXT_RATIO


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", COLOURS)
def test_mark_colour_reaches_its_ratio_in_both_themes(name: str, theme: str) -> None:
    assert contrast(COLOURS[name].mark, BACKGROUNDS[theme][0]) >= MARK_RATIO


@pytest.mark.parametrize("theme", THEMES)
def test_theme_text_and_primary_colour_reach_the_ratio_of_text(theme: str) -> None:
    for back in BACKGROUNDS[theme]:
        assert contrast(palette.TEXT[theme], back) >= TEXT_RATIO
        assert contrast(palette.PRIMARY[theme], back) >= TEXT_RATIO


@pytest.mark.parametrize(("theme", "text"), [("light", "#000000"), ("dark", "#ffffff")])
@pytest.mark.parametrize("colour", [palette.MAGNITUDE, palette.POSITIVE, palette.NEGATIVE])
def test_number_in_a_cell_is_legible_at_every_strength(theme: str, text: str, colour: str) -> None:
    ratios = [contrast(text, blend(colour, step / 20, BACKGROUNDS[theme][0])) for step in range(21)]
    assert min(ratios) >= TEXT_RATIO


def test_meanings_have_distinct_colours() -> None:
    for variant in ("mark", "light", "dark"):
        assert len({getattr(colour, variant) for colour in COLOURS.values()}) == len(COLOURS)


def test_signed_scale_is_centred_at_zero() -> None:
    positions = [position for position, _ in palette.DIVERGING]
    assert positions == [0.0, 0.5, 0.5, 1.0]
    assert [colour.endswith(", 0)") for _, colour in palette.DIVERGING] == [
        False, True, True, False,
    ]  # fmt: skip


def test_text_colour_follows_the_theme_in_css() -> None:
    assert re.fullmatch(r"light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\)", COLOURS["key"].css)


@pytest.mark.parametrize("theme", THEMES)
def test_theme_settings_use_the_palette(repository: Path, theme: str) -> None:
    text = (repository / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)["theme"][theme]
    assert settings["primaryColor"] == palette.PRIMARY[theme]
    assert settings["textColor"] == palette.TEXT[theme]
    page, raised = BACKGROUNDS[theme]
    assert (settings["backgroundColor"], settings["secondaryBackgroundColor"]) == (page, raised)
