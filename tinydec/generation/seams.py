"""Named places in generation where a fault may intervene, beside those of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.seams import CORRECT, Seams


@dataclass(frozen=True)
class PolicySeams:
    """What a policy asks at each seam; the defaults are the correct rules.

    Attributes:
        keeps_ties: top-k keeps every token whose logit equals the k-th highest.
        renormalises: probabilities are made to sum to 1 after top-k and top-p.
        multiplies_temperature: logits are multiplied by the temperature, not divided.
        ties_take_last: greedy takes the highest id of a tie.
        extra_draws: uniform numbers drawn and thrown away before each one that is used.
        clamps_domain: a number outside its domain is moved into it instead of refused.
    """

    keeps_ties: bool = False
    renormalises: bool = True
    multiplies_temperature: bool = False
    ties_take_last: bool = False
    extra_draws: int = 0
    clamps_domain: bool = False


CORRECT_POLICY = PolicySeams()


@dataclass(frozen=True)
class RequestSeams:
    """What a request asks at each seam; None is the correct contract.

    Attributes:
        model: seams of prefill and decode step.
        policy: seams of the selection.
        position_from_prompt: maps (prompt length, consumed inputs) to the position row that is
            read (correct: the number of consumed inputs).
        checkpoint_at: maps (step, checkpoint) to the checkpoint that the step computes with
            (correct: the same one).
        consumes: maps the prompt's ids to those that prefill consumes (correct: the same).
        uses_neighbour: whether decode steps use a neighbour's cache instead of the own one.
        cache_before: called before each decode step with (step, the cache that it will use, a
            neighbour's cache); it may change the first (correct: it changes nothing).
        stop_reason: maps (reason, consumed, n_positions) to the recorded reason (correct: the
            same reason).
        capacity_factor: slots per layer as a multiple of the context plus one, for faults that
            write more than one slot per input; 0 keeps the context alone.
    """

    model: Seams = CORRECT
    policy: PolicySeams = CORRECT_POLICY
    position_from_prompt: Callable[[int, int], int] | None = None
    checkpoint_at: Callable[[int, Checkpoint], Checkpoint] | None = None
    consumes: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None
    uses_neighbour: bool = False
    cache_before: Callable[[int, KVCache, KVCache], None] | None = None
    stop_reason: Callable[[str | None, int, int], str | None] | None = None
    capacity_factor: int = 0


CORRECT_REQUEST = RequestSeams()
