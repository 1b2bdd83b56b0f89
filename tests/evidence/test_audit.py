"""One audit: what it runs, on which specs and checkpoints."""

from dataclasses import replace

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.evidence.audit import (
    MOST_POSITIONS,
    SEEDED_POLICY,
    AuditReport,
    audit_spec,
    checkpoint_id,
    choose_context_prompt,
    default_spec,
    measure_cache,
    run_audit,
    tolerance_of,
)
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import FROZEN, GREEDY, SAMPLE, Policy, RunSpec

PRIMES = ModelConfig(
    vocab_size=7, n_positions=5, n_embd=6, n_layer=2, n_head=2, n_inner=11, attention_bias=False
)


def test_shipped_checkpoint_passes_with_both_published_traces(report: AuditReport) -> None:
    assert report.passed
    assert report.is_frozen
    decode = report.checkpoint.vocabulary.decode
    traces = {
        run.name: (decode(run.cached.token_ids), run.cached.stop_reason) for run in report.runs
    }
    assert traces["greedy"] == ("<bos> A B D <eos>", "eos")
    assert traces["sample"] == ("<bos> Y X Y <eos>", "eos")
    assert report.context_prompt == ("<bos>", "A", "A", "A")
    assert traces["context"][1] == "context"
    assert report.spec == RunSpec(policy=SEEDED_POLICY)


def test_both_paths_of_every_run_return_the_same_tokens(report: AuditReport) -> None:
    for run in report.runs:
        assert run.cached.token_ids == run.full.token_ids
        assert (run.cached.use_cache, run.full.use_cache) == (True, False)


def test_cache_grows_by_64_bytes_a_token(report: AuditReport) -> None:
    assert [(m.tokens, m.valid_bytes) for m in report.memory] == [(t, 64 * t) for t in range(5)]
    assert {m.allocated_bytes for m in report.memory} == {256}


def test_long_context_is_measured_at_its_end_as_well() -> None:
    config = replace(PRIMES, n_positions=37)
    measures = measure_cache(random_checkpoint(config, 3), "float16")
    assert [m.tokens for m in measures] == [*range(17), 37]
    # 2 (K and V) x 2 layers x 6 scalars x 2 bytes = 48 bytes a token
    assert [m.valid_bytes for m in measures] == [48 * m.tokens for m in measures]


def test_audit_of_any_run_keeps_what_matters_and_resets_the_rest() -> None:
    given = RunSpec(
        prompt=("<bos>", "A"),
        policy=Policy(GREEDY, top_k=2),
        seed=7,
        max_new_tokens=1,
        stop_tokens=("A",),
        cache=False,
        dtype="float64",
        tolerance=1e-9,
        faults=("F16",),
        guards_off=("position",),
    )
    expected = RunSpec(
        prompt=("<bos>", "A"), policy=SEEDED_POLICY, seed=7, dtype="float64", tolerance=1e-9
    )
    assert audit_spec(given) == expected
    sampled = Policy(SAMPLE, 0.5, 2, 0.9)
    assert audit_spec(replace(given, policy=sampled)).policy == sampled


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(),
        RunSpec(policy=SEEDED_POLICY, max_new_tokens=2),
        RunSpec(policy=SEEDED_POLICY, faults=("F16",)),
        RunSpec(policy=SEEDED_POLICY, cache=False),
        RunSpec(policy=SEEDED_POLICY, stop_tokens=("A",)),
    ],
)
def test_run_that_is_no_audit_is_refused(report: AuditReport, spec: RunSpec) -> None:
    with pytest.raises(InputError, match="audit: expected a sampling policy"):
        run_audit(report.checkpoint, spec)


def test_checkpoint_that_the_run_does_not_name_is_refused(report: AuditReport) -> None:
    other = random_checkpoint(PRIMES, 5)
    with pytest.raises(InputError, match="checkpoint: expected the one that the run names"):
        run_audit(other, report.spec)
    by_digest = replace(report.spec, checkpoint=report.checkpoint.digest)
    assert run_audit(report.checkpoint, by_digest).is_frozen
    assert checkpoint_id(report.checkpoint) == FROZEN
    assert checkpoint_id(other) == other.digest


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_any_other_checkpoint_is_audited_too(seed: int) -> None:
    checkpoint = random_checkpoint(PRIMES, seed)
    found = run_audit(checkpoint, replace(default_spec(checkpoint), dtype="float64"))
    assert not found.is_frozen
    assert found.spec.prompt == ("t0",)
    assert len(found.context_prompt) == PRIMES.n_positions
    assert [condition.passed for condition in found.gate] == [True] * 5


def test_smallest_vocabulary_and_context_are_audited() -> None:
    config = ModelConfig(vocab_size=2, n_positions=1, n_embd=2, n_layer=1, n_head=1, n_inner=3)
    found = run_audit(random_checkpoint(config, 1))
    assert found.spec.policy.top_k == 2
    assert found.run("context").cached.stop_reason == "context"
    # With one position and one layer neither deliberate failure can act: that proves nothing.
    assert [condition.passed for condition in found.gate] == [True, True, False, True, True]


def test_context_prompt_passes_over_tokens_that_lead_to_the_end() -> None:
    config = replace(PRIMES, n_layer=1, tie_word_embeddings=False)
    base = random_checkpoint(config, 3)
    tokens = ("<bos>", "<eos>", "p", "q", "r", "s", "t")
    vocabulary = Vocabulary(tokens, "<bos>", "<eos>")
    passed_over = 0
    for seed in range(20):
        tensors = dict(random_checkpoint(config, seed).tensors)
        checkpoint = Checkpoint.build(base.config, vocabulary, tensors)
        spec = default_spec(checkpoint)
        prompt = choose_context_prompt(checkpoint, spec)
        first = ("<bos>", *("p",) * (config.n_positions - 1))
        run = run_audit(checkpoint, spec, first).run("context").cached
        assert len(prompt) == config.n_positions
        assert (prompt == first) is (run.stop_reason == "context" or _all_end(checkpoint, spec))
        passed_over += prompt != first
    assert passed_over > 0


def _all_end(checkpoint: Checkpoint, spec: RunSpec) -> bool:
    prompts = [("<bos>", *(token,) * 4) for token in "pqrst"]
    reasons = [run_audit(checkpoint, spec, p).run("context").cached.stop_reason for p in prompts]
    return set(reasons) == {"eos"}


def test_decoder_with_too_many_values_is_refused() -> None:
    wide = replace(PRIMES, n_embd=512, n_inner=2048, vocab_size=4999)
    ones = {name: np.ones(shape) for name, shape in wide.tensor_shapes().items()}
    checkpoint = Checkpoint.build(wide, Vocabulary.numbered(4999), ones)
    with pytest.raises(InputError, match="expected at most 2000000 values to write down"):
        run_audit(checkpoint)
    long = random_checkpoint(replace(PRIMES, n_positions=MOST_POSITIONS + 1), 1)
    with pytest.raises(InputError, match="context of at most 2048 positions to fill, found 2049"):
        run_audit(long)


def test_prompt_beyond_the_context_is_refused(report: AuditReport) -> None:
    long = replace(report.spec, prompt=("<bos>", *("A",) * 4))
    with pytest.raises(InputError, match="expected at most 4 tokens"):
        run_audit(report.checkpoint, long)


def test_tolerance_comes_from_the_spec_or_its_dtype() -> None:
    assert tolerance_of(RunSpec()) == 1e-5
    assert tolerance_of(RunSpec(dtype="float64")) == 1e-12
    assert tolerance_of(RunSpec(tolerance=0.25)) == 0.25
