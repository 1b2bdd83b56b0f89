"""A request: one prompt with its own cache, token ids, position, generator and stopping state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from tinydec.errors import InputError
from tinydec.generation.policy import choose_rows
from tinydec.generation.seams import CORRECT_REQUEST, RequestSeams
from tinydec.generation.stopping import stop_reason
from tinydec.generation.stream import Draw, UniformStream
from tinydec.generation.trace import (
    DECODE,
    FULL,
    PREFILL,
    GenerationTrace,
    StepRecord,
    snapshot,
)
from tinydec.model.activations import Activations
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.guards import GUARDS, check_guards
from tinydec.model.inputs import checked_ids, integer_id
from tinydec.model.prefill import prefill
from tinydec.runspec import Policy, check_integer


class Request:
    """Owns everything that one run changes; two requests share nothing but the checkpoint.

    Call :meth:`step` until ``stop_reason`` is set; each call consumes the pending inputs (the
    prompt first, then the token returned last) and selects one token. ``step_checkpoint``,
    ``step_cache`` and ``step_ids`` are what the last step computed with: the request's own,
    unless a seam says otherwise.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        prompt_ids: Sequence[int],
        policy: Policy,
        seed: int,
        *,
        max_new_tokens: int | None = None,
        stop_token_ids: Iterable[int] = (),
        use_cache: bool = True,
        keep_activations: bool = False,
        request_id: str = "request-0",
        seams: RequestSeams = CORRECT_REQUEST,
        neighbour: KVCache | None = None,
        guards: frozenset[str] = GUARDS,
    ) -> None:
        """Check the inputs; compute nothing yet.

        Raises:
            InputError: an empty or too long prompt, an unknown id, there or among the stop
                tokens, a policy, seed or ``max_new_tokens`` outside its domain, an unknown guard.
        """
        ids = checked_ids(checkpoint, prompt_ids)
        if len(ids) != 1:
            raise InputError(f"prompt: expected one sequence of ids, found {len(ids)}")
        check_guards(guards)
        policy.check_vocabulary(checkpoint.config.vocab_size)
        if max_new_tokens is not None:
            check_integer("max_new_tokens", max_new_tokens, 1)
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.prompt_ids = tuple(int(token_id) for token_id in ids[0])
        self.policy = policy
        self.seed = seed
        self.max_new_tokens = max_new_tokens
        self.stop_token_ids = tuple(sorted({integer_id(stop) for stop in stop_token_ids}))
        if self.stop_token_ids:
            checked_ids(checkpoint, [[token_id] for token_id in self.stop_token_ids])
        self.stream = UniformStream(seed)
        self.cache = self._new_cache(seams) if use_cache else None
        self.consumed: tuple[int, ...] = ()
        self.pending: tuple[int, ...] = self.prompt_ids
        self.steps: tuple[StepRecord, ...] = ()
        self.stop_reason: str | None = None
        self.step_checkpoint = checkpoint
        self.step_cache = self.cache
        self.step_ids: tuple[int, ...] = ()
        self._keep = keep_activations
        self._seams = seams
        self._guards = guards
        self._neighbour = neighbour

    @property
    def position(self) -> int:
        """The next position: the number of consumed inputs."""
        return len(self.consumed)

    def step(self) -> StepRecord:
        """Consume the pending inputs and select one token.

        Raises:
            InputError: the request has stopped.
            GuardError: the cache refused the inputs.
        """
        if self.stop_reason is not None:
            raise InputError(
                f"request: expected one that runs, found it stopped by {self.stop_reason}"
            )
        before = self.position
        phase, activations = self._compute()
        self.consumed += self.pending
        seams = self._seams.policy
        draw = self._draw(seams.extra_draws) if self.policy.samples else self.stream.state
        selection = choose_rows(activations.last_logits, self.policy, [draw], seams)[0]
        self.stop_reason = self._stop(selection.token_id)
        record = StepRecord(
            index=len(self.steps),
            phase=phase,
            consumed_ids=self.pending,
            positions=activations.positions[-len(self.pending) :],
            length_before=before,
            length_after=self.position,
            selection=selection,
            stop_reason=self.stop_reason,
            activations=snapshot(activations) if self._keep else None,
        )
        self.pending = (selection.token_id,)
        self.steps += (record,)
        return record

    def trace(self) -> GenerationTrace:
        """Return the record of the whole run.

        Raises:
            InputError: the request has not stopped yet.
        """
        if self.stop_reason is None:
            raise InputError("trace: expected a request that has stopped, found one that runs")
        return GenerationTrace(
            checkpoint_digest=self.checkpoint.digest,
            request_id=self.request_id,
            prompt_ids=self.prompt_ids,
            policy=self.policy,
            seed=self.seed,
            max_new_tokens=self.max_new_tokens,
            stop_token_ids=self.stop_token_ids,
            use_cache=self.cache is not None,
            steps=self.steps,
        )

    def _new_cache(self, seams: RequestSeams) -> KVCache:
        context = self.checkpoint.config.n_positions
        capacity = seams.capacity_factor * (context + 1) or context
        return KVCache(self.checkpoint, self.request_id, capacity=capacity)

    def _draw(self, extra: int) -> Draw:
        before = self.stream.state
        for _ in range(extra):
            self.stream.draw()
        return self.stream.draw()._replace(state_before=before)

    def _stop(self, token_id: int) -> str | None:
        context = self.checkpoint.config.n_positions
        reason = stop_reason(
            token_id,
            eos_id=self.checkpoint.vocabulary.eos_id,
            stop_token_ids=frozenset(self.stop_token_ids),
            consumed=self.position,
            n_positions=context,
            returned=len(self.steps) + 1,
            max_new_tokens=self.max_new_tokens,
        )
        rule = self._seams.stop_reason
        return reason if rule is None else rule(reason, self.position, context)

    def _compute(self) -> tuple[str, Activations]:
        if self.cache is None:
            return FULL, full_forward(self.checkpoint, self.consumed + self.pending)
        seams, step = self._seams, len(self.steps)
        cache, ids = self.cache, self.pending
        if seams.checkpoint_at is not None:
            self.step_checkpoint = seams.checkpoint_at(step, self.checkpoint)
        if not self.consumed:
            run, phase = prefill, PREFILL
            ids = ids if seams.consumes is None else seams.consumes(ids)
        else:
            run, phase = decode_step, DECODE
            cache = self._prepared(step, cache)
        self.step_cache, self.step_ids = cache, ids
        model, guards = seams.model, self._guards
        if seams.position_from_prompt is not None:
            position = partial(seams.position_from_prompt, len(self.prompt_ids))
            model = replace(model, position=position)
        return phase, run(self.step_checkpoint, cache, ids, self.request_id, model, guards)

    def _prepared(self, step: int, cache: KVCache) -> KVCache:
        """Return the cache that a decode step uses, after what the seams do to it."""
        seams, neighbour = self._seams, self._neighbour
        if neighbour is None:
            return cache
        used = neighbour if seams.uses_neighbour else cache
        if seams.cache_before is not None:
            seams.cache_before(step, used, neighbour)
        return used
