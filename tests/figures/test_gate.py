"""The gate's picture holds the figures of the conditions."""

from __future__ import annotations

from tinydec.figures.gate import gate_figure
from tinydec.figures.palette import CACHED, ERROR

NAMES = ("prefixes", "caches", "nothing")


def picture(tolerance: float = 1e-5):
    return gate_figure(NAMES, [(16, 16), (30, 40), (0, 0)], 2e-6, tolerance, 0.5)


def test_bars_are_shares_of_what_was_expected_and_say_both_numbers() -> None:
    bar = picture().data[0]
    assert list(bar.x) == [1, 0.75, 0]
    assert list(bar.text) == ["16 of 16", "30 of 40", "0 of 0"]
    assert list(bar.y) == list(NAMES)


def test_a_count_that_falls_short_has_the_colour_of_an_error() -> None:
    assert list(picture().data[0].marker.color) == [CACHED.mark, ERROR.mark, ERROR.mark]


def test_errors_stand_at_their_values_with_the_tolerance_between() -> None:
    for tolerance in (1e-5, 1e-9):
        figure = picture(tolerance)
        assert [t.x[0] for t in figure.data[1:]] == [2e-6, tolerance, 0.5]
        assert figure.layout.shapes[1].x0 == tolerance
    assert "2e−6" in picture().data[1].text[0]


def test_no_error_at_all_stands_at_the_left_end() -> None:
    figure = gate_figure(NAMES[:1], [(1, 1)], 0.0, 1e-5, 0.0)
    low, _ = figure.layout.xaxis2.range
    assert 10**low < figure.data[1].x[0] < 1e-5


def test_markers_differ_where_colours_agree() -> None:
    symbols = [t.marker.symbol for t in picture().data[1:]]
    assert len(set(symbols)) == 3
