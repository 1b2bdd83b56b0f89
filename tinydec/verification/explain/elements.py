"""What an explanation speaks of: single numbers, each with the place that it was taken from."""

from __future__ import annotations

from dataclasses import dataclass

from tinydec.model.activations import HEAD_TENSORS


@dataclass(frozen=True)
class Element:
    """One number of one named tensor in one step of a run.

    Attributes:
        step: index of the forward pass that computed (or, for ``keys`` and ``values``, read) it.
        tensor: a name of :func:`tinydec.model.activations.tensor_names`.
        position: which input of the run, from 0; for ``keys`` and ``values`` the cache slot.
        index: place in the last axis; for ``scores`` and ``attention`` the key's position.
        head: for tensors that have heads, else 0.
        sequence: row of the batch.
    """

    step: int
    tensor: str
    position: int
    index: int
    head: int = 0
    sequence: int = 0

    @property
    def field(self) -> str:
        """The tensor's name without its layer, such as ``scores``."""
        return self.tensor.rsplit(".", 1)[-1]

    @property
    def layer(self) -> int | None:
        """The layer, or None for the tensors outside the layers."""
        return int(self.tensor.split(".")[1]) if self.tensor.startswith("h.") else None

    @property
    def name(self) -> str:
        """``logits[position, index]`` or ``h.0.q[head, position, index]``.

        A batch's rows after the first stand in front: ``logits[1; position, index]``.
        """
        head = f"{self.head}, " if self.field in HEAD_TENSORS else ""
        sequence = f"{self.sequence}; " if self.sequence else ""
        return f"{self.tensor}[{sequence}{head}{self.position}, {self.index}]"


@dataclass(frozen=True)
class WeightElement:
    """One number of one tensor of the checkpoint."""

    tensor: str
    index: tuple[int, ...]

    @property
    def name(self) -> str:
        """Such as ``wte.weight[4, 2]``."""
        return f"{self.tensor}[{', '.join(map(str, self.index))}]"


@dataclass(frozen=True)
class TokenId:
    """The token id that the run consumed at a position."""

    position: int
    sequence: int = 0

    @property
    def name(self) -> str:
        """Such as ``token id[2]``."""
        return f"token id[{self.position}]"


@dataclass(frozen=True)
class Constant:
    """A number of the architecture or of the position, such as ε, d_h or a position."""

    name: str


Source = Element | WeightElement | TokenId | Constant


@dataclass(frozen=True)
class Operand:
    """A number that goes into an arithmetic, and where it comes from."""

    value: float
    source: Source

    @property
    def name(self) -> str:
        """The source's name."""
        return self.source.name
