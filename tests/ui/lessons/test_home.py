"""The cards of Home, and published beside measured."""

import random
from dataclasses import replace

import pytest

from tests.generation.decoders import decoder
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.published import compare_published
from tinydec.generation.generate import generate
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.lessons import home


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return run_audit(load_checkpoint())


def test_cards_follow_the_report(report: AuditReport) -> None:
    cards = {card.name: card for card in home.verdict_cards(report, [])}
    assert len(cards) == 6
    assert all(card.good for card in cards.values())
    assert cards["Cache at 4 tokens"].verdict == "64 for each token"
    run = report.runs[0]
    broken = replace(
        report,
        equivalence=replace(report.equivalence, tolerance=1e-16),
        runs=(replace(run, full=report.runs[1].full), *report.runs[1:]),
        memory=(*report.memory[:-1], replace(report.memory[-1], valid_bytes=255)),
    )
    worse = {card.name: card for card in home.verdict_cards(broken, [])}
    assert worse["Largest error"].good is False
    assert (worse["Both traces"].good, worse["Both traces"].value) == (False, "1 of 2")
    assert worse["Cache at 4 tokens"].good is False


def test_cards_link_only_to_pages_that_exist(report: AuditReport) -> None:
    assert {card.page for card in home.verdict_cards(report, [])} == {""}
    some = [card.page for card in home.verdict_cards(report, ["equivalence", "memory"])]
    assert some == ["equivalence"] * 4 + ["", "memory"]
    every = home.verdict_cards(report, ["equivalence", "memory", "fault_lab", "generation_loop"])
    assert [card.page for card in every][2:5] == ["fault_lab", "fault_lab", "generation_loop"]


def test_failure_that_cannot_act_has_no_verdict() -> None:
    one_layer = decoder(ModelConfig(7, 5, 6, 1, 3, 11))
    found = home.audit(one_layer, RunSpec())
    assert isinstance(found, AuditReport)
    cards = {card.name: card for card in home.verdict_cards(found, [])}
    assert cards["Wrong layer's cache"].value == "cannot act"
    assert cards["Wrong layer's cache"].good is None


def test_audit_runs_in_the_chosen_format_or_says_why_not() -> None:
    shipped = load_checkpoint()
    found = home.audit(shipped, RunSpec(dtype="float64", tolerance=1e-9))
    assert isinstance(found, AuditReport)
    assert (found.spec.dtype, found.tolerance) == ("float64", 1e-9)
    large = decoder(ModelConfig(3, 2049, 2, 1, 1, 2))
    assert "expected a context of at most" in str(home.audit(large, RunSpec()))


def test_published_values_keep_their_digits(report: AuditReport) -> None:
    table = home.published_frame(compare_published(report)).set_index("quantity")
    assert table["published"]["logit error when every position is reset to zero"] == "23.0252"
    assert table["published"]["cache payload at T = 4"] == "256 bytes"
    assert table["compared"]["greedy trace"] == "✓ same"
    other = [
        replace(c, measured="x", same=False) if c.published.id == "greedy_trace" else c
        for c in compare_published(report)
    ]
    changed = home.published_frame(tuple(other)).set_index("quantity")
    assert changed["compared"]["greedy trace"] == "✗ differs"


@pytest.mark.parametrize("seed", range(7))
def test_exercise_asks_for_what_greedy_returns(seed: int) -> None:
    checkpoint = load_checkpoint()
    task = home.greedy_task(checkpoint, random.Random(seed))
    prompt = tuple(task.question.split("`")[1].split())
    first = generate(checkpoint, RunSpec(prompt=prompt)).steps[0]
    assert task.answer == checkpoint.vocabulary.tokens[first.returned_id]
    assert task.answer in task.choices
    assert f"{first.selection.logits.max():.3f}" in task.question
