"""Named places in the correct code where a fault may intervene.

A fault is data: a value for one of these seams. No copy of the decoder is kept broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tinydec.model.guards import PositionError, WrongLayerError

Array = NDArray[Any]


@dataclass(frozen=True)
class Seams:
    """What a cached computation asks at each seam; None is the correct contract.

    Attributes:
        position: maps the number of consumed inputs to the position row that is read
            (correct: the same number).
        read_layer: maps a layer to the layer whose cache its attention reads (correct: its own).
        stored: maps the new ``k`` and ``v`` (B, h, P, d_h) to what append writes (correct: the
            same two).
        appends: maps the number of consumed inputs to how often each new row is appended
            (correct: once; 0 moves the counter without writing).
        read_beyond: slots that attention reads past the valid length (correct: none).
        visible: maps the causal mask (P, t), True where a query sees a key, to the mask that
            is used (correct: the same).
        reset_keeps_length: whether a reset clears the arrays and leaves the length.
        past_context: maps a position past the last of R rows, and R, to the row that is read
            (correct: the input is refused).
        rolls_when_full: whether a full cache drops its oldest slot to take another input
            (correct: the input is refused).
    """

    position: Callable[[int], int] | None = None
    read_layer: Callable[[int], int] | None = None
    stored: Callable[[Array, Array], tuple[Array, Array]] | None = None
    appends: Callable[[int], int] | None = None
    read_beyond: int = 0
    visible: Callable[[Array], Array] | None = None
    reset_keeps_length: bool = False
    past_context: Callable[[int, int], int] | None = None
    rolls_when_full: bool = False


#: No intervention.
CORRECT = Seams()


@dataclass(frozen=True)
class ReferenceSeams:
    """What the full forward asks at each seam; None is the correct contract.

    Attributes:
        future: maps the mask (T, T), True where a key is hidden because it lies ahead of the
            query, to the mask that is used.
        position_rows: maps the T position rows to those that are read.
    """

    future: Callable[[Array], Array] | None = None
    position_rows: Callable[[Array], Array] | None = None


CORRECT_REFERENCE = ReferenceSeams()


@dataclass(frozen=True)
class BatchSeams:
    """What a batch asks at each seam; False and None are the correct contract.

    Attributes:
        pads_visible: keys of padding are attended like any others.
        positions_from_slots: the position is the slot's number, not the count of real tokens.
        plain_softmax: a query that sees no key gets the softmax of minus infinities (NaN), not
            zeros.
        shared_stream: all rows draw from the first row's stream.
        first_token_copied: rows that join together all get the first one's first token.
        stops_together: ``eos`` is recorded only when every row emits it in the same step.
        finished_rows_draw: a finished row goes on selecting from its last logits.
        leave: what closes up alone when rows leave: ``tokens`` or ``caches`` (correct: both).
    """

    pads_visible: bool = False
    positions_from_slots: bool = False
    plain_softmax: bool = False
    shared_stream: bool = False
    first_token_copied: bool = False
    stops_together: bool = False
    finished_rows_draw: bool = False
    leave: str | None = None


CORRECT_BATCH = BatchSeams()

#: Values of ``BatchSeams.leave``.
LEAVE_TOKENS = "tokens"
LEAVE_CACHES = "caches"


def position_row(seams: Seams, consumed: int, rows: int, guards: frozenset[str]) -> int:
    """Return the row of ``wpe`` (of ``rows``) that the input after ``consumed`` others reads.

    Raises:
        PositionError: another row than ``consumed`` while the guard ``position`` is on, or a
            row that does not exist.
    """
    position = consumed if seams.position is None else seams.position(consumed)
    if position >= rows and seams.past_context is not None:
        position = seams.past_context(position, rows)
    if position != consumed and "position" in guards:
        raise PositionError(consumed, position)
    if not 0 <= position < rows:
        raise PositionError(f"a row from 0 to {rows - 1}", position)
    return position


def layer_sources(seams: Seams, tags: Sequence[int], guards: frozenset[str]) -> Sequence[int]:
    """Return, for each layer, the index of the cache that its attention reads.

    Args:
        seams: interventions.
        tags: the layer that each cache says it belongs to, in the order they stand.
        guards: which refusals are on.

    Raises:
        WrongLayerError: the cache of another layer while the guard ``layer`` is on, or one that
            does not exist or has not appended this position yet.
    """
    layers = range(len(tags))
    sources = layers if seams.read_layer is None else [seams.read_layer(layer) for layer in layers]
    for layer, source in enumerate(sources):
        if not 0 <= source <= layer:
            raise WrongLayerError(f"one from 0 to {layer}", source)
        if tags[source] != layer and "layer" in guards:
            raise WrongLayerError(layer, tags[source])
    return sources
