"""Rounding noise: how far the two correct paths are apart on many random models.

A tolerance has to lie above this noise and below the effect of every fault. The models are drawn
from a seed, with sizes that vary, so that the noise is not that of one set of weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ACTIVATIONS, ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.prefill import prefill
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import DTYPES
from tinydec.verification.compare import absolute_difference

#: Sizes that random models are drawn from.
HEADS = (1, 2, 3, 4)
HEAD_WIDTHS = (2, 3, 4, 5, 8)
LAYERS = (1, 2, 3, 4)
CONTEXTS = (4, 5, 7, 8, 11)
VOCABULARIES = (7, 8, 11, 13, 17, 23)
MLP_WIDTHS = (8, 11, 16, 19, 24)
#: A width below this makes layer norm blind: with two values it returns -1 and 1.
LEAST_WIDTH = 4
#: Standard deviation of a weight: that of the shipped checkpoint before training.
SCALE = 0.5
#: Prompts that each model runs.
PROMPTS = 2

_REQUEST = "noise"


@dataclass(frozen=True)
class ModelNoise:
    """Largest logit difference of the two paths on one random model.

    Attributes:
        index: its number among the models.
        config: its sizes.
        errors: by number format, over ``PROMPTS`` prompts that fill the context, every position.
    """

    index: int
    config: ModelConfig
    errors: dict[str, float]


def draw_config(generator: np.random.Generator) -> ModelConfig:
    """Draw the sizes of a random model of at least :data:`LEAST_WIDTH` channels."""
    heads = int(generator.choice(HEADS))
    widths = [width for width in HEAD_WIDTHS if width * heads >= LEAST_WIDTH]
    return ModelConfig(
        vocab_size=int(generator.choice(VOCABULARIES)),
        n_positions=int(generator.choice(CONTEXTS)),
        n_embd=heads * int(generator.choice(widths)),
        n_layer=int(generator.choice(LAYERS)),
        n_head=heads,
        n_inner=int(generator.choice(MLP_WIDTHS)),
        activation_function=str(generator.choice(ACTIVATIONS)),
        attention_bias=bool(generator.integers(2)),
        tie_word_embeddings=bool(generator.integers(2)),
    )


def draw_checkpoint(config: ModelConfig, generator: np.random.Generator) -> Checkpoint:
    """Draw the weights of a model, float64: normal with :data:`SCALE`, norms around 1."""
    tensors: dict[str, NDArray[np.float64]] = {}
    for name, shape in config.tensor_shapes().items():
        values = generator.normal(0.0, SCALE, shape)
        is_norm_weight = name.split(".")[-2].startswith("ln_") and name.endswith("weight")
        tensors[name] = 1.0 + values / 2 if is_norm_weight else values
    return Checkpoint.build(config, Vocabulary.numbered(config.vocab_size), tensors)


def path_difference(checkpoint: Checkpoint, token_ids: NDArray[np.int64]) -> float:
    """Return the largest logit difference of the cached path from the full forward.

    Args:
        checkpoint: in the dtype of the arithmetic.
        token_ids: (B, T) prompts; the first half is prefilled, the rest decoded one by one, so
            that the rounding of both counts.

    Returns:
        The largest ``|full - cached|`` over all B prompts, T positions and V tokens.
    """
    full = full_forward(checkpoint, token_ids).logits  # (B, T, V)
    half = (token_ids.shape[1] + 1) // 2
    cache = KVCache(checkpoint, _REQUEST, len(token_ids))
    first = prefill(checkpoint, cache, token_ids[:, :half], _REQUEST).logits  # (B, P, V)
    rest = (  # (B, 1, V) each
        decode_step(checkpoint, cache, column, _REQUEST).logits
        for column in token_ids[:, half:].T.tolist()
    )
    cached = np.concatenate([first, *rest], axis=1)  # (B, T, V)
    return float(absolute_difference(full, cached).max())


def measure_noise(
    count: int,
    seed: int = 0,
    dtypes: tuple[str, ...] = DTYPES,
    sizes: ModelConfig | None = None,
) -> tuple[ModelNoise, ...]:
    """Return the noise of ``count`` random models; the same seed gives the same models.

    The model with number i depends on the seed, the sizes and i alone.

    Args:
        count: how many models.
        seed: draws them.
        dtypes: number formats.
        sizes: of every model; by default each draws its own.
    """
    found = []
    for index in range(count):
        generator = np.random.default_rng([seed, index])
        config = draw_config(generator) if sizes is None else sizes
        checkpoint = draw_checkpoint(config, generator)
        ids = generator.integers(config.vocab_size, size=(PROMPTS, config.n_positions))
        errors = {dtype: path_difference(checkpoint.cast(dtype), ids) for dtype in dtypes}
        found.append(ModelNoise(index, config, errors))
    return tuple(found)
