"""Named places in the correct code where a fault may intervene.

A fault is data: a value for one of these seams. No copy of the decoder is kept broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
