"""The fault lab's page: predictions, revealing, symptoms, hidden cases, links, checkpoints."""

from __future__ import annotations

import pytest

from tests.app.lesson_page import odd_checkpoints
from tests.app.page_checks import html, open_page, sound
from tinydec import ui
from tinydec.evidence import lab_tables
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.evidence.lab_tables import VERDICTS, named
from tinydec.evidence.session import run_session
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.lab import downloads, mystery
from tinydec.verification.diagnosis import SYMPTOMS
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.mystery import draw_case
from tinydec.verification.lab.scenario import frozen_scenario

pytestmark = pytest.mark.filterwarnings("default")
ODD = odd_checkpoints()


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of AppTest is one on a cold server: the guard would run it twice.

    Without the guard a later run has the page alone, without the frame around it.
    """
    monkeypatch.setattr(ui, "begin", lambda: None)


def fine(app) -> None:
    """Nothing failed."""
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"faults": "F19", "reveal": "true"},
        {"faults": "positions-reset", "dtype": "float64", "tolerance": "1e-16", "reveal": "true"},
        {"faults": "F23", "variant": "rolling", "reveal": "true"},
        {"faults": "F29", "tolerance": "1", "reveal": "true", "dtype": "float16"},
        {"lab": "Symptom", "prompt": "<bos> A A A"},
        {"lab": "Mystery", "case": "200", "cache": "false"},
        {"lab": "Attic", "faults": "F0", "case": "1e400", "reveal": "perhaps", "symptom": "x"},
    ],
)
def test_any_state_of_the_controls_gives_a_page(query: dict[str, str]) -> None:
    sound(open_page("fault_lab", query))


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("mode", ["Fault", "Symptom", "Mystery"])
def test_any_checkpoint_gives_a_page(name: str, mode: str) -> None:
    app = open_page("fault_lab", {"lab": mode, "reveal": "true", "faults": "F20"}, ODD[name])
    sound(app)
    assert bool(app.info) == (name in ("one position", "largest"))


def test_every_fault_and_every_form_is_revealed(warm) -> None:
    app = open_page("fault_lab", {"reveal": "true"})
    for fault in FAULTS:
        app.selectbox(key="faults").set_value(named(fault)).run()
        app.toggle(key="reveal").set_value(True).run()
        fine(app)
        assert f"{named(fault)}: stage {fault.stage} = {fault.stage}, by" in html(app)
        assert f"Seen elsewhere: {fault.echoes}." in [t.value for t in app.text]
        for form in fault.variants:
            app.selectbox(key="variant").set_value(form).run()
            fine(app)
            assert f"({form}): stage {fault.stage} = {fault.stage}, by" in html(app)


def test_nothing_is_given_away_before_it_is_revealed(warm) -> None:
    app = open_page("fault_lab", {"faults": "F19"})
    assert "cache.reads" not in html(app)
    assert "stage 2" not in html(app)
    assert "faulty" not in html(app)
    app.toggle(key="reveal").set_value(True).run()
    assert "stage 2 = 2, by cache.reads" in html(app)
    guard = next(t.value for t in app.text if "guard on" in t.value)
    assert "layer of the cache: expected 1, found 0" in guard


def test_predictions_are_marked_and_do_not_carry_over_to_another_fault(warm) -> None:
    app = open_page("fault_lab", {"faults": "F14"})
    app.selectbox(key="_predict.F14.stage").set_value("2 Cache").run()
    app.selectbox(key="_predict.F14.part").set_value("yes").run()
    app.toggle(key="reveal").set_value(True).run()
    marks = html(app).split("Predictions and outcome")[1].split("</ul>")[0]
    assert "✓ you said 2 Cache" in marks
    assert "✗ you said yes" in marks
    assert "no prediction" in marks
    app.selectbox(key="faults").set_value("F15 wrong-axis").run()
    assert not app.toggle(key="reveal").value
    app.toggle(key="reveal").set_value(True).run()
    assert html(app).count("no prediction") == 3


def test_fault_that_cannot_act_says_what_it_needs() -> None:
    one_layer = odd_checkpoints()["strange tokens"]
    app = open_page("fault_lab", {"faults": "F19", "reveal": "true"}, ODD["one position"])
    assert "context of 1 position" in app.info[0].value
    app = open_page("fault_lab", {"faults": "F36", "reveal": "true"}, one_layer)
    assert "cannot act here" in html(app)
    assert any("<eos> at the last position" in t.value for t in app.text)


def test_each_symptom_leads_to_candidates_that_are_seen_to_happen(warm) -> None:
    app = open_page("fault_lab", {"lab": "Symptom"})
    for symptom in SYMPTOMS:
        app.selectbox(key="symptom").set_value(symptom.observation).run()
        fine(app)
        assert any(symptom.first_check in m.value for m in app.markdown)
        offered = app.selectbox(key="faults")
        assert offered.options
        assert f"{offered.value}: stage " in html(app)


def test_mystery_is_solved_stage_by_stage_and_its_link_names_no_fault(warm) -> None:
    number = next(n for n in range(1, 40) if len(_hidden(n)) == 2)
    app = open_page("fault_lab", {"lab": "Mystery", "case": str(number)})
    first, second = _hidden(number)
    assert not any(fault.id in str(dict(app.query_params)) for fault in (first, second))
    for fault, other in ((first, second), (second, first)):
        for _ in range(fault.stage):
            assert not app.error
            assert "_mystery.check" not in [b.key for b in app.button]
            app.button(key="_judge").click().run()
        assert html(app).count('<li class="failed">') == 1
        assert app.button(key="_judge").disabled
        assert any(f"Stage {fault.stage} failed: name" in m.value for m in app.markdown)
        answer = next(s for s in app.selectbox if s.key and s.key.endswith(".answer"))
        wrong = other if fault is first else fault_by_id("F01" if fault.id != "F01" else "F02")
        answer.set_value(named(wrong)).run()
        app.button(key="_mystery.check").click().run()
        if fault is first:
            assert "hidden too" in app.info[0].value
        else:
            assert "Not that one" in app.error[0].value
        answer = next(s for s in app.selectbox if s.key and s.key.endswith(".answer"))
        answer.set_value(named(fault)).run()
        app.button(key="_mystery.check").click().run()
        assert fault.what in app.success[-1].value
    assert any("Solved" in t.value for t in app.text)
    app.button(key=f"_see.{first.id}").click().run()
    fine(app)
    assert f"{named(first)}: stage {first.stage} = " in html(app)


def _hidden(number: int):
    lab = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)
    return draw_case(lab, number, FAULTS).faults


def test_another_case_starts_anew(warm) -> None:
    app = open_page("fault_lab", {"lab": "Mystery", "case": str(mystery.CASES)})
    app.button(key="_judge").click().run()
    assert html(app).count('<li class="waiting">') == 5
    app.button(key="_another").click().run()
    assert app.slider(key="case").value == 1
    assert html(app).count('<li class="waiting">') == 6


def test_kill_matrix_is_the_one_that_the_command_line_writes(
    warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = {}
    monkeypatch.setattr(
        downloads, "download", lambda label, data, file, **_: taken.update({file: data})
    )
    app = open_page("fault_lab", {"faults": "F19", "reveal": "true"})
    one = read_csv(taken["kill_matrix.csv"](), VERDICTS)
    assert one["fault"].tolist() == ["F19"]
    app.toggle(key="_all").set_value(True).run()
    written = taken["kill_matrix.csv"]()
    table = read_csv(written, VERDICTS)
    assert list(dict.fromkeys(table["fault"])) == [fault.id for fault in FAULTS]
    assert table["passed"].all()
    assert table["acts"].all()
    found = run_session(load_checkpoint(), RunSpec(), is_frozen=True)
    assert written == write_csv(lab_tables.verdicts(found.kills, found.refusals), VERDICTS)
