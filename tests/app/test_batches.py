"""The page on batches: every control's ends, links, other checkpoints, downloads."""

from __future__ import annotations

import re

import pytest

from tests.app.lesson_page import odd_checkpoints
from tests.app.page_checks import html, open_page, sound
from tinydec import ui
from tinydec.evidence.batch_tables import ISOLATION
from tinydec.evidence.csv_format import read_csv
from tinydec.ui.lab import downloads
from tinydec.verification.lab.catalogue_batch import BATCH_FAULTS

pytestmark = pytest.mark.filterwarnings("default")
ODD = odd_checkpoints()


def verdict(app) -> str:
    """The sentence on all rows against their solo runs."""
    return next(t.value for t in app.text if "comparison" in t.value)


def lanes(app) -> dict[str, str]:
    """The text of each row's lane."""
    body = html(app).split('class="td-lanes"')[1].split("</table>")[0]
    rows = [re.sub(r"<[^>]+>", " ", row) for row in body.split("<tr>")[2:]]
    return {row.split()[0]: row for row in rows}


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"prompt": "<bos> A A A", "layout": "ragged"},
        {"neighbours": "0", "joins": "4", "leaves": "1"},
        {"neighbours": "5", "joins": "0", "leaves": "6", "batch_step": "4"},
        {"dtype": "float16", "policy": "sample", "temperature": "5", "cache": "false"},
        {"dtype": "float64", "tolerance": "1e-16", "max_new_tokens": "1"},
        {"stop_tokens": "A B C D X Y"},
        {"layout": "up", "neighbours": "1e400", "joins": "-1", "leaves": "x", "batch_step": "99"},
    ],
)
def test_any_state_of_the_controls_gives_a_page(query: dict[str, str]) -> None:
    sound(open_page("batches", query))


@pytest.mark.parametrize(("step", "noted"), [("4", False), ("5", True), ("16", True)])
def test_link_to_a_step_that_the_batch_does_not_reach_is_noted(step: str, noted: bool) -> None:
    app = open_page("batches", {"batch_step": step})
    sound(app)
    expected = "batch_step: expected an integer from 0 to 4, the steps of this run, found "
    assert (f"{expected}&#x27;{step}&#x27;" in html(app)) == noted


@pytest.mark.parametrize("name", ODD)
def test_any_checkpoint_gives_a_page_on_which_every_row_equals_its_solo_run(name: str) -> None:
    app = open_page("batches", uploaded=ODD[name])
    sound(app)
    assert verdict(app).startswith("All ")


@pytest.mark.parametrize("fault", BATCH_FAULTS, ids=lambda fault: fault.name)
def test_each_fault_of_a_batch_is_seen_in_some_row(fault) -> None:
    app = open_page("batches", {"faults": fault.id})
    sound(app)
    assert app.selectbox(key="faults").value == f"{fault.id} {fault.name}"
    assert "comparisons fail" in verdict(app)
    assert fault.what in app.warning[0].value
    assert ("guard would say" in app.warning[0].value) == (fault.guard is not None)


def test_correct_batch_passes_in_every_layout() -> None:
    assert verdict(open_page("batches")).startswith("All 18 comparisons pass")


def test_row_joins_and_leaves_when_the_controls_say() -> None:
    late = lanes(open_page("batches", {"joins": "2"}))["you"]
    assert "waits" not in late.split("→")[0]
    early = lanes(open_page("batches", {"leaves": "3"}))["you"]
    assert "cancelled" in early
    assert "cancelled" not in lanes(open_page("batches"))["you"]


def test_other_lanes_stay_the_same_whoever_joins_and_leaves() -> None:
    def tokens(app) -> dict[str, list[str]]:
        found = {name: re.findall(r"→\s+(\S+)", text) for name, text in lanes(app).items()}
        return {name: returned for name, returned in found.items() if name != "you"}

    alone = tokens(open_page("batches", {"joins": "4", "leaves": "4"}))
    assert tokens(open_page("batches", {"prompt": "<bos> X Y X", "seed": "7"})) == alone


def test_next_step_moves_through_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "begin", lambda: None)  # each run of AppTest is one on a cold server
    app = open_page("batches")
    for step in range(1, 5):
        app.button(key="_next").click().run()
        assert app.selectbox(key="batch_step").value == step
    assert app.button(key="_next").disabled
    app.slider(key="neighbours").set_value(0).run()
    assert not app.exception
    assert app.selectbox(key="batch_step").value == 0  # the batch has become shorter


def test_download_holds_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {}
    monkeypatch.setattr(
        downloads, "download", lambda label, data, file, **_: taken.update({file: data})
    )
    open_page("batches", {"neighbours": "2"})
    assert set(taken) == {
        "batch_slots.csv",
        "batch_lanes.csv",
        "batch_isolation.csv",
        "batch_stops.csv",
    }
    table = read_csv(taken["batch_isolation.csv"](), ISOLATION)
    assert len(table) == 3 * 3
    assert table["passed"].all()
