"""Sizes of a GPT-2-architecture decoder and the tensors that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tinydec.errors import InputError

#: Activation names as Hugging Face GPT-2 configs spell them: tanh form and exact (erf) form.
ACTIVATIONS = ("gelu_new", "gelu")

#: Larger sizes are mistakes, and would make a loop over layers or tokens endless.
_LARGEST = 2**31 - 1
_INTEGER_FIELDS = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner")


@dataclass(frozen=True)
class ModelConfig:
    """Everything that determines the shapes and the arithmetic of a decoder.

    Field names are those of Hugging Face's GPT-2 config. ``attention_bias`` says whether
    ``c_attn`` and the attention's ``c_proj`` carry biases; ``tie_word_embeddings`` whether the
    output head is ``wte.weight`` or a separate ``lm_head.weight``.

    Raises:
        InputError: a size below 1, a width that the heads do not divide, an activation or
            epsilon outside its domain.
    """

    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    n_inner: int
    layer_norm_epsilon: float = 1e-5
    activation_function: str = "gelu_new"
    attention_bias: bool = True
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        for name in _INTEGER_FIELDS:
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= _LARGEST:
                raise InputError(
                    f"config {name}: expected an integer from 1 to {_LARGEST}, found {value!r:.60}"
                )
        if self.n_embd % self.n_head:
            raise InputError(
                f"config n_embd: expected a multiple of n_head = {self.n_head}, found {self.n_embd}"
            )
        epsilon: Any = self.layer_norm_epsilon  # a JSON file may hold anything
        if not isinstance(epsilon, float) or not math.isfinite(epsilon) or epsilon <= 0:
            raise InputError(
                f"config layer_norm_epsilon: expected a finite float > 0, found {epsilon!r:.60}"
            )
        if self.activation_function not in ACTIVATIONS:
            raise InputError(
                f"config activation_function: expected one of {', '.join(ACTIVATIONS)}, "
                f"found {self.activation_function!r:.60}"
            )
        for name in ("attention_bias", "tie_word_embeddings"):
            if type(getattr(self, name)) is not bool:
                raise InputError(
                    f"config {name}: expected true or false, found {getattr(self, name)!r:.60}"
                )

    @property
    def d_h(self) -> int:
        """Head width: ``n_embd / n_head`` scalars."""
        return self.n_embd // self.n_head

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return every tensor's name and shape, in the order the decoder uses them.

        Names are Hugging Face's GPT-2 names without prefix; matrices are (in, out).
        """
        d, m = self.n_embd, self.n_inner
        shapes: dict[str, tuple[int, ...]] = {
            "wte.weight": (self.vocab_size, d),
            "wpe.weight": (self.n_positions, d),
        }
        for layer in range(self.n_layer):
            shapes |= self._block_shapes(f"h.{layer}.", d, m)
        shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
        if not self.tie_word_embeddings:
            shapes["lm_head.weight"] = (self.vocab_size, d)
        return shapes

    def _block_shapes(self, prefix: str, d: int, m: int) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {
            "ln_1.weight": (d,),
            "ln_1.bias": (d,),
            "attn.c_attn.weight": (d, 3 * d),
            "attn.c_attn.bias": (3 * d,),
            "attn.c_proj.weight": (d, d),
            "attn.c_proj.bias": (d,),
            "ln_2.weight": (d,),
            "ln_2.bias": (d,),
            "mlp.c_fc.weight": (d, m),
            "mlp.c_fc.bias": (m,),
            "mlp.c_proj.weight": (m, d),
            "mlp.c_proj.bias": (d,),
        }
        if not self.attention_bias:
            del shapes["attn.c_attn.bias"], shapes["attn.c_proj.bias"]
        return {prefix + name: shape for name, shape in shapes.items()}

    def parameter_count(self) -> int:
        """Return the number of scalars in all tensors (368 for the frozen decoder)."""
        return sum(math.prod(shape) for shape in self.tensor_shapes().values())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """Build a config from JSON values.

        Raises:
            InputError: a field is missing or unknown, or a value is outside its domain.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"config: expected a JSON object, found {type(values).__name__}")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise InputError(
                f"config: expected the fields {', '.join(sorted(known))}, found {unknown[0]!r:.60}"
            )
        missing = [name for name in _INTEGER_FIELDS if name not in values]
        if missing:
            raise InputError(f"config: expected the field {missing[0]!r}, found none")
        return cls(**values)
