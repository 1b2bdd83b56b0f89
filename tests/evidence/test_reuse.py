"""An audit made from another one is the audit that would have been run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.evidence.audit import audit_spec, default_spec, run_audit
from tinydec.evidence.registry import TABLES
from tinydec.evidence.reuse import reaudited, spec_of_run
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy, RunSpec

FROZEN = load_checkpoint()
REPORT = run_audit(FROZEN)
SPEC = default_spec(FROZEN)

CHANGES = {
    "nothing": SPEC,
    "tolerance": replace(SPEC, tolerance=1e-6),
    "prompt": replace(SPEC, prompt=("<bos>", "X")),
    "policy": replace(SPEC, policy=Policy("sample", 0.7, 5, 0.9)),
    "seed": replace(SPEC, seed=3),
    "all": RunSpec(
        prompt=("A", "B"), policy=Policy("sample", 2.5), seed=9, dtype="float32", tolerance=3e-7
    ),
}


#: Made from the recorded session, which a report computes from its own spec and checkpoint.
SESSION = {"audit.csv", "batch_isolation.csv", "kill_matrix.csv", "fixture.csv"}


def tables(report) -> dict[str, bytes]:
    return {name: table.csv(report) for name, table in TABLES.items() if name not in SESSION}


@pytest.mark.parametrize("change", CHANGES)
def test_every_table_is_that_of_a_new_audit(change: str) -> None:
    found, fresh = reaudited(REPORT, CHANGES[change]), run_audit(FROZEN, CHANGES[change])
    assert tables(found) == tables(fresh)
    assert (found.spec, found.context_prompt) == (fresh.spec, fresh.context_prompt)


@pytest.mark.parametrize("change", ["prompt", "policy", "seed"])
def test_the_session_is_shared_where_it_is_the_same(change: str) -> None:
    found, fresh = reaudited(REPORT, CHANGES[change]), run_audit(FROZEN, CHANGES[change])
    assert found.session is REPORT.session
    again = reaudited(found, SPEC)
    assert again.session is REPORT.session
    for name in ("audit.csv", "batch_isolation.csv", "fixture.csv"):
        assert TABLES[name].csv(found) == TABLES[name].csv(fresh)


def test_another_tolerance_has_a_session_of_its_own() -> None:
    found = reaudited(REPORT, CHANGES["tolerance"])
    assert found.session.tolerance == 1e-6
    assert REPORT.session.tolerance == 1e-5
    assert reaudited(found, SPEC).session.tolerance == 1e-5


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "nothing"])
def test_a_change_shows_in_the_tables(change: str) -> None:
    assert tables(reaudited(REPORT, CHANGES[change])) != tables(REPORT)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (replace(SPEC, dtype="float64"), "expected dtype 'float32', found 'float64'"),
        (replace(SPEC, checkpoint="0" * 64), "expected checkpoint 'frozen'"),
        (replace(SPEC, max_new_tokens=2), "expected the RunSpec of an audit"),
        (replace(SPEC, prompt=("<bos>", "Q")), "'Q'"),
    ],
)
def test_another_run_is_refused_in_one_line(spec: RunSpec, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        reaudited(REPORT, spec)
    assert "\n" not in str(caught.value)


def test_a_greedy_run_is_audited_with_the_course_policy() -> None:
    assert spec_of_run(FROZEN, RunSpec()) == SPEC
    limited = RunSpec(prompt=("<bos>", "A"), max_new_tokens=1, cache=False, seed=5)
    assert spec_of_run(FROZEN, limited) == replace(SPEC, prompt=("<bos>", "A"), seed=5)


def test_a_sampled_run_keeps_its_policy() -> None:
    policy = Policy("sample", 0.5, 2, 0.8)
    found = spec_of_run(FROZEN, RunSpec(policy=policy, stop_tokens=("A",)))
    assert found.policy == policy
    assert found == audit_spec(found)


def test_a_policy_that_keeps_all_tokens_names_their_number_as_a_command_line_would() -> None:
    found = spec_of_run(FROZEN, RunSpec(policy=Policy("sample", 1.3)))
    assert found.policy == Policy("sample", 1.3, top_k=8)


def test_a_vocabulary_of_two_tokens_gets_a_policy_that_fits() -> None:
    tiny = random_checkpoint(ModelConfig(2, 3, 4, 1, 2, 5), 1, "float32")
    spec = spec_of_run(tiny, RunSpec(checkpoint=tiny.digest, prompt=("t0",)))
    assert spec.policy.top_k == 2
    assert run_audit(tiny, spec).runs[1].cached.steps
