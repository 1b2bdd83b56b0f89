"""Panels side by side, and the common look."""

from itertools import pairwise

import pytest

from tinydec.figures.panels import assemble, axis_id, panel_title, spans
from tinydec.figures.style import AXIS, layout


@pytest.mark.parametrize(("count", "gap"), [(1, 0.1), (2, 0.06), (5, 0.025)])
def test_panels_are_equally_wide_and_fill_the_width(count: int, gap: float) -> None:
    found = spans(count, gap)
    assert found[0][0] == 0
    assert found[-1][1] == pytest.approx(1)
    assert {round(high - low, 12) for low, high in found} == {
        round((1 - gap * (count - 1)) / count, 12)
    }
    assert all(b[0] - a[1] == pytest.approx(gap) for a, b in pairwise(found))


def test_axes_are_named_as_plotly_names_them() -> None:
    assert [axis_id("x", n) for n in (1, 2, 11)] == ["x", "x2", "x11"]


def test_figure_has_the_common_look_and_its_own_axes() -> None:
    trace = {"type": "bar", "x": [1], "y": [0], "xaxis": "x2"}
    title = panel_title("two", (0.5, 1.0))
    figure = assemble(
        [trace], [{"domain": (0, 0.4)}, {"domain": (0.5, 1)}], [{}], [title], height=123
    )
    assert figure.layout.height == 123
    assert figure.layout.font.family == layout()["font"]["family"]
    for axis in (figure.layout.xaxis, figure.layout.xaxis2, figure.layout.yaxis):
        assert axis.fixedrange is True
        assert axis.gridcolor == AXIS["gridcolor"]
    assert figure.layout.xaxis2.domain == (0.5, 1)
    assert figure.layout.annotations[0].x == 0.75


def test_misspelt_property_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid property"):
        assemble([{"type": "bar", "colour": "red"}], [{}], [{}], [], height=100)
