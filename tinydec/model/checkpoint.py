"""A checkpoint: tensors, config and vocabulary under one digest, none of which ever changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinydec.errors import InputError
from tinydec.model.config import ModelConfig
from tinydec.model.provenance import frozen_provenance
from tinydec.model.vocabulary import Vocabulary
from tinydec.model.weights import Weights, build_weights
from tinydec.runspec import DTYPES as DTYPES

#: The mode in which generation runs: no dropout.
EVALUATION = "evaluation"

Array = NDArray[Any]


class PartDigests(NamedTuple):
    """SHA-256 (hex) of each part of a checkpoint."""

    config: str
    vocabulary: str
    tensors: str


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Tensors + config + vocabulary, with a digest over the three.

    Build one with :meth:`build`, which checks everything and freezes the arrays. A change of
    any parameter makes a new checkpoint with a new digest; two checkpoints are equal when their
    digests are.
    """

    config: ModelConfig
    vocabulary: Vocabulary
    tensors: Mapping[str, Array]
    digest: str
    mode: str = EVALUATION
    provenance: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def build(
        cls,
        config: ModelConfig,
        vocabulary: Vocabulary,
        tensors: Mapping[str, Array],
        provenance: Mapping[str, Any] | None = None,
        mode: str = EVALUATION,
    ) -> Checkpoint:
        """Check the tensors against the config and return a frozen checkpoint.

        Args:
            config: sizes; decides which tensors there must be and their shapes.
            vocabulary: as many tokens as ``config.vocab_size``.
            tensors: every tensor of ``config.tensor_shapes()``, one dtype for all. The
                arrays are copied, so that nobody else can write to them.
            provenance: JSON values that say where the tensors come from; not in the digest.
                They are copied, objects as read-only mappings and lists as tuples.
            mode: the model mode; generation wants ``evaluation``.

        Raises:
            InputError: a tensor is missing, unknown, of another shape or dtype than the rest,
                or not finite; the vocabulary has another size; or the provenance is no JSON
                object.
        """
        if len(vocabulary) != config.vocab_size:
            raise InputError(
                f"vocabulary: expected vocab_size = {config.vocab_size} tokens, "
                f"found {len(vocabulary)}"
            )
        _check_names(config, tensors)
        frozen = {name: _frozen_copy(tensors[name]) for name in config.tensor_shapes()}
        _check_arrays(config, frozen)
        return cls(
            config,
            vocabulary,
            MappingProxyType(frozen),
            _digest(config, vocabulary, frozen),
            mode,
            frozen_provenance({} if provenance is None else provenance),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number format of every tensor and of everything computed from them."""
        return self.tensors["wte.weight"].dtype

    @cached_property
    def weights(self) -> Weights:
        """The tensors in the form that the forward passes use."""
        return build_weights(self.config, self.tensors)

    @cached_property
    def part_digests(self) -> PartDigests:
        """Digests of config, vocabulary and tensors, each on its own."""
        return _part_digests(self.config, self.vocabulary, self.tensors)

    def cast(self, dtype: str) -> Checkpoint:
        """Return this checkpoint in another number format (itself when it has it already).

        Raises:
            InputError: ``dtype`` is none of float16, float32, float64, or a value overflows in it.
        """
        if dtype not in DTYPES:
            raise InputError(f"dtype: expected one of {', '.join(DTYPES)}, found {dtype!r}")
        if self.dtype == np.dtype(dtype):
            return self
        return self.with_tensors({name: cast(a, dtype) for name, a in self.tensors.items()})

    def with_tensors(self, tensors: Mapping[str, Array]) -> Checkpoint:
        """Return a checkpoint with other tensors, and so with its own digest."""
        return Checkpoint.build(
            self.config, self.vocabulary, tensors, self.provenance, mode=self.mode
        )

    def in_mode(self, mode: str) -> Checkpoint:
        """Return the same checkpoint in another mode (same digest: no tensor changed)."""
        return replace(self, mode=mode)


def cast(array: Array, dtype: str) -> Array:
    """Return ``array`` in another float format; a value too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def _frozen_copy(array: Array) -> Array:
    copy = np.array(array, order="C")
    copy = copy.astype(copy.dtype.newbyteorder("="), copy=False)  # this machine's byte order
    copy.setflags(write=False)
    return copy


def _check_names(config: ModelConfig, tensors: Mapping[str, Array]) -> None:
    if config.n_layer > len(tensors):  # before a name is made for each of a billion layers
        raise InputError(
            f"tensors: expected those of n_layer = {config.n_layer} layers, "
            f"found {len(tensors)} in all"
        )
    shapes = config.tensor_shapes()
    missing = [name for name in shapes if name not in tensors]
    if missing:
        raise InputError(
            f"tensors: expected {len(shapes)} names, found {len(missing)} of them missing: "
            f"{missing[0]}{' …' if len(missing) > 1 else ''}"
        )
    extra = sorted(set(tensors) - set(shapes))
    if extra:
        raise InputError(
            f"tensors: expected the {len(shapes)} names of the config, found {len(extra)} more: "
            f"{extra[0]!r:.60}{' …' if len(extra) > 1 else ''}"
        )


def _check_arrays(config: ModelConfig, tensors: Mapping[str, Array]) -> None:
    first = tensors["wte.weight"].dtype
    for name, shape in config.tensor_shapes().items():
        array = tensors[name]
        if array.shape != shape:
            raise InputError(f"tensor {name}: expected shape {shape}, found {array.shape}")
        if array.dtype.name not in DTYPES or array.dtype != first:
            expected = first.name if first.name in DTYPES else " or ".join(DTYPES)
            raise InputError(f"tensor {name}: expected dtype {expected}, found {array.dtype.name}")
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise InputError(
                f"tensor {name}: expected finite values, found {array[where]} at {list(where)}"
            )


def _digest(config: ModelConfig, vocabulary: Vocabulary, tensors: Mapping[str, Array]) -> str:
    """Return the SHA-256 (hex) over config, vocabulary and every tensor's name, type and bytes."""
    head = {"config": config.to_dict(), "vocabulary": vocabulary.to_dict()}
    sha = hashlib.sha256(canonical_json(head).encode())
    _add_tensors(sha, tensors)
    return sha.hexdigest()


def _part_digests(
    config: ModelConfig, vocabulary: Vocabulary, tensors: Mapping[str, Array]
) -> PartDigests:
    sha = hashlib.sha256()
    _add_tensors(sha, tensors)
    return PartDigests(
        hashlib.sha256(canonical_json(config.to_dict()).encode()).hexdigest(),
        hashlib.sha256(canonical_json(vocabulary.to_dict()).encode()).hexdigest(),
        sha.hexdigest(),
    )


def _add_tensors(sha: hashlib._Hash, tensors: Mapping[str, Array]) -> None:
    for name in sorted(tensors):
        array = tensors[name]
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        sha.update(f"\n{name} {array.dtype.name} {array.shape}\n".encode())
        sha.update(np.ascontiguousarray(little).view(np.uint8).data)


def canonical_json(values: Any) -> str:
    """Return JSON whose bytes depend on the values alone: sorted keys, no spaces."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
