"""Each contract of the audit notices a forged record, and only its own."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tinydec.generation.stream import UniformStream
from tinydec.model.cache import CacheOwner, SlotTag
from tinydec.model.storage import load_checkpoint
from tinydec.verification.audit.checks import (
    FAILED,
    NOT_JUDGED,
    NOT_RECORDED,
    PASSED,
    STAGES,
    Finding,
    Where,
    in_order,
    judge,
)
from tinydec.verification.audit.report import AuditReport
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.scenario import frozen_scenario
from tinydec.verification.observation import (
    NanCount,
    PostCondition,
    Probe,
    Recording,
    StepObservation,
)

LAB = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)
CORRECT = LAB.correct


def with_step(change: Callable[[StepObservation], StepObservation], step: int = 1) -> Recording:
    """The correct recording with one step of its first run changed."""
    run = CORRECT.runs[0]
    steps = tuple(change(s) if s.index == step else s for s in run.steps)
    return replace(CORRECT, runs=(replace(run, steps=steps), *CORRECT.runs[1:]))


def with_layer(step: int = 1, layer: int = 1, **changes) -> Recording:
    def change(found: StepObservation) -> StepObservation:
        layers = tuple(
            replace(entry, **changes) if number == layer else entry
            for number, entry in enumerate(found.layers)
        )
        return replace(found, layers=layers)

    return with_step(change, step)


def with_block(step: int = 1, layer: int = 1, **changes) -> Recording:
    def change(found: StepObservation) -> StepObservation:
        blocks = list(found.activations.blocks)
        blocks[layer] = blocks[layer]._replace(**changes)
        return replace(found, activations=found.activations._replace(blocks=tuple(blocks)))

    return with_step(change, step)


def with_selection(**changes) -> Recording:
    return with_step(lambda found: replace(found, selection=replace(found.selection, **changes)))


def moved(array: np.ndarray, place: tuple[int, ...], by: float = 1e-2) -> np.ndarray:
    copy = array.copy()
    copy[place] += by
    return copy


STEP = CORRECT.runs[0].steps[1]
LAYER = STEP.layers[1]
BLOCK = STEP.activations.blocks[1]
SELECTION = STEP.selection
LAST = LAYER.length_after - 1


def overwritten() -> Recording:
    """An earlier row changed in the cache, and attention read the changed one."""
    keys = moved(LAYER.keys, (0, 0, 0))

    def change(found: StepObservation) -> StepObservation:
        layers = (found.layers[0], replace(found.layers[1], keys=keys))
        blocks = list(found.activations.blocks)
        blocks[1] = blocks[1]._replace(keys=keys[np.newaxis])
        activations = found.activations._replace(blocks=tuple(blocks))
        return replace(found, layers=layers, activations=activations)

    return with_step(change)


def beside_one_logit() -> Recording:
    rows = moved(STEP.activations.logit_rows, (0, 3))
    return with_step(
        lambda found: replace(found, activations=found.activations._replace(logit_rows=rows))
    )


def at_position(position: int) -> Recording:
    return with_step(
        lambda found: replace(found, activations=found.activations._replace(positions=(position,)))
    )


FORGERIES: dict[str, Callable[[], Recording]] = {
    "checkpoint.tensors": lambda: replace(CORRECT, tensors_digest="0" * 64),
    "checkpoint.mode": lambda: replace(CORRECT, mode="training"),
    "checkpoint.repeatable": lambda: replace(
        CORRECT,
        runs=(
            replace(
                CORRECT.runs[0], prompt_logits=moved(CORRECT.runs[0].prompt_logits, (1, 0), 1e-7)
            ),
            *CORRECT.runs[1:],
        ),
    ),
    "checkpoint.golden": lambda: replace(
        CORRECT,
        runs=(
            replace(CORRECT.runs[0], prompt_logits=CORRECT.runs[0].prompt_logits + 1),
            *CORRECT.runs[1:],
        ),
    ),
    "cache.layer": lambda: with_layer(tag=0),
    "cache.axes": lambda: with_layer(shares_memory=True),
    "cache.length": lambda: with_layer(length_before=LAYER.length_before - 1),
    "cache.rows": lambda: with_layer(values=moved(LAYER.values, (1, LAST, 1))),
    "cache.order": lambda: with_layer(slot_tags=LAYER.slot_tags[::-1]),
    "cache.width": lambda: with_block(
        scores=np.concatenate([BLOCK.scores, BLOCK.scores[..., :1]], axis=3)
    ),
    "cache.reads": lambda: with_block(values=moved(BLOCK.values, (0, 0, 0, 0))),
    "cache.post_conditions": lambda: replace(
        CORRECT, post_conditions=(PostCondition("reset", "lengths [0, 0]", "lengths [2, 2]"),)
    ),
    "position.checkpoint": lambda: with_step(
        lambda found: replace(found, owner=CacheOwner("f" * 64, "request-0"))
    ),
    "position.request": lambda: with_layer(
        slot_tags=(SlotTag("stranger", 0), *LAYER.slot_tags[1:])
    ),
    "position.index": lambda: at_position(0),
    "position.overwritten": overwritten,
    "position.refusals": lambda: replace(
        CORRECT, probes=(Probe("one more", "position", None, "computed"), *CORRECT.probes)
    ),
    "position.inputs": lambda: with_step(lambda found: replace(found, inputs=(0,))),
    "equivalence.nan": lambda: replace(CORRECT, nan_counts=(NanCount("batch", 0, 1, 2, 0),)),
    "equivalence.kv": lambda: with_block(q=BLOCK.q, k=moved(BLOCK.k, (0, 0, 0, 0))),
    "equivalence.attention": lambda: with_block(attention=moved(BLOCK.attention, (0, 0, 0, 0))),
    "equivalence.intermediates": lambda: with_block(mlp_hidden=moved(BLOCK.mlp_hidden, (0, 5))),
    "equivalence.logits": beside_one_logit,
    "policy.sum": lambda: with_selection(probabilities=SELECTION.probabilities * 0.5),
    "policy.probabilities": lambda: with_selection(probabilities=SELECTION.probabilities[::-1]),
    "policy.draws": lambda: with_selection(uniform=0.123),
    "policy.token": lambda: with_selection(token_id=0),
    "policy.stream": lambda: with_selection(
        state_before=UniformStream(5).state,
    ),
    "policy.domain": lambda: replace(
        CORRECT, probes=(Probe("temperature 0", "policy", None, "ran"), *CORRECT.probes)
    ),
    "stopping.reason": lambda: with_step(lambda found: replace(found, stop_reason="context")),
    "stopping.end": lambda: replace(
        CORRECT,
        runs=(replace(CORRECT.runs[0], steps=CORRECT.runs[0].steps[:-1]), *CORRECT.runs[1:]),
    ),
}

#: Forgeries that an earlier contract of the same or an earlier stage sees too.
SEEN_BEFORE = {
    "policy.stream": "policy.draws",
    "position.inputs": "position.inputs",
    "stopping.end": "policy.stream",
    "policy.token": "position.inputs",
}


def failed_ids(report: AuditReport) -> list[str]:
    return [check.id for check in report.checks if check.verdict == FAILED]


@pytest.mark.parametrize("contract", FORGERIES)
def test_a_forged_record_is_noticed_by_its_contract(contract: str) -> None:
    report = LAB.judge(FORGERIES[contract]())
    assert not report.passed
    failed = failed_ids(report)
    if contract in SEEN_BEFORE:
        assert SEEN_BEFORE[contract] in failed
    else:
        assert failed[0] == contract, failed
    check = report.first_failure
    assert check is not None
    assert check.observed
    assert check.expected
    assert check.observed != check.expected


def test_every_contract_has_a_forgery_but_digests_and_support() -> None:
    ids = {check.id for check in LAB.judge(CORRECT).checks}
    assert ids - set(FORGERIES) == {
        "checkpoint.config",
        "checkpoint.vocabulary",
        "policy.support",  # F30, F32 and F40 of the kill matrix
    }


def test_the_place_of_a_forged_row_is_named() -> None:
    check = LAB.judge(FORGERIES["cache.rows"]()).first_failure
    assert check is not None
    assert check.where == Where("sampled", step=1, layer=1)
    assert str(check.where) == "sampled, step 1, layer 1"


def test_stages_are_six_in_order_and_stop_at_the_first_failure() -> None:
    report = LAB.judge(FORGERIES["position.index"]())
    verdicts = [stage.verdict for stage in report.stages]
    assert verdicts == [PASSED, PASSED, FAILED, NOT_JUDGED, NOT_JUDGED, NOT_JUDGED]
    assert [stage.title for stage in report.stages] == list(STAGES.values())
    assert report.stages[3].reason.startswith("stage 3 (position and ownership) failed")


def test_nothing_recorded_is_not_a_pass() -> None:
    check = judge("x", 2, "title", "expected", [], count=0)
    assert check.verdict == NOT_RECORDED
    assert not check.failed


def test_only_the_first_finding_is_told() -> None:
    findings = (Finding(str(n), "0", Where("run", n)) for n in range(1, 4))
    check = judge("x", 2, "title", "0", findings, count=3)
    assert check.verdict == FAILED
    assert check.observed == "1"
    assert check.where.step == 1


def test_all_stages_pass_when_nothing_is_found() -> None:
    passing = judge("x", 1, "title", "expected", [], count=1)
    stages = in_order([(number, lambda: (passing,)) for number in STAGES])
    assert [stage.verdict for stage in stages] == [PASSED] * 6
