"""Arrays for looking at a comparison, against loops over the same results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.contrast import (
    failure_errors,
    keeps_choice,
    logit_differences,
    most_hidden,
    of_fault,
)
from tinydec.verification.deliberate import run_deliberate_failures
from tinydec.verification.equivalence import verify_prefixes

FROZEN = load_checkpoint()
REPORT = verify_prefixes(FROZEN)
FAILURES = run_deliberate_failures(FROZEN)
RESET = of_fault(FAILURES, "positions-reset")
LAYER = of_fault(FAILURES, "wrong-layer")


def test_differences_by_token_have_the_largest_error_of_each_prefix() -> None:
    differences = logit_differences(REPORT)
    assert differences.shape == (16, 8)
    largest = [max(split.max_abs_error for split in p.splits) for p in REPORT.prefixes]
    assert differences.max(axis=1).tolist() == largest
    assert [prefix.max_abs_error for prefix in REPORT.prefixes] == largest
    first = REPORT.prefixes[7]
    by_hand = [
        max(abs(float(split.logits[i]) - float(full)) for split in first.splits)
        for i, full in enumerate(first.logits)
    ]
    assert differences[7].tolist() == by_hand


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_largest_difference_of_all_is_the_reports_own(dtype: str) -> None:
    report = verify_prefixes(FROZEN.cast(dtype))
    assert logit_differences(report).max() == report.max_abs_error > 0


def test_a_reset_cannot_act_on_the_four_prefixes_of_one_token() -> None:
    errors = failure_errors(RESET)
    assert np.isnan(errors).sum() == 4
    assert [failure.case.length for failure in RESET if failure.cannot_act] == [1] * 4
    assert errors[1] == RESET[1].result.max_abs_error
    assert not np.isnan(failure_errors(LAYER)).any()


def test_a_fault_that_cannot_act_keeps_no_choice() -> None:
    assert not keeps_choice(RESET[0])
    assert RESET[0].result.full_argmax == RESET[0].result.cached_argmax


def test_a_wrong_layer_keeps_the_choice_on_most_prefixes_but_not_on_all() -> None:
    assert 8 < sum(map(keeps_choice, LAYER)) < 16


def test_most_hidden_prefix_keeps_its_choice_and_differs_everywhere() -> None:
    chosen = most_hidden(REPORT, LAYER)
    assert keeps_choice(LAYER[chosen])
    smallest = {
        index: min(
            abs(float(a) - float(b))
            for a, b in zip(prefix.logits, failure.result.logits, strict=True)
        )
        for index, (prefix, failure) in enumerate(zip(REPORT.prefixes, LAYER, strict=True))
        if keeps_choice(failure)
    }
    assert chosen == max(smallest, key=lambda index: smallest[index])
    assert smallest[chosen] > 1e-2
    assert len(set(smallest.values())) > 3


def test_one_layer_has_no_wrong_layer_and_falls_back_to_the_first_prefix() -> None:
    tiny = random_checkpoint(ModelConfig(5, 3, 4, 1, 2, 7), 1)
    report = verify_prefixes(tiny)
    failures = of_fault(run_deliberate_failures(tiny), "wrong-layer")
    assert all(math.isnan(error) for error in failure_errors(failures))
    assert most_hidden(report, failures) == 0
