"""A run as it was recorded: the forward passes, the inputs they consumed, the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.generation.trace import GenerationTrace
from tinydec.model.activations import (
    CACHE_TENSORS,
    HEAD_TENSORS,
    SCORE_TENSORS,
    Activations,
)
from tinydec.model.checkpoint import EVALUATION, Checkpoint
from tinydec.model.inputs import checked_ids
from tinydec.runspec import shown
from tinydec.verification.explain.elements import Element

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Recording:
    """Forward passes over B sequences, one after another.

    Build one with :meth:`of` or :meth:`of_trace`, which check that the parts belong together.

    Attributes:
        checkpoint: what the passes computed with, in their dtype.
        token_ids: B tuples of T consumed inputs.
        steps: cached passes that follow one another (prefill, decode), or full ones.
        starts: for each step, how many inputs lie before the first one that it computed.
    """

    checkpoint: Checkpoint
    token_ids: tuple[tuple[int, ...], ...]
    steps: tuple[Activations, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, checkpoint: Checkpoint, token_ids: Any, steps: Sequence[Activations]) -> Recording:
        """Return a recording of forward passes.

        Args:
            checkpoint: in the dtype of the passes.
            token_ids: (B, T) integers, or (T,) for one sequence: every input that was consumed.
            steps: one full forward, several, or prefill and decode steps without a gap.

        Raises:
            InputError: ids outside the vocabulary, no step, another dtype, batch or number of
                layers than the checkpoint's and the ids', a gap between steps, or dropout.
        """
        ids = checked_ids(checkpoint, token_ids)
        if checkpoint.mode != EVALUATION:
            raise InputError(f"explain: expected {EVALUATION} mode, found {checkpoint.mode}")
        if not steps:
            raise InputError("explain: expected at least one step, found none")
        starts, covered = [], 0
        for index, step in enumerate(steps):
            _check_step(checkpoint, len(ids), index, step)
            total, count = step.blocks[0].keys.shape[2], len(step.positions)
            start = total - count
            if not 0 <= start <= covered or total > ids.shape[1]:
                raise InputError(
                    f"explain: expected step {index} to begin at an input from 0 to {covered} "
                    f"and end by {ids.shape[1]}, found {start} to {total}"
                )
            starts.append(start)
            covered = max(covered, total)
        rows = tuple(tuple(row) for row in ids.tolist())
        return cls(checkpoint, rows, tuple(steps), tuple(starts))

    @classmethod
    def of_trace(cls, checkpoint: Checkpoint, trace: GenerationTrace) -> Recording:
        """Return the recording of a run that kept its activations.

        Args:
            checkpoint: the one the run computed with (cast to its dtype).
            trace: of :func:`tinydec.generation.generate.generate`, ``keep_activations`` on.

        Raises:
            InputError: the trace kept none, or another checkpoint made it.
        """
        if checkpoint.digest != trace.checkpoint_digest:
            raise InputError(
                f"explain: expected the run's checkpoint {trace.checkpoint_digest[:12]}, "
                f"found {checkpoint.digest[:12]}"
            )
        steps = [step.activations for step in trace.steps if step.activations is not None]
        if len(steps) != len(trace.steps):
            raise InputError("explain: expected a run that kept its activations, found none")
        return cls.of(checkpoint, [trace.consumed_ids], steps)

    @property
    def length(self) -> int:
        """Inputs that the steps computed, of each sequence."""
        return self.starts[-1] + len(self.steps[-1].positions)

    @cached_property
    def _tensors(self) -> tuple[Mapping[str, Array], ...]:
        return tuple(dict(step.named()) for step in self.steps)

    def array(self, step: int, tensor: str) -> Array:
        """Return a named tensor of a step, axes as in :meth:`Activations.named`.

        Raises:
            InputError: no such step or tensor.
        """
        if type(step) is not int or not 0 <= step < len(self.steps):
            last = len(self.steps) - 1
            raise InputError(f"explain: expected a step from 0 to {last}, found {shown(step)}")
        if tensor not in self._tensors[step]:
            raise InputError(
                f"explain: expected a tensor such as h.0.scores or logits, found {shown(tensor)}"
            )
        return self._tensors[step][tensor]

    def positions(self, step: int, tensor: str) -> range:
        """Return the positions (slots for ``keys`` and ``values``) that a step's tensor holds.

        Raises:
            InputError: see :meth:`array`.
        """
        start = 0 if _field(tensor) in CACHE_TENSORS else self.starts[step]
        array = self.array(step, tensor)
        return range(start, start + array.shape[2 if _field(tensor) in HEAD_TENSORS else 1])

    def step_of(self, tensor: str, position: int, preferred: int = 0) -> int:
        """Return the step whose tensor holds a position: the preferred one, else the first.

        Raises:
            InputError: no step holds it.
        """
        steps: tuple[int, ...] = (preferred, *range(len(self.steps)))
        for step in steps:
            if position in self.positions(step, tensor):
                return step
        raise InputError(
            f"explain: expected a position from 0 to {self.length - 1}, found {shown(position)}"
        )

    def value(self, element: Element) -> float:
        """Return the recorded number, exactly, as a float64.

        Raises:
            InputError: the element does not exist.
        """
        array = self.array(element.step, element.tensor)
        positions = self.positions(element.step, element.tensor)
        batch = self.steps[element.step].batch
        field, row = element.field, element.position - positions.start
        heads = array.shape[1] if field in HEAD_TENSORS else 1
        limits = (
            ("sequence", element.sequence, range(batch)),
            ("head", element.head, range(heads)),
            ("position", element.position, positions),
            ("index", element.index, range(array.shape[-1])),
        )
        for axis, found, allowed in limits:
            if type(found) is not int or found not in allowed:
                raise InputError(
                    f"explain {element.tensor}: expected {axis} from {allowed.start} "
                    f"to {allowed.stop - 1}, found {shown(found)}"
                )
        sequence = 0 if field == "position_embedding" else element.sequence
        at = (sequence, element.head, row) if field in HEAD_TENSORS else (sequence, row)
        return float(array[(*at, element.index)])

    def is_hidden(self, element: Element) -> bool:
        """Whether an element of ``scores`` or ``attention`` lies behind the causal mask."""
        return element.field in SCORE_TENSORS and element.index > element.position


def _field(tensor: str) -> str:
    return tensor.rsplit(".", 1)[-1]


def _check_step(checkpoint: Checkpoint, batch: int, index: int, step: Activations) -> None:
    expected = (checkpoint.dtype.name, batch, checkpoint.config.n_layer)
    found = (np.asarray(step.logit_rows).dtype.name, step.batch, len(step.blocks))
    if found != expected:
        words = "{} with B = {} and {} layers"
        raise InputError(
            f"explain: expected step {index} in {words.format(*expected)}, "
            f"found {words.format(*found)}"
        )
