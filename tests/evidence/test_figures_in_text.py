"""Figures inside sentences: what rounding may change, and what may never change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.evidence.figures_in_text import same_but_figures

TOLERANCE = 1e-5


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("K differs by 0.344", "K differs by 0.344"),
        ("K differs by 0.344", "K differs by 0.345"),  # 0.34449 and 0.34451, both rounded
        ("difference 9.99", "difference 10"),
        ("difference 0.999", "difference 1"),
        ("sum 0.206637", "sum 0.206638"),
        ("largest difference 0", "largest difference 1.19e-07"),
        ("largest difference 4.77e-07", "largest difference 2.4e-06"),
        ("h.1.k differs by 0.78", "h.1.k differs by 0.779"),
        ("-1.50, then 2.25", "-1.51, then 2.24"),
    ],
)
def test_rounded_figure_of_another_machine_passes(expected: str, found: str) -> None:
    assert same_but_figures(expected, found, TOLERANCE)
    assert same_but_figures(found, expected, TOLERANCE)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("K differs by 0.344", "K differs by 0.346"),
        ("K differs by 0.344", "V differs by 0.344"),
        ("difference 8.13", "difference -8.13"),
        ("difference 8.13", "difference 8.13 8.13"),
        ("difference 8.13", "difference inf"),
        ("largest difference 4.77e-07", "largest difference 3e-05"),
        ("position 1", "position 2"),
        ("3 scores a query", "4 scores a query"),
        ("inputs [0, 7]", "inputs [0, 6]"),
        ("h.1.k differs by 0.78", "h.2.k differs by 0.78"),
        ("25cc1e5cc68a", "25cc1e5cc68b"),
        ("25cc1e+5", "25cc1e+6"),
        ("123456789012", "123456789013"),
        ("", "0.5"),
    ],
)
def test_everything_else_must_be_the_same(expected: str, found: str) -> None:
    assert not same_but_figures(expected, found, TOLERANCE)
    assert not same_but_figures(found, expected, TOLERANCE)


@given(st.floats(1e-3, 99), st.floats(-1e-5, 1e-5))
def test_two_roundings_of_values_within_the_tolerance_agree(value: float, off: float) -> None:
    one, other = (f"K differs by {x:.3g} from 1.5" for x in (value, value + off))
    assert same_but_figures(one, other, TOLERANCE)


@given(st.floats(1e-2, 99), st.floats(1.03, 9))
def test_figures_three_percent_apart_differ(value: float, factor: float) -> None:
    one, other = (f"by {x:.3g}" for x in (value, value * factor))
    assert not same_but_figures(one, other, TOLERANCE)
