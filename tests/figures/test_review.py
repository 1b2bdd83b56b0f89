"""The picture of a visit's score."""

from __future__ import annotations

from tinydec.figures.review import score_figure


def test_bars_are_the_counts_of_each_topic() -> None:
    figure = score_figure(["shapes", "memory"], [2, 0], [1, 3], [4, 0])
    parts = {bar.name: list(bar.x) for bar in figure.data}
    assert parts == {"right": [2, 0], "not yet": [1, 3], "open": [4, 0]}
    assert all(list(bar.y) == ["shapes 2/7", "memory 0/3"] for bar in figure.data)
    assert figure.layout.barmode == "stack"


def test_what_is_not_right_differs_by_more_than_colour() -> None:
    right, missed, left = score_figure(["shapes"], [1], [1], [1]).data
    assert missed.marker.pattern.shape == "/"
    assert right.marker.pattern.shape is None
    assert left.marker.color == "rgba(0, 0, 0, 0)"
    assert left.marker.line.width == 1
