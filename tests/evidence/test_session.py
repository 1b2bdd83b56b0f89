"""The audited session: correct, faulty, on odd checkpoints, and refused where it is too large."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.random_models import random_checkpoint, random_tensors
from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport, audit_spec, default_spec, run_audit
from tinydec.evidence.session import (
    MOST_SCALAR_WORK,
    MOST_SCORES,
    AuditedSession,
    check_session_size,
    run_session,
    session_tolerance,
    with_faults,
)
from tinydec.generation.request import Request
from tinydec.model.batch_cache import LAYOUTS
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import RunSpec
from tinydec.verification.audit.checks import NOT_RECORDED

PRIMES = ModelConfig(vocab_size=7, n_positions=5, n_embd=6, n_layer=2, n_head=2, n_inner=11)


def faulty(*names: str) -> AuditedSession:
    checkpoint = load_checkpoint()
    return run_session(checkpoint, with_faults(default_spec(checkpoint), names), is_frozen=True)


def test_correct_session_passes_in_every_part(report: AuditReport) -> None:
    session = report.session
    assert session.passed
    assert session.isolated
    assert not session.missed
    assert not session.acts
    assert session.diagnosis is None
    assert [stage.verdict for stage in session.report.stages] == ["passed"] * 6
    assert session is report.session  # computed once


def test_isolation_names_every_row_in_every_layout(report: AuditReport) -> None:
    found = [(record.layout, record.row) for record in report.session.isolation]
    assert found == [(layout, row) for layout in LAYOUTS for row in "abcde"]


def test_solo_runs_of_the_rows_are_those_of_single_requests(report: AuditReport) -> None:
    """The isolation's steps are as many as each request takes alone."""
    session = report.session
    checkpoint = session.lab.checkpoint
    for number, row in enumerate(session.lab.scenario.rows):
        ids = checkpoint.vocabulary.encode(row.prompt)
        request = Request(checkpoint, ids, row.policy, row.seed, max_new_tokens=row.max_new_tokens)
        while request.stop_reason is None:
            request.step()
        assert session.isolation[number].steps == len(request.trace().steps)


@pytest.mark.parametrize("part", ["stages", "isolation", "fixture", "gate", "missing row"])
def test_verdict_needs_every_part(report: AuditReport, part: str) -> None:
    session, broken = report.session, faulty("F19")
    first = replace(session.isolation[0], stop_equal=False)
    changed = {
        "stages": replace(session, report=broken.report),
        "isolation": replace(session, isolation=(first, *session.isolation[1:])),
        "missing row": replace(session, isolation=session.isolation[1:]),
        "fixture": replace(session, fixture=replace(session.fixture, weakness="too flat")),
        "gate": session,
    }[part]
    gate = tuple(replace(c, passed=False) for c in report.gate) if part == "gate" else report.gate
    audited = replace(report, gate=gate)
    audited.__dict__["session"] = changed
    assert changed.passed is (part == "gate")
    assert not audited.passed
    assert report.passed


def test_batch_fault_breaks_the_isolation_too() -> None:
    session = faulty("F26")
    assert not session.isolated
    failed = {record.layout for record in session.isolation if not record.passed}
    assert failed == {"left", "right"}  # ragged rows have no pads


def test_request_fault_leaves_batches_alone() -> None:
    session = faulty("F19")
    assert session.isolated
    assert not session.report.passed


def test_of_two_faults_the_earlier_stage_is_named_first() -> None:
    both, later = faulty("F36", "F19"), faulty("F36")
    assert [fault.id for fault in both.faults] == ["F19", "F36"]
    assert both.report.first_failure is not None
    assert both.report.first_failure.stage == 2
    assert later.report.first_failure is not None
    assert later.report.first_failure.stage == 6


def test_fault_that_no_stage_sees_is_missed_and_fails() -> None:
    session, correct = faulty("F19"), faulty()
    blind = replace(session, report=correct.report)
    assert blind.missed
    assert not blind.passed
    assert not session.missed


def test_kills_are_those_of_the_chosen_faults_with_their_variants() -> None:
    rows = [(row.fault.id, row.variant) for row in faulty("F29", "F01").kills]
    assert rows == [("F01", ""), ("F29", ""), ("F29", "position row")]
    assert faulty("F29", "F01").refusals["F29"] is None
    assert "expected 25cc1e5cc68a" in str(faulty("F01").refusals["F01"])


def test_faults_are_named_in_any_order_by_id_or_name() -> None:
    spec = default_spec(load_checkpoint())
    found = with_faults(spec, ["wrong-layer", "F01", "F19"])
    assert (found.faults, found.guards_off) == (("F01", "F19"), ("checkpoint", "layer"))
    assert with_faults(spec, ["F01", "F19"]) == found
    assert with_faults(found, ()) == spec
    assert audit_spec(found) == spec
    with pytest.raises(InputError, match=r"fault: expected one of F01 \(stale-cache\), .*'F43'"):
        with_faults(spec, ["F43"])


@pytest.mark.parametrize("change", [{"guards_off": ()}, {"faults": ("F01",)}, {"faults": ("F99",)},
                                    {"faults": ("wrong-layer",)}])  # fmt: skip
def test_guards_off_must_be_those_of_the_faults(change: dict[str, Any]) -> None:
    checkpoint = load_checkpoint()
    spec = replace(with_faults(default_spec(checkpoint), ["F19"]), **change)
    with pytest.raises(InputError, match="expected"):
        run_audit(checkpoint, spec)


def test_gate_judges_the_correct_code_whatever_is_switched_on(report: AuditReport) -> None:
    found = run_audit(report.checkpoint, with_faults(report.spec, ["F19"]))
    assert found.gate == report.gate
    assert found.gate_passed
    assert not found.passed
    assert all(run.spec.faults == () for run in found.runs)


def test_tolerance_is_the_spec_s_or_that_of_the_checkpoint() -> None:
    frozen, other = load_checkpoint(), random_checkpoint(PRIMES, 1)
    assert session_tolerance(frozen, RunSpec(), is_frozen=True) == 1e-5
    assert session_tolerance(other, RunSpec(), is_frozen=False) == 1.5e-4
    wide = random_checkpoint(replace(PRIMES, n_embd=64), 1)
    assert session_tolerance(wide, RunSpec(), is_frozen=False) == 3e-4  # sqrt(64 / 16) = 2
    assert session_tolerance(other, RunSpec(tolerance=0.25), is_frozen=False) == 0.25


def flat_checkpoint() -> Checkpoint:
    """Queries and keys are zero: every head attends uniformly."""
    tensors = random_tensors(PRIMES, 3)
    for name, array in tensors.items():
        if ".c_attn." in name:
            array[..., : 2 * PRIMES.n_embd] = 0.0
    return Checkpoint.build(PRIMES, Vocabulary.numbered(7), tensors)


def test_flat_checkpoint_is_refused_although_every_stage_passes() -> None:
    flat = flat_checkpoint()
    session = run_session(flat, default_spec(flat), is_frozen=False)
    assert session.report.passed
    assert session.isolated
    assert "attention of layer 0, head 0 stays within" in session.fixture.weakness
    assert not session.passed


def test_row_that_takes_over_a_shorter_cache_is_caught() -> None:
    """Its slots become fewer, which an audit must be able to read."""
    flat = flat_checkpoint()
    spec = with_faults(default_spec(flat), ["F42"])
    failure = run_session(flat, spec, is_frozen=False).report.first_failure
    assert failure is not None
    assert failure.id == "position.request"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 1, 1, 1, 1), (2, 1, 2, 1, 1, 3), (2, 2, 2, 1, 1, 3), (2, 3, 2, 1, 2, 3),
     (7, 5, 6, 1, 3, 11)],
)  # fmt: skip
def test_smallest_checkpoints_are_judged(sizes: Any, dtype: str) -> None:
    checkpoint = random_checkpoint(ModelConfig(*sizes), 1)
    spec = replace(default_spec(checkpoint), dtype=dtype)
    session = run_session(checkpoint, spec, is_frozen=False)
    assert session.report.passed, session.report.first_failure
    assert all(check.verdict != NOT_RECORDED for check in session.report.checks)
    assert session.isolated


@pytest.mark.parametrize("name", ["F19", "F20"])
def test_fault_without_a_second_layer_leaves_the_session_correct(name: str) -> None:
    checkpoint = random_checkpoint(replace(PRIMES, n_layer=1), 1)
    spec = with_faults(default_spec(checkpoint), [name])
    session = run_session(checkpoint, spec, is_frozen=False)
    assert not session.acts
    assert session.report.passed
    assert [row.acts for row in session.kills] == [False]


def test_checkpoint_too_large_to_record_is_refused_in_one_line() -> None:
    long = replace(PRIMES, n_positions=1031)
    with pytest.raises(InputError, match=f"at most {MOST_SCORES} attention scores") as caught:
        check_session_size(long)
    # 18 runs x 2 layers x 2 heads x 1031 x 1031 scores
    assert "found about 76533192 " in str(caught.value)
    wide = replace(PRIMES, n_embd=254, n_inner=1019, n_positions=61)
    with pytest.raises(InputError, match=f"at most {MOST_SCALAR_WORK} multiply-adds") as caught:
        check_session_size(wide)
    assert "\n" not in str(caught.value)
    check_session_size(PRIMES)
    with pytest.raises(InputError, match="context 1031"):
        run_session(random_checkpoint(long, 1), RunSpec(), is_frozen=False)


def test_large_checkpoint_is_compared_until_its_session_is_asked_for() -> None:
    config = replace(PRIMES, n_positions=1031)
    found = run_audit(random_checkpoint(config, 1))
    assert len(found.gate) == 5
    with pytest.raises(InputError, match="attention scores"):
        _ = found.passed


def test_session_does_not_depend_on_prompt_policy_or_seed(report: AuditReport) -> None:
    other = run_audit(report.checkpoint, replace(report.spec, seed=7, prompt=("<bos>", "X")))
    assert other.session.report.checks == report.session.report.checks
    assert other.session.isolation == report.session.isolation
    np.testing.assert_array_equal(
        other.session.fixture.departures, report.session.fixture.departures
    )
