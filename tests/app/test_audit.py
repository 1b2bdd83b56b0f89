"""The audit's page: stages, faults, links, other checkpoints, downloads."""

from __future__ import annotations

import re

import pytest

from tests.app.lesson_page import odd_checkpoints
from tests.app.page_checks import html, open_page, sound
from tinydec import ui
from tinydec.evidence.csv_format import read_csv
from tinydec.evidence.lab_tables import CHECKS, named
from tinydec.ui.lab import downloads
from tinydec.verification.faults import FAULTS, fault_by_id

pytestmark = pytest.mark.filterwarnings("default")
ODD = odd_checkpoints()


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of AppTest is one on a cold server: the guard would run it twice."""
    monkeypatch.setattr(ui, "begin", lambda: None)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"stage": "0"},
        {"stage": "3", "faults": "F42", "second": "F05 wrong-vocabulary"},
        {"dtype": "float16"},
        {"dtype": "float64", "tolerance": "1e-16", "faults": "F14"},
        {"tolerance": "1", "faults": "F19"},
        {"prompt": "<bos> A A A", "policy": "sample", "cache": "false", "step": "3"},
        {"faults": "F99", "second": "nothing", "stage": "7"},
        {"faults": "F07 F10", "stop_tokens": "A Y"},  # two that need much room in one cache
    ],
)
def test_any_state_of_the_controls_gives_a_page(query: dict[str, str]) -> None:
    sound(open_page("audit", query))


@pytest.mark.parametrize("name", ODD)
def test_any_checkpoint_gives_a_page_without_a_finding(name: str) -> None:
    app = open_page("audit", uploaded=ODD[name])
    sound(app)
    assert "34 checks pass" in html(app)


def test_correct_session_passes_all_six_stages() -> None:
    found = html(open_page("audit"))
    assert found.count('<li class="passed">') == 6
    assert "✗" not in found


def test_every_fault_fails_its_own_stage_and_those_behind_are_not_judged(warm) -> None:
    app = open_page("audit")
    for fault in FAULTS[::3]:
        app.selectbox(key="faults").set_value(named(fault)).run()
        assert not app.exception
        found = html(app)
        assert found.count('<li class="passed">') == fault.stage - 1
        assert found.count('<li class="failed">') == 1
        assert found.count('<li class="unjudged">') == 6 - fault.stage
        causes = next(m.value for m in app.markdown if "Likely causes" in m.value)
        assert f"1. **{named(fault)}**" in causes


def test_stages_fill_in_one_by_one_and_hide_what_is_behind(warm) -> None:
    app = open_page("audit", {"stage": "0", "faults": "F16"})
    assert 'class="failed"' not in html(app)
    assert "position.index" not in html(app)
    for judged in range(1, 4):
        app.button(key="_next").click().run()
        assert html(app).count('<li class="waiting">') == 6 - judged
    assert html(app).count('<li class="failed">') == 1
    assert [h.value for h in app.header][:2] == ["Where values first differ", "Diagnosis"]
    app.button(key="_over").click().run()
    assert html(app).count('<li class="waiting">') == 6
    assert "Diagnosis" not in [h.value for h in app.header]


def test_link_names_two_faults_and_the_audit_the_earlier_one(warm) -> None:
    app = open_page("audit", {"faults": "F21 F19"})
    first = named(fault_by_id("F19"))
    assert app.selectbox(key="second").value == first
    assert "stage 2 fails (cache.reads); 3 to 6 not judged" in html(app)
    app.selectbox(key="second").set_value("none").run()
    assert "stage 3 fails (position.request); 4 to 6 not judged" in html(app)


def test_the_visitors_own_run_is_audited_first() -> None:
    found = html(open_page("audit", {"prompt": "<bos> X Y", "faults": "F16"}))
    assert "your run, step 0, position 1" in found
    assert "your run" not in html(open_page("audit", {"faults": "F38"})).split("td-stages")[1]


def test_download_holds_every_judged_check(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {}
    monkeypatch.setattr(
        downloads, "download", lambda label, data, file, **_: taken.update({file: data})
    )
    open_page("audit", {"faults": "F19", "stage": "2"})
    table = read_csv(taken["audit.csv"](), CHECKS)
    assert set(table["stage"]) == {1, 2}
    assert table[table["verdict"] == "failed"]["check"].tolist() == ["cache.reads"]


def test_your_run_is_shown_token_by_token() -> None:
    for query, returned in (({}, "ABD"), ({"policy": "sample", "seed": "41"}, "YXY")):
        chips = html(open_page("audit", query)).split('aria-label="Tokens of your run')[1]
        shown = re.findall(r'td-chip \w+" title="(.*?)"', chips.split("</ul>")[0])
        assert shown == ["&lt;bos&gt;", *returned, "&lt;eos&gt;"]
