"""One audit: everything that a bundle shows, computed from a checkpoint and a RunSpec."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinydec.errors import InputError
from tinydec.evidence.session import AuditedSession, run_session, with_faults
from tinydec.generation.generate import generate
from tinydec.generation.stopping import CONTEXT
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.prefill import prefill
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import FROZEN, GREEDY, SAMPLE, Policy, RunSpec
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.deliberate import FailureResult, run_deliberate_failures
from tinydec.verification.equivalence import EquivalenceReport, verify_prefixes
from tinydec.verification.gate import Condition, RecordedRun, acceptance_gate

#: The course's sampling policy.
SEEDED_POLICY = Policy(SAMPLE, temperature=1.0, top_k=3)

#: Most values that an audit writes down one by one; a larger decoder is refused.
MOST_VALUES = 2_000_000
#: Longest context that an audit fills.
MOST_POSITIONS = 2048
#: Cache lengths that are measured one by one; a longer context is measured at its end as well.
_MEASURED_LENGTHS = 16


@dataclass(frozen=True)
class CacheMeasure:
    """Bytes of a cache that holds ``tokens`` positions, read off its arrays."""

    tokens: int
    valid_bytes: int
    allocated_bytes: int


@dataclass(frozen=True, eq=False)
class AuditReport:
    """Everything one audit computed.

    Attributes:
        checkpoint: as it is stored, before it is cast to the spec's dtype.
        is_frozen: whether it is the shipped one.
        spec: what was asked for; ``spec.policy`` is the sampled run's.
        context_prompt: the full-context prompt of the run named ``context``.
        equivalence: every prefix in every split.
        failures: both deliberate failures on every prefix.
        runs: ``greedy``, ``sample`` and ``context``, each with and without a cache, on the
            correct code.
        memory: cache bytes by length.
        gate: the five acceptance conditions.
        like: a report whose session is the same as this one's, or None.
    """

    checkpoint: Checkpoint
    is_frozen: bool
    spec: RunSpec
    context_prompt: tuple[str, ...]
    equivalence: EquivalenceReport
    failures: tuple[FailureResult, ...]
    runs: tuple[RecordedRun, ...]
    memory: tuple[CacheMeasure, ...]
    gate: tuple[Condition, ...]
    like: AuditReport | None = None

    @property
    def tolerance(self) -> float:
        """Largest accepted difference: the spec's, or the one declared for its dtype."""
        return self.equivalence.tolerance

    @property
    def gate_passed(self) -> bool:
        """Whether all five conditions hold."""
        return all(condition.passed for condition in self.gate)

    @cached_property
    def session(self) -> AuditedSession:
        """The recorded session with the spec's faults; computed when it is first asked for.

        Raises:
            InputError: a checkpoint too large to record.
        """
        if self.like is not None:
            return self.like.session
        return run_session(self.checkpoint, self.spec, is_frozen=self.is_frozen)

    @property
    def passed(self) -> bool:
        """Whether gate, six stages and isolation pass, and the fixture is strong."""
        return self.gate_passed and self.session.passed

    def run(self, name: str) -> RecordedRun:
        """Return the run called ``name``; a ``KeyError`` when there is none."""
        return {run.name: run for run in self.runs}[name]


def checkpoint_id(checkpoint: Checkpoint) -> str:
    """Return how a RunSpec names a checkpoint: ``frozen`` for the shipped one, else its digest."""
    try:
        shipped = load_checkpoint()
    except InputError:  # an installation without the assets
        return checkpoint.digest
    return FROZEN if shipped == checkpoint else checkpoint.digest


def audit_spec(spec: RunSpec) -> RunSpec:
    """Return the audit of any run: the same prompt, seed, dtype and tolerance.

    An audit runs both policies to their end on the correct code: a greedy policy becomes the
    seeded one beside it, and limits, stop tokens, faults and guards are reset. To audit a session
    with faults, switch them on afterwards with ``with_faults``.
    """
    policy = spec.policy if spec.policy.samples else SEEDED_POLICY
    return RunSpec(
        checkpoint=spec.checkpoint,
        prompt=spec.prompt,
        policy=policy,
        seed=spec.seed,
        dtype=spec.dtype,
        tolerance=spec.tolerance,
    )


def default_prompt(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the token that begins a sequence, or the first one where there is none such."""
    vocabulary = checkpoint.vocabulary
    return (vocabulary.tokens[0] if vocabulary.bos is None else vocabulary.bos,)


def default_spec(checkpoint: Checkpoint) -> RunSpec:
    """Return the course's audit of a checkpoint: top-3 sampling (or all of V), seed 41."""
    top_k = min(SEEDED_POLICY.top_k or 1, checkpoint.config.vocab_size)
    return RunSpec(
        checkpoint=checkpoint_id(checkpoint),
        prompt=default_prompt(checkpoint),
        policy=replace(SEEDED_POLICY, top_k=top_k),
    )


def run_audit(
    checkpoint: Checkpoint,
    spec: RunSpec | None = None,
    context_prompt: tuple[str, ...] | None = None,
) -> AuditReport:
    """Compute everything that a bundle shows.

    Args:
        checkpoint: the decoder that the spec names.
        spec: from :func:`audit_spec`, with faults from ``with_faults`` or none; None means
            :func:`default_spec`.
        context_prompt: the recorded one when a bundle is replayed; chosen here otherwise.

    Raises:
        InputError: a spec that is no audit's, a prompt or policy that the checkpoint refuses, a
            checkpoint that the spec does not name, or one with too many values to write down.
    """
    name = checkpoint_id(checkpoint)
    if spec is None:
        spec = default_spec(checkpoint)
    correct = audit_spec(spec)
    if spec != with_faults(correct, spec.faults):
        raise InputError(
            "audit: expected a sampling policy, no limit or stop token, the cache on, and off the "
            "guards of the faults alone, found another run"
        )
    if spec.checkpoint not in (name, checkpoint.digest):
        raise InputError(
            f"checkpoint: expected the one that the run names, {spec.checkpoint[:12]!r}, "
            f"found {name[:12]!r}"
        )
    _check_size(checkpoint)
    prompt = (
        choose_context_prompt(checkpoint, correct) if context_prompt is None else context_prompt
    )
    runs = (
        _recorded("greedy", checkpoint, replace(correct, policy=Policy(GREEDY))),
        _recorded("sample", checkpoint, correct),
        _recorded("context", checkpoint, replace(correct, policy=Policy(GREEDY), prompt=prompt)),
    )
    equivalence = verify_prefixes(checkpoint, dtype=spec.dtype, tolerance=spec.tolerance)
    failures = run_deliberate_failures(checkpoint, dtype=spec.dtype, tolerance=spec.tolerance)
    return AuditReport(
        checkpoint=checkpoint,
        is_frozen=name == FROZEN,
        spec=spec,
        context_prompt=prompt,
        equivalence=equivalence,
        failures=failures,
        runs=runs,
        memory=measure_cache(checkpoint, spec.dtype),
        gate=acceptance_gate(checkpoint, equivalence, failures, runs),
    )


def choose_context_prompt(checkpoint: Checkpoint, spec: RunSpec) -> tuple[str, ...]:
    """Return a prompt that fills the context and after which greedy does not select ``<eos>``.

    It is ``<bos>`` (where there is one) and one other token repeated: the first in id order
    whose run stops with ``context``, in the shipped checkpoint ``<bos> A A A``. When every such
    run stops with ``<eos>``, the first token is taken, and the run records that.
    """
    vocabulary = checkpoint.vocabulary
    special = (vocabulary.bos, vocabulary.eos)
    first = () if vocabulary.bos is None else (vocabulary.bos,)
    others = [token for token in vocabulary.tokens if token not in special] or vocabulary.tokens
    count = checkpoint.config.n_positions - len(first)
    prompts = [(*first, *(token,) * count) for token in others[:8]]
    for prompt in prompts:
        found = generate(checkpoint, replace(spec, policy=Policy(GREEDY), prompt=prompt))
        if found.stop_reason == CONTEXT:
            return prompt
    return prompts[0]


def measure_cache(checkpoint: Checkpoint, dtype: str) -> tuple[CacheMeasure, ...]:
    """Return the bytes of a cache (B = 1) after 0, 1, 2 … consumed tokens, up to the context."""
    cast = checkpoint.cast(dtype)
    context = cast.config.n_positions
    cache = KVCache(cast, "memory")
    measures = [_measure(cache)]
    steps = [1] * min(context, _MEASURED_LENGTHS)
    if context > len(steps):
        steps.append(context - len(steps))
    for count in steps:
        prefill(cast, cache, np.zeros(count, int), "memory")
        measures.append(_measure(cache))
    return tuple(measures)


def tolerance_of(spec: RunSpec) -> float:
    """Return the largest difference that a spec accepts."""
    return TOLERANCES[spec.dtype] if spec.tolerance is None else spec.tolerance


def _measure(cache: KVCache) -> CacheMeasure:
    return CacheMeasure(cache.length, cache.valid_nbytes(), cache.allocated_nbytes())


def _recorded(name: str, checkpoint: Checkpoint, spec: RunSpec) -> RecordedRun:
    cached = generate(checkpoint, spec)
    return RecordedRun(name, spec, cached, generate(checkpoint, replace(spec, cache=False)))


def _check_size(checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    if config.n_positions > MOST_POSITIONS:
        raise InputError(
            f"checkpoint: expected a context of at most {MOST_POSITIONS} positions to fill, "
            f"found {config.n_positions}"
        )
    per_layer = 12 * config.n_embd + 2 * config.n_inner
    per_position = config.n_layer * per_layer + 4 * config.n_embd + config.vocab_size
    count = 2 * 40 * per_position  # two paths, 4 x (1 + 2 + 3 + 4) positions
    if count > MOST_VALUES:
        raise InputError(
            f"checkpoint: expected at most {MOST_VALUES} values to write down, found about "
            f"{count} ({config.parameter_count()} parameters)"
        )
