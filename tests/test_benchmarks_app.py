"""The benchmarks of the app measure what they say, on a server of their own."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.TextInput_pb2 import TextInput

from benchmarks.app_client import PROMPTS, Control, visiting
from benchmarks.app_latency import TARGET_MISSED, Row, main, table, time_in_server, verdict
from benchmarks.app_server import AppServer, app_server
from benchmarks.app_visitors import Waits, crowd, met, percentile, report
from tinydec.ui.pages import CATALOGUE

ROW = Row("kv_cache", 15, 12, 48.0, 31.0, ("prompt", 55.0), charts=1, browser=290.0)


def run_apart(work: Any) -> Any:
    """Run a coroutine in a thread of its own: a browser test may have left a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"server": 100.1}, False),
        ({"browser": 300.1}, False),
        ({"browser": 300.1, "charts": 2}, True),
        ({"browser": 400.1, "charts": 2}, False),
        ({"browser": None, "charts": None}, True),
    ],
)
def test_a_page_meets_both_targets_or_misses(change: dict, good: bool) -> None:
    row = replace(ROW, **change)
    assert row.met == good
    assert verdict([ROW, row]) == (0 if good else TARGET_MISSED)
    assert table([row]).splitlines()[1].endswith("  met" if good else "  not met")


def test_wait_that_95_of_100_do_not_exceed() -> None:
    # 1 to 21: 20 steps of 5 % each; the 19th ends at 20.
    assert percentile([float(n) for n in range(21, 0, -1)]) == pytest.approx(20)
    assert percentile([7.0]) == 7


def test_first_views_are_not_counted_and_a_failed_page_is_a_miss() -> None:
    waits = Waits(opened=[9.0], changed={"memory": [0.1, 0.2]}, switched={"audit": [0.3]})
    assert sorted(waits.counted) == [0.1, 0.2, 0.3]
    assert met(waits)
    assert "p95 of 600 ms or less: met" in report(waits)
    assert not met(replace(waits, failures=["memory: expected"]))
    assert not met(replace(waits, changed={"memory": [0.7]}))
    assert not met(Waits(opened=[0.1]))


def test_values_lie_within_a_controls_ends() -> None:
    slider = Control("i", "top_p", "slider", Slider(min=0.05, max=1.0, step=0.05))
    values = [state.double_array_value.data[0] for state in slider.states()]
    assert (values[0], values[-1]) == (0.05, 1.0)
    assert values == sorted(set(values))
    assert all(round(value / 0.05, 6).is_integer() for value in values)
    texts = Control("i", "mem_batch", "slider", Slider(min=0, max=1, step=1, options=["1", "8"]))
    assert [state.string_array_value.data[0] for state in texts.states()] == ["1", "8"]
    prompt = Control("i", "prompt", "text_input", TextInput())
    assert [state.string_value for state in prompt.states()] == list(PROMPTS)
    assert Control("i", "other", "text_input", TextInput()).states() == []


@pytest.fixture(scope="module")
def server():
    with app_server() as running:
        yield running


def test_a_change_reaches_the_page(server: AppServer) -> None:
    async def look() -> None:
        async with visiting(server) as visit:
            await visit.open("", {})
            assert set(visit.pages) == {"", *(i.url_path for i in CATALOGUE.existing()[1:])}
            await visit.open("decoding_policy", {"policy": "sample"})
            before, state = visit.drawn, visit.controls["seed"].states()[3]
            assert await visit.change(state) > 0
            changed = visit.drawn
            assert changed != before
            assert await visit.change(state) > 0
            assert visit.exceptions == []

    run_apart(look())


def test_pages_controls_are_changed_at_least_as_often_as_asked(server: AppServer) -> None:
    info = CATALOGUE.find("kv_cache")
    row = run_apart(time_in_server(server, info, 9))
    assert row.changes >= 9
    assert 0 < row.redrawn <= row.changes
    assert 0 < row.server < 60_000
    assert (row.charts, row.browser) == (None, None)


def test_visitors_come_act_and_leave(server: AppServer) -> None:
    waits = run_apart(crowd(server, 3, 2.0, 0.3, seed=1))
    assert len(waits.opened) == 3
    assert len(waits.counted) >= 3
    assert waits.failures == []


def test_unknown_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--page", "nowhere"])
    assert "nowhere" in capsys.readouterr().err
