"""Named places in the correct code where a fault may intervene.

A fault is data: a value for one of these seams. No copy of the decoder is kept broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinydec.model.guards import PositionError, WrongLayerError


@dataclass(frozen=True)
class Seams:
    """What a cached computation asks at each seam; None is the correct contract.

    Attributes:
        position: maps the number of consumed inputs to the position row that is read
            (correct: the same number).
        read_layer: maps a layer to the layer whose cache its attention reads (correct: its own).
    """

    position: Callable[[int], int] | None = None
    read_layer: Callable[[int], int] | None = None


#: No intervention.
CORRECT = Seams()


def position_row(seams: Seams, consumed: int, rows: int, guards: frozenset[str]) -> int:
    """Return the row of ``wpe`` (of ``rows``) that the input after ``consumed`` others reads.

    Raises:
        PositionError: another row than ``consumed`` while the guard ``position`` is on, or a
            row that does not exist.
    """
    position = consumed if seams.position is None else seams.position(consumed)
    if position != consumed and "position" in guards:
        raise PositionError(consumed, position)
    if not 0 <= position < rows:
        raise PositionError(f"a row from 0 to {rows - 1}", position)
    return position


def layer_sources(seams: Seams, layers: int, guards: frozenset[str]) -> Sequence[int]:
    """Return, for each layer, the layer whose cache its attention reads.

    Raises:
        WrongLayerError: another layer while the guard ``layer`` is on, or one that does not
            exist or has not appended this position yet.
    """
    if seams.read_layer is None:
        return range(layers)
    sources = [seams.read_layer(layer) for layer in range(layers)]
    for layer, source in enumerate(sources):
        if source != layer and "layer" in guards:
            raise WrongLayerError(layer, source)
        if not 0 <= source <= layer:
            raise WrongLayerError(f"one from 0 to {layer}", source)
    return sources
