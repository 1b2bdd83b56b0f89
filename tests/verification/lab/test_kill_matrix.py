"""Every fault is caught at its own stage, with every earlier stage green."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from tests.random_sessions import random_laboratory, session
from tinydec.errors import InputError
from tinydec.model.storage import load_checkpoint
from tinydec.verification.audit.checks import FAILED, NOT_JUDGED, PASSED, Check
from tinydec.verification.audit.report import audit
from tinydec.verification.audit.stage_checkpoint import trusted_identity
from tinydec.verification.compare import audit_tolerance
from tinydec.verification.faults import FAULTS, fault_by_id
from tinydec.verification.lab import kill_matrix as module
from tinydec.verification.lab.fault import BATCH
from tinydec.verification.lab.intervention import merged
from tinydec.verification.lab.kill_matrix import (
    golden_from_scalar_loop,
    kill,
    kill_matrix,
    laboratory,
    refusal,
    remembered,
)
from tinydec.verification.lab.recorder import record
from tinydec.verification.lab.scenario import drawn_scenario, frozen_scenario, scenario_for

FROZEN = laboratory(load_checkpoint(), frozen_scenario(), 1e-5)
ROWS = kill_matrix(FROZEN, FAULTS)

#: Stage of each fault, from the list of faults that the lab implements.
STAGES = {
    1: "F04 F05 F06 F29",
    2: "F07 F08 F09 F10 F11 F12 F13 F14 F15 F19 F20",
    3: "F01 F02 F03 F16 F17 F18 F21 F22 F23 F27 F37 F42",
    4: "F24 F25 F26 F28",
    5: "F30 F31 F32 F33 F34 F35 F39 F40 F41",
    6: "F36 F38",
}
SILENT = {"F02", "F04", "F05", "F13", "F14"}
MODELS = 200
SHARDS = 8


def test_all_42_faults_are_there_with_their_stages() -> None:
    assert [fault.id for fault in FAULTS] == [f"F{number:02}" for number in range(1, 43)]
    assert len({fault.name for fault in FAULTS}) == 42
    for stage, ids in STAGES.items():
        assert {fault.id for fault in FAULTS if fault.stage == stage} == set(ids.split())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault.name)
def test_the_frozen_checkpoint_catches_each_at_its_own_stage(row: module.KillRow) -> None:
    assert row.acts
    assert row.passed
    assert row.stage_found == row.fault.stage
    assert row.caught_by
    assert row.observed != row.expected


def test_silent_faults_do_not_move_the_logits_and_all_faults_of_values_do() -> None:
    assert {row.fault.id for row in ROWS if row.silent} == SILENT
    for row in ROWS:
        if row.fault.id in SILENT:
            assert row.max_abs_error <= FROZEN.tolerance
    moving = {row.fault.id for row in ROWS if row.max_abs_error > FROZEN.tolerance}
    assert moving >= {"F01", "F03", "F07", "F08", "F09", "F10", "F11", "F12", "F15", "F16"}
    assert moving >= {"F17", "F19", "F20", "F21", "F22", "F24", "F25", "F26", "F27", "F42"}


@pytest.mark.parametrize(
    ("fault", "variant"),
    [(fault, variant) for fault in FAULTS for variant in fault.variants],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_each_variant_is_caught_at_the_same_stage(fault, variant) -> None:
    row = kill(FROZEN, fault, variant)
    assert row.acts
    assert row.passed
    assert row.variant == variant


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(InputError, match="variant of wrong-layer: expected none, found 'x'"):
        kill(FROZEN, fault_by_id("F19"), "x")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_earlier_stages_are_green_and_later_ones_not_judged(fault) -> None:
    report = FROZEN.judge(FROZEN.run(fault.intervention))
    for stage in report.stages:
        if stage.number < fault.stage:
            assert stage.verdict == PASSED
        elif stage.number == fault.stage:
            assert stage.verdict == FAILED
        else:
            assert stage.verdict == NOT_JUDGED
            assert f"stage {fault.stage}" in stage.reason
            assert all(check.verdict == NOT_JUDGED for check in stage.checks)


def test_without_a_fault_nothing_is_found() -> None:
    report = FROZEN.judge(FROZEN.correct)
    assert report.passed
    assert [stage.verdict for stage in report.stages] == [PASSED] * 6
    assert all(check.verdict == PASSED for check in report.checks)
    assert len(report.checks) > 25


def test_guards_refuse_what_they_are_named_for_and_say_what_they_expected() -> None:
    guarded = [fault for fault in FAULTS if fault.guard is not None]
    assert len(guarded) >= 12
    for fault in FAULTS:
        message = refusal(FROZEN, fault)
        if fault.guard is None:
            assert message is None
        else:
            assert message is not None
            assert "expected" in message
            assert "found" in message


# Break a check, and the fault that it alone sees goes unseen ------------------------------------


@pytest.mark.parametrize(
    ("contract", "fault_id"),
    [
        ("cache.layer", "F20"),
        ("cache.length", "F13"),
        ("cache.rows", "F11"),
        ("cache.order", "F14"),
        ("cache.width", "F12"),
        ("cache.reads", "F19"),
        ("position.checkpoint", "F02"),
        ("position.request", "F21"),
        ("position.index", "F16"),
        ("position.refusals", "F23"),
        ("checkpoint.golden", "F29"),
        ("checkpoint.vocabulary", "F05"),
        ("equivalence.nan", "F28"),
        ("policy.sum", "F31"),
        ("policy.stream", "F34"),
        ("policy.domain", "F41"),
        ("stopping.reason", "F36"),
    ],
)
def test_a_check_that_always_passes_lets_its_fault_through(contract, fault_id, monkeypatch) -> None:
    from tinydec.verification.audit import checks

    correct = checks.judge

    def blind(check_id: str, *args, **kwargs) -> Check:
        if check_id == contract:
            args = (*args[:3], [])
        return correct(check_id, *args, **kwargs)

    for name in ("checkpoint", "cache", "position", "equivalence", "policy", "stopping"):
        monkeypatch.setattr(f"tinydec.verification.audit.stage_{name}.judge", blind)
    row = kill(FROZEN, fault_by_id(fault_id))
    assert row.caught_by != contract
    if fault_id in {"F13", "F14", "F02", "F05", "F23", "F34", "F36", "F41", "F28", "F12"}:
        assert not row.passed or row.caught_by.split(".")[0] == contract.split(".")[0]


def test_a_recording_with_a_forged_value_is_noticed() -> None:
    from dataclasses import replace

    run = FROZEN.correct.runs[0]
    layer = run.steps[1].layers[1]
    forged = layer.values.copy()
    forged[0, 0, 0] += 1e-3
    layers = (run.steps[1].layers[0], replace(layer, values=forged))
    steps = (run.steps[0], replace(run.steps[1], layers=layers), *run.steps[2:])
    recording = replace(FROZEN.correct, runs=(replace(run, steps=steps), *FROZEN.correct.runs[1:]))
    failure = FROZEN.judge(recording).first_failure
    assert failure is not None
    assert failure.id == "cache.reads"
    assert failure.where.layer == 1


# Two faults at once ------------------------------------------------------------------------------

PAIRS = [
    (first, second) for first, second in combinations(FAULTS, 2) if first.stage != second.stage
]


@pytest.mark.parametrize("shard", range(4))
def test_of_two_faults_from_different_stages_the_earlier_is_named_then_the_other(shard) -> None:
    for one, other in PAIRS[shard::4]:
        early, late = sorted((one, other), key=lambda fault: fault.stage)
        solo = early.part != BATCH and late.part != BATCH
        part = "request" if solo else None
        both = FROZEN.run(merged(early.intervention, late.intervention), part)
        failure = FROZEN.judge(both).first_failure
        assert failure is not None, (early.id, late.id)
        assert failure.stage == early.stage, (early.id, late.id, failure)
        alone = FROZEN.judge(FROZEN.run(late.intervention, part)).first_failure
        assert alone is not None
        assert alone.stage == late.stage


# Random models -----------------------------------------------------------------------------------


def permits(fault_id: str, checkpoint) -> bool:
    """Whether a model's shape lets a fault act at all."""
    return fault_id != "F15" or checkpoint.config.n_head > 1


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_models_of_random_shapes_catch_each_fault_at_its_own_stage(shard) -> None:
    seeds = range(shard, MODELS, SHARDS)
    acted: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    for seed in seeds:
        lab = random_laboratory(seed)
        clean = lab.judge(lab.correct)
        assert clean.passed, (seed, clean.first_failure)
        for row in kill_matrix(lab, FAULTS):
            assert row.passed, (seed, row)
            if row.fault.id in SILENT and row.acts:
                assert row.silent, (seed, row)
            acted[row.fault.id] += row.acts
            allowed[row.fault.id] += permits(row.fault.id, lab.checkpoint)
    for fault in FAULTS:
        assert acted[fault.id] >= allowed[fault.id] / 2, (fault.id, acted[fault.id])
    print(f"models {len(seeds)}: " + " ".join(f"{f.id} {acted[f.id]}" for f in FAULTS))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_random_models_without_a_fault_give_no_finding_in_any_format(dtype) -> None:
    for seed in range(MODELS):
        checkpoint, scenario = session(seed)
        cast = checkpoint.cast(dtype)
        tolerance = audit_tolerance(dtype, cast.config.n_embd)
        lab = laboratory(cast, scenario, tolerance)
        layouts = {run.name.split(", ")[1] for run in lab.correct.rows}
        assert layouts == {"left", "right", "ragged"}
        report = lab.judge(lab.correct)
        assert report.passed, (seed, report.first_failure)


def test_sessions_vary_in_every_size() -> None:
    configs = [session(seed)[0].config for seed in range(40)]
    assert {config.n_layer for config in configs} == {2, 3, 4}
    assert {config.n_head for config in configs} == {1, 2, 3, 4}
    assert len({config.n_positions for config in configs}) > 8
    assert min(config.n_embd for config in configs) >= 4


def test_where_a_fault_cannot_act_it_is_not_counted_as_caught() -> None:
    checkpoint, scenario = next(
        found for found in map(session, range(40)) if found[0].config.n_head == 1
    )
    row = kill(laboratory(checkpoint, scenario, 1e-9), fault_by_id("F15"))
    assert not row.acts
    assert row.stage_found is None
    assert row.passed
    assert not row.silent


def test_a_golden_function_remembers_its_answers() -> None:
    calls = []

    def golden(ids: tuple[int, ...]) -> np.ndarray:
        calls.append(ids)
        return np.zeros(3)

    source = remembered(golden)
    source((1, 2))
    source((1, 2))
    source((3,))
    assert calls == [(1, 2), (3,)]


def test_the_scalar_loop_is_the_golden_source_of_the_lab() -> None:
    golden = golden_from_scalar_loop(FROZEN.checkpoint)
    report = audit(FROZEN.correct, trusted_identity(FROZEN.checkpoint, golden), 1e-5)
    assert report.passed
    wrong = trusted_identity(FROZEN.checkpoint, lambda ids: golden(ids) + 1e-3)
    failure = audit(FROZEN.correct, wrong, 1e-5).first_failure
    assert failure is not None
    assert failure.id == "checkpoint.golden"


def test_the_session_fits_the_checkpoint() -> None:
    assert scenario_for(load_checkpoint()) == frozen_scenario()
    checkpoint, _ = session(3)
    assert scenario_for(checkpoint, 5) == drawn_scenario(checkpoint, 5)
    assert scenario_for(checkpoint, 5) != scenario_for(checkpoint, 6)
    assert record(checkpoint, scenario_for(checkpoint)).runs
