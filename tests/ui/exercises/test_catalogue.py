"""Every exercise of the app is in the catalogue, and each can be drawn on any checkpoint."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.app.lesson_page import odd_checkpoints
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.current import CurrentRun
from tinydec.ui.exercise import is_right
from tinydec.ui.exercises.catalogue import EXERCISES, TOPICS, Score, fitting, score_by_topic
from tinydec.ui.pages import CATALOGUE

CHECKPOINTS = {"shipped": load_checkpoint()} | odd_checkpoints()
_CALL = re.compile(r'ui\.exercise\(\s*"([^"]+)"')


def test_every_topic_has_at_least_two_exercises() -> None:
    counts = {topic: [e.topic for e in EXERCISES].count(topic) for topic in TOPICS}
    assert min(counts.values()) >= 2
    assert sum(counts.values()) == len(EXERCISES) == len({e.key for e in EXERCISES})


def test_every_exercise_of_every_page_is_listed(repository: Path) -> None:
    on_pages = {
        key: info.url_path
        for info in CATALOGUE.existing()
        for key in _CALL.findall((repository / info.path).read_text(encoding="utf-8"))
    }
    assert len(on_pages) > 10
    listed = {e.key: e.page for e in EXERCISES}
    assert {key: listed.get(key) for key in on_pages} == on_pages
    own = {key for key in listed if key.startswith("review.")}  # some stand on lessons too
    assert set(listed) - set(on_pages) <= own


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.key)
def test_numbers_can_be_drawn_anew(exercise, name: str) -> None:
    checkpoint = CHECKPOINTS[name]
    if exercise not in fitting(checkpoint):
        assert checkpoint.config.n_positions < exercise.context
        return
    draw = exercise.draw(CurrentRun(RunSpec(), checkpoint, 0, ()))
    tasks = [draw(random.Random(seed)) for seed in range(12 if name == "shipped" else 2)]
    for task in tasks:
        assert is_right(task, task.answer)
        assert task.hint
        assert task.solution
        assert not task.choices or task.answer in task.choices
    assert draw(random.Random(0)) == tasks[0]
    if name == "shipped":
        assert len({(task.question, task.choices) for task in tasks}) > 2


def test_scores_count_right_tried_and_open_by_topic() -> None:
    known = {"home.greedy": True, "policy.interval": False, "review.fit": True}
    scores = {s.topic: s for s in score_by_topic(EXERCISES, known)}
    assert scores["policies"] == Score("policies", 1, 1, 1)
    assert scores["memory"].right == 1
    assert scores["scores"].untouched == scores["scores"].total
    assert sum(s.total for s in scores.values()) == len(EXERCISES)
