"""What each stop rule says, step by step, on the shipped checkpoint and on random ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generation.decoders import decoders, run_options
from tinydec.generation.generate import generate, run_request
from tinydec.generation.request import Request
from tinydec.generation.stop_rules import explain_stop, rule_checks
from tinydec.generation.stopping import STOP_REASONS
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec


@pytest.fixture(scope="module")
def shipped() -> Checkpoint:
    return load_checkpoint()


@given(data=st.data())
def test_first_rule_that_applies_is_the_recorded_one(data: st.DataObject) -> None:
    checkpoint = data.draw(decoders())
    options: dict[str, Any] = data.draw(run_options(checkpoint.config))
    trace = run_request(Request(checkpoint, **options))
    for step in trace.steps:
        checks = rule_checks(checkpoint, trace, step.index)
        assert tuple(check.rule for check in checks) == STOP_REASONS
        applying = [check.rule for check in checks if check.applies]
        assert applying[:1] == ([step.stop_reason] if step.stop_reason else [])
        assert [check.rule for check in checks if check.recorded] == applying[:1]


def test_several_rules_can_apply_at_one_step(shipped: Checkpoint) -> None:
    # <bos> A B D fills all 4 positions, returns <eos> as the first of at most 1 new token.
    prompt = ("<bos>", "A", "B", "D")
    trace = generate(shipped, RunSpec(prompt=prompt, max_new_tokens=1))
    checks = rule_checks(shipped, trace, 0)
    assert [check.applies for check in checks] == [True, False, True, True]
    assert [check.recorded for check in checks] == [True, False, False, False]
    assert [check.found for check in checks] == [
        "returned <eos>, ends at <eos>",
        "returned <eos>, stop tokens: none set",
        "consumed 4 of 4 positions",
        "returned 1 of 1",
    ]


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        (RunSpec(), "eos", "selected <eos>, the token that ends"),
        (RunSpec(prompt=("<bos>", "A", "A", "A")), "context", "all 4 positions are consumed: Y"),
        (RunSpec(max_new_tokens=1), "max_new_tokens", "1 of at most 1 new tokens"),
        (RunSpec(stop_tokens=("B",)), "stop_token", "selected the stop token B"),
    ],
)
def test_explanation_names_the_reason_with_its_numbers(
    shipped: Checkpoint, spec: RunSpec, reason: str, words: str
) -> None:
    trace = generate(shipped, spec)
    assert trace.stop_reason == reason
    assert words in explain_stop(shipped, trace)


def test_step_beyond_the_run_is_no_step(shipped: Checkpoint) -> None:
    trace = generate(shipped, RunSpec(max_new_tokens=1))
    with pytest.raises(IndexError):
        rule_checks(shipped, trace, 1)
