"""One run with a cache beside the same run without: the same tokens, draws and stop."""

from __future__ import annotations

from dataclasses import dataclass

from tinydec.generation.trace import GenerationTrace
from tinydec.verification.compare import absolute_difference


@dataclass(frozen=True)
class StepPair:
    """One step of both runs.

    Attributes:
        step: 0 consumes the prompt.
        cached_id, full_id: the selected tokens.
        cached_inputs: tokens that the decoder with a cache had to read in this step.
        full_inputs: tokens that the decoder without a cache had to read.
        max_abs_error: largest difference between the two logits rows.
        same_draw: whether both consumed the same number and left the generator in one state.
    """

    step: int
    cached_id: int
    full_id: int
    cached_inputs: int
    full_inputs: int
    max_abs_error: float
    same_draw: bool

    @property
    def same_token(self) -> bool:
        """Whether both runs select the same token."""
        return self.cached_id == self.full_id


@dataclass(frozen=True)
class TracePair:
    """Both runs, step by step as far as the shorter one goes."""

    steps: tuple[StepPair, ...]
    same_tokens: bool
    same_stop: bool

    @property
    def same_draws(self) -> bool:
        """Whether every step consumed the same number from the same generator state."""
        return all(step.same_draw for step in self.steps)

    @property
    def same(self) -> bool:
        """Whether tokens, draws and stop reason are all the same."""
        return self.same_tokens and self.same_stop and self.same_draws

    @property
    def max_abs_error(self) -> float:
        """Largest difference between logits rows over the steps whose prefix is the same.

        After the first other token the two runs read different prefixes.
        """
        errors = []
        for step in self.steps:
            errors.append(step.max_abs_error)
            if not step.same_token:
                break
        return max(errors)


def compare_traces(cached: GenerationTrace, full: GenerationTrace) -> TracePair:
    """Hold a run with a cache against the run without one."""
    steps = tuple(
        StepPair(
            step=one.index,
            cached_id=one.returned_id,
            full_id=other.returned_id,
            cached_inputs=len(one.consumed_ids),
            full_inputs=other.length_after,
            max_abs_error=float(
                absolute_difference(one.selection.logits, other.selection.logits).max()
            ),
            same_draw=(one.selection.uniform, one.selection.state_after)
            == (other.selection.uniform, other.selection.state_after),
        )
        for one, other in zip(cached.steps, full.steps, strict=False)
    )
    return TracePair(
        steps=steps,
        same_tokens=cached.token_ids == full.token_ids,
        same_stop=cached.stop_reason == full.stop_reason,
    )
