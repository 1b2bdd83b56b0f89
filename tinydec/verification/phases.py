"""Prefill beside a decode step: what each pass read, made and multiplied, from real passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.generation.trace import DECODE, FULL, PREFILL, snapshot
from tinydec.memory import StepWork, decode_work, prefill_work
from tinydec.memory.measured import decoder_sizes
from tinydec.model.activations import (
    CACHE_TENSORS,
    HEAD_TENSORS,
    SCORE_TENSORS,
    Activations,
)
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.verification.cached_run import run_cached

_MLP_TENSORS = frozenset({"mlp_hidden", "mlp_activation"})


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass through the decoder.

    Attributes:
        phase: ``prefill`` or ``decode`` with a cache, ``full`` without.
        token_ids: the P inputs whose rows the pass computes.
        start: position of the first of them, which is the number of keys taken from the cache.
        activations: every intermediate; B = 1.
    """

    phase: str
    token_ids: tuple[int, ...]
    start: int
    activations: Activations

    @property
    def rows(self) -> int:
        """P, the positions that the pass computes."""
        return len(self.token_ids)

    @property
    def keys(self) -> int:
        """Number of keys that attention reads: those of the cache and the pass's own."""
        return self.start + self.rows

    def visible(self) -> NDArray[np.bool_]:
        """Return (P, t): True where a query sees a key, read off the first layer's scores."""
        scores = self.activations.blocks[0].scores[0, 0]  # (B, h, P, t) -> (P, t)
        shown: NDArray[np.bool_] = ~np.isneginf(scores)
        return shown


@dataclass(frozen=True)
class ShapeRow:
    """One tensor in two passes.

    Attributes:
        tensor: its name, such as ``h.1.keys``.
        axes: its axes as symbols; P is 1 in a decode step.
        first: shape in the first pass.
        later: shape in the later pass; None where there is none.
    """

    tensor: str
    axes: str
    first: tuple[int, ...]
    later: tuple[int, ...] | None

    @property
    def first_scalars(self) -> int:
        """Numbers in the tensor in the first pass."""
        return math.prod(self.first)

    @property
    def later_scalars(self) -> int | None:
        """Numbers in the tensor in the later pass."""
        return None if self.later is None else math.prod(self.later)


@dataclass(frozen=True)
class Split:
    """Which tokens go through prefill and which through decode steps.

    Attributes:
        token_ids: every token that can be an input: at most the context.
        prefill_length: how many of them the prefill reads.
        returned: whether the first decode step reads a returned token; else it reads the
            prompt's last one, because the prompt fills the context.
    """

    token_ids: tuple[int, ...]
    prefill_length: int
    returned: bool

    @property
    def decode_steps(self) -> int:
        """Decode steps that follow the prefill."""
        return len(self.token_ids) - self.prefill_length


def split_phases(prompt_ids: Sequence[int], returned_ids: Sequence[int], context: int) -> Split:
    """Split a run into prefill and decode so that both phases exist wherever they can.

    Raises:
        InputError: a prompt that is empty or longer than the context.
    """
    length = len(prompt_ids)
    if not 1 <= length <= context:
        raise InputError(f"prompt: expected 1 to {context} tokens, found {length}")
    token_ids = (*prompt_ids, *returned_ids)[:context]
    if len(token_ids) > length or length == 1:
        return Split(token_ids, length, True)
    return Split(token_ids, length - 1, False)


def run_phases(checkpoint: Checkpoint, split: Split, use_cache: bool = True) -> tuple[Pass, ...]:
    """Run the prefill and every decode step of a split; without a cache, full passes.

    Without a cache each pass computes the whole prefix again: P, P + 1, ... rows.

    Raises:
        InputError: an id outside the vocabulary.
    """
    ids, first = split.token_ids, split.prefill_length
    if not use_cache:
        return tuple(
            Pass(FULL, ids[:length], 0, snapshot(full_forward(checkpoint, ids[:length])))
            for length in range(first, len(ids) + 1)
        )
    steps = run_cached(checkpoint, np.array([ids]), first)
    return tuple(
        Pass(
            PREFILL if index == 0 else DECODE,
            ids[step.length_before : step.length_after],
            step.length_before,
            step.activations,
        )
        for index, step in enumerate(steps)
    )


def shape_rows(first: Activations, later: Activations | None) -> tuple[ShapeRow, ...]:
    """Return every tensor's shape in two passes, in the order of computation."""
    shapes = {} if later is None else {name: array.shape for name, array in later.named()}
    return tuple(
        ShapeRow(name, axes_of(name), array.shape, shapes.get(name))
        for name, array in first.named()
    )


def axes_of(tensor: str) -> str:
    """Return a tensor's axes as symbols: B, h, P new positions, t keys, d, d_h, m, V."""
    name = tensor.rpartition(".")[2]
    if name in HEAD_TENSORS:
        rows = "t" if name in CACHE_TENSORS else "P"
        return f"(B, h, {rows}, {'t' if name in SCORE_TENSORS else 'd_h'})"
    width = "m" if name in _MLP_TENSORS else "V" if name == "logits" else "d"
    return f"({'1' if name == 'position_embedding' else 'B'}, P, {width})"


def pass_work(config: ModelConfig, found: Pass) -> StepWork:
    """Return the multiply-adds of a pass (see :mod:`tinydec.memory.work`), all logits rows."""
    sizes = decoder_sizes(config)
    if found.phase == DECODE:
        return decode_work(sizes, found.start)
    return prefill_work(sizes, found.rows)
