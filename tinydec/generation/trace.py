"""What a run leaves behind: one immutable record per step."""

from __future__ import annotations

from dataclasses import dataclass

from tinydec.generation.policy import Selection
from tinydec.model.activations import Activations
from tinydec.runspec import Policy

PREFILL = "prefill"
DECODE = "decode"
FULL = "full"


@dataclass(frozen=True, eq=False)
class StepRecord:
    """One turn of the loop: consume inputs, compute logits, select a token.

    Attributes:
        index: 0 for the step that consumes the prompt.
        phase: ``prefill`` or ``decode`` with a cache, ``full`` without.
        consumed_ids: the inputs that are new in this step.
        positions: their absolute positions.
        length_before: consumed inputs before the step.
        length_after: consumed inputs after it; the next position.
        selection: the selected token and what it was computed from.
        stop_reason: why the run stopped here, or None.
        activations: every intermediate, when the run was asked to keep them.
    """

    index: int
    phase: str
    consumed_ids: tuple[int, ...]
    positions: tuple[int, ...]
    length_before: int
    length_after: int
    selection: Selection
    stop_reason: str | None
    activations: Activations | None = None

    @property
    def returned_id(self) -> int:
        """The token that the policy selected; it may never be consumed."""
        return self.selection.token_id


@dataclass(frozen=True, eq=False)
class GenerationTrace:
    """A finished run."""

    checkpoint_digest: str
    request_id: str
    prompt_ids: tuple[int, ...]
    policy: Policy
    seed: int
    max_new_tokens: int | None
    stop_token_ids: tuple[int, ...]
    use_cache: bool
    steps: tuple[StepRecord, ...]

    @property
    def returned_ids(self) -> tuple[int, ...]:
        """Every selected token, in order."""
        return tuple(step.returned_id for step in self.steps)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and returned tokens: the sequence that a user sees."""
        return self.prompt_ids + self.returned_ids

    @property
    def consumed_ids(self) -> tuple[int, ...]:
        """Every input that the decoder read; the last returned token is never among them."""
        return tuple(token for step in self.steps for token in step.consumed_ids)

    @property
    def stop_reason(self) -> str:
        """Why the run stopped."""
        reason = self.steps[-1].stop_reason
        if reason is None:
            raise RuntimeError("a trace is made from a request that has stopped")
        return reason


def snapshot(activations: Activations) -> Activations:
    """Return activations that nothing later can change: cache views copied, all read-only."""
    # Nothing else holds the other arrays: a forward pass made them and handed them out.
    blocks = tuple(
        block._replace(keys=block.keys.copy(), values=block.values.copy())
        for block in activations.blocks
    )
    found = activations._replace(blocks=blocks)
    found.freeze()
    return found
