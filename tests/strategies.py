"""Hypothesis strategies: small decoders whose sizes are unequal primes, and prompts for them.

Sizes that differ pairwise make swapped axes fail instead of pass.
"""

from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ACTIVATIONS, ModelConfig

HEADS = (2, 3, 5)
HEAD_WIDTHS = (2, 3, 5, 7, 11)
CONTEXTS = (5, 7, 11)
VOCABULARIES = (7, 11, 13, 17)
MLP_WIDTHS = (11, 13, 17, 19, 23)


@st.composite
def configs(draw: st.DrawFn, max_layers: int = 3) -> ModelConfig:
    """Draw sizes that are pairwise unequal primes; biases, head and activation vary."""
    taken: set[int] = set()

    def prime(choices: tuple[int, ...]) -> int:
        number = draw(st.sampled_from([choice for choice in choices if choice not in taken]))
        taken.add(number)
        return number

    heads, d_h, context = prime(HEADS), prime(HEAD_WIDTHS), prime(CONTEXTS)
    return ModelConfig(
        vocab_size=prime(VOCABULARIES),
        n_positions=context,
        n_embd=heads * d_h,
        n_layer=draw(st.integers(1, max_layers)),
        n_head=heads,
        n_inner=prime(MLP_WIDTHS),
        layer_norm_epsilon=draw(st.sampled_from((1e-5, 1e-3))),
        activation_function=draw(st.sampled_from(ACTIVATIONS)),
        attention_bias=draw(st.booleans()),
        tie_word_embeddings=draw(st.booleans()),
    )


@st.composite
def checkpoints(draw: st.DrawFn, dtype: str = "float64", max_layers: int = 3) -> Checkpoint:
    """Draw a config and fill it from a drawn seed."""
    return random_checkpoint(draw(configs(max_layers)), draw(st.integers(0, 2**16)), dtype)


def prompts(
    config: ModelConfig, batch: int = 1, min_size: int = 1, max_size: int | None = None
) -> st.SearchStrategy[list[list[int]]]:
    """Draw token ids (B, T) with T from ``min_size`` to the context (or ``max_size``)."""
    token = st.integers(0, config.vocab_size - 1)
    lengths = st.integers(min_size, config.n_positions if max_size is None else max_size)
    return lengths.flatmap(
        lambda length: st.lists(
            st.lists(token, min_size=length, max_size=length), min_size=batch, max_size=batch
        )
    )


@st.composite
def splits(draw: st.DrawFn, length: int) -> tuple[int, ...]:
    """Draw chunk sizes that sum to ``length``; 0 stands for a decode step of one token.

    Any mix of prefills of one or more tokens and decode steps, the first one included.
    """
    chunks: list[int] = []
    rest = length
    while rest:
        chunk = draw(st.integers(0, rest))
        chunks.append(chunk)
        rest -= chunk or 1
    return tuple(chunks)
