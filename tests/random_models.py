"""Decoders with random weights that are the same everywhere and for ever."""

import random

import numpy as np
from numpy.typing import NDArray

from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.vocabulary import Vocabulary


def random_tensors(config: ModelConfig, seed: int) -> dict[str, NDArray[np.float64]]:
    """Return float64 tensors from Python's generator, whose numbers are the same for ever.

    In the order of ``config.tensor_shapes()`` and row by row, each scalar is the next
    ``random.Random(seed).random() - 0.5``; the weight of a layer norm is 1 plus that.
    """
    draw = random.Random(seed).random
    tensors = {}
    for name, shape in config.tensor_shapes().items():
        values = np.array([draw() - 0.5 for _ in range(int(np.prod(shape)))]).reshape(shape)
        is_scale = name.split(".")[-2].startswith("ln_") and name.endswith("weight")
        tensors[name] = values + 1.0 if is_scale else values
    return tensors


def random_checkpoint(config: ModelConfig, seed: int, dtype: str = "float64") -> Checkpoint:
    """Return a checkpoint of :func:`random_tensors` over the tokens t0, t1 ..."""
    tensors = {name: array.astype(dtype) for name, array in random_tensors(config, seed).items()}
    return Checkpoint.build(config, Vocabulary.numbered(config.vocab_size), tensors)
