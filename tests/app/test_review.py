"""The review page through AppTest."""

from __future__ import annotations

import re

import pytest

from tests.app.lesson_page import odd_checkpoints
from tests.app.page_checks import html, open_page, sound
from tinydec import ui
from tinydec.ui.exercise import Task
from tinydec.ui.exercises import catalogue
from tinydec.ui.exercises.catalogue import EXERCISES, TOPICS

pytestmark = pytest.mark.filterwarnings("default")
ODD = odd_checkpoints()


def results(app) -> dict[str, str]:
    """Result by exercise, as the table shows it."""
    (table,) = re.findall(
        r"<caption>Every exercise with its result</caption>(.*?)</table>", html(app), re.DOTALL
    )
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    return {row[1]: row[3] for row in rows}


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_shows_its_exercises_and_the_score(topic: str) -> None:
    app = open_page("review", {"topic": topic})
    sound(app)
    titles = [e.title for e in EXERCISES if e.topic == topic]
    assert [h.value for h in app.header] == [*titles, "All exercises", "Glossary"]
    assert f"0 / {len(EXERCISES)} = 0% so far" in html(app)
    assert len(app.get("plotly_chart")) == 1
    assert set(results(app).values()) == {"open"}


def test_a_checked_answer_counts_at_once_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    seven = Task("Seven?", 7, "Seven.", "It is 7.")
    known = [e for e in EXERCISES if e.topic == "memory"]
    own = catalogue.Exercise("review.test", "Seven", "memory", "memory", lambda _: lambda _: seven)
    monkeypatch.setattr(catalogue, "EXERCISES", (own, *known))
    # Every run of AppTest is one on a cold server: the guard runs it twice, and a click is lost.
    monkeypatch.setattr(ui, "begin", lambda: None)
    app = open_page("review", {"topic": "memory"})
    app.text_input(key="_review.test.0.answer").set_value("6").run()
    app.button(key="_review.test.check").click().run()
    assert results(app)["Seven"] == "not yet"
    app.text_input(key="_review.test.0.answer").set_value("7").run()
    app.button(key="_review.test.check").click().run()
    assert app.success[0].value == "Right."
    assert results(app)["Seven"] == "right"
    assert f"1 / {len(known) + 1} = " in html(app)
    app.segmented_control(key="topic").set_value("shapes").run()
    assert "Seven" not in [h.value for h in app.header]
    assert results(app)["Seven"] == "right"


def test_a_score_from_a_lesson_counts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "begin", lambda: None)
    app = open_page("generation_loop")
    app.text_input(key="_loop.consumed.0.answer").set_value("-1").run()
    app.button(key="_loop.consumed.check").click().run()
    app.switch_page("pages/review.py").run()
    assert results(app)["Count the inputs"] == "not yet"
    assert results(app)["Name the stop reason"] == "open"


def test_new_numbers_change_the_question() -> None:
    app = open_page("review", {"topic": "memory"})
    before = [m.value for m in app.markdown]
    app.button(key="_review.fit.new").click().run()
    sound(app)
    assert [m.value for m in app.markdown] != before


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("name", ODD)
def test_any_checkpoint_has_its_review(name: str, topic: str) -> None:
    sound(open_page("review", {"topic": topic}, uploaded=ODD[name]))


@pytest.mark.parametrize("junk", ["", "nonsense", "Memory", "💥"])
def test_junk_topic_gives_the_first(junk: str) -> None:
    app = open_page("review", {"topic": junk})
    sound(app)
    assert app.header[0].value == EXERCISES[0].title


def test_downloads_hold_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {}
    monkeypatch.setattr(ui, "download", lambda label, data, name, **_: taken.update({name: data}))
    sound(open_page("review"))
    exercises = taken["exercises.csv"]()
    assert exercises.startswith(b"topic,exercise,lesson,result\npolicies,Turn the loop once,Home,")
    assert exercises.count(b"\n") == 1 + len(EXERCISES)
    glossary = taken["glossary.csv"]()
    assert b"\nL,2," in glossary
    assert b"\nprefix,," in glossary
