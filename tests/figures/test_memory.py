"""Pictures of memory and work: their numbers are those they were given."""

from __future__ import annotations

import math

import pytest

from tinydec.figures.memory import (
    Growth,
    footprint_figure,
    growth_figure,
    payload_figure,
    work_figure,
)
from tinydec.figures.palette import CACHED, ERROR, FULL, KEY

TOKENS = [0, 1, 2, 3]
LINES = {"float16": [0, 30, 60, 90], "float32": [0, 60, 120, 180]}
MEASURED = {"float16": [0, 30, 60, 91], "float32": [0, 60, 120, 180]}


def payload():
    return payload_figure(TOKENS, LINES, MEASURED, "float32", 240, 2, "60 T bytes")


def test_formula_is_a_line_and_measurement_a_marker_for_each_format() -> None:
    data = payload().data
    assert [t.mode for t in data] == ["lines", "markers"] * 2 + ["lines"]
    assert [list(t.y) for t in data[:4]] == [
        LINES["float16"],
        MEASURED["float16"],
        LINES["float32"],
        MEASURED["float32"],
    ]


def test_chosen_format_stands_out_by_width_and_name() -> None:
    data = payload().data
    assert (data[2].name, data[2].line.color) == ("60 T bytes, float32", KEY.mark)
    assert data[2].line.width > data[0].line.width
    assert data[0].line.color == FULL.mark
    assert data[0].line.dash != data[2].line.dash


def test_what_is_set_aside_is_a_limit() -> None:
    figure = payload()
    assert list(figure.data[-1].y) == [240, 240]
    assert figure.data[-1].line.color == ERROR.mark
    assert figure.layout.shapes[0].x0 == 2


MODELS = [
    Growth("a", [1, 10], [100, 1000], True),
    Growth("b", [1, 10, 100], [7, 70, 700], False),
    Growth("c", [1, 50], [13, 650], True),
]


@pytest.mark.parametrize("chosen", ["a", "b", "c"])
def test_every_model_is_drawn_and_the_chosen_one_on_top(chosen: str) -> None:
    figure = growth_figure(MODELS, chosen, 10, 500)
    lines = figure.data[:3]
    by_name = {t.customdata[0].split()[0]: t for t in lines}
    for model in MODELS:
        assert list(by_name[model.name].x) == list(model.tokens)
        assert list(by_name[model.name].y) == list(model.bytes)
    assert lines[-1].name == chosen
    assert lines[-1].line.color == CACHED.mark
    assert sum(bool(t.showlegend) for t in lines) == 2


def test_models_that_are_not_verified_are_dotted_and_say_so() -> None:
    lines = {t.customdata[0]: t for t in growth_figure(MODELS, "a", 10, 500).data[:3]}
    assert lines["b (not verified)"].line.dash == "dot"
    assert lines["c"].line.dash == "solid"


def test_memory_line_and_length_line_stand_at_their_numbers() -> None:
    figure = growth_figure(MODELS, "a", 10, 2**33)
    assert list(figure.data[3].y) == [2**33] * 2
    assert list(figure.data[3].x) == [1, 100]
    assert figure.layout.shapes[0].x0 == 10
    assert 10 ** figure.layout.yaxis.range[1] > 2**33
    ticks = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert (ticks[2**20], ticks[2**35]) == ("1 MiB", "32 GiB")


def test_work_is_drawn_step_by_step_and_summed() -> None:
    figure = work_figure([1, 2, 3], [5, 6, 7], [5, 12, 21], [5, 11, 18], [5, 17, 38])
    assert [(t.name, list(t.y), t.xaxis) for t in figure.data] == [
        ("without a cache", [5, 12, 21], "x"),
        ("with a cache", [5, 6, 7], "x"),
        ("without a cache", [5, 17, 38], "x2"),
        ("with a cache", [5, 11, 18], "x2"),
    ]
    assert figure.data[0].line.color == FULL.mark
    assert figure.data[1].line.color == CACHED.mark
    assert figure.data[0].marker.symbol != figure.data[1].marker.symbol


def test_footprint_bars_hold_the_bytes_and_say_them() -> None:
    figure = footprint_figure(["payload", "unused", "weights"], [256, 0, 123456])
    bar = figure.data[0]
    assert list(bar.x) == [256, 0, 123456]
    assert list(bar.text) == ["256", "0", "123 456"]
    assert bar.marker.color[0] == CACHED.mark != bar.marker.color[1]
    assert figure.layout.xaxis.range[1] > math.log10(123456)
