"""Random decoders that know `<eos>`, runs on them, and what makes two runs the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.random_models import random_tensors
from tests.strategies import configs
from tinydec.generation.generate import run_request
from tinydec.generation.request import Request
from tinydec.generation.trace import GenerationTrace, StepRecord
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import Policy

GREEDY = Policy()

#: Sizes that differ: V 7, context 5, width 6, 2 layers, 3 heads of width 2, MLP 11.
SMALL = ModelConfig(7, 5, 6, 2, 3, 11)


def decoder(
    config: ModelConfig = SMALL, seed: int = 3, dtype: str = "float64", eos: int | None = None
) -> Checkpoint:
    """Return a decoder over the tokens t0, t1 ..., one of which may be `<eos>`."""
    names = tuple(f"t{token}" for token in range(config.vocab_size))
    vocabulary = Vocabulary(names, eos=None if eos is None else names[eos])
    tensors = {name: 2 * array for name, array in random_tensors(config, seed).items()}
    return Checkpoint.build(
        config, vocabulary, {name: array.astype(dtype) for name, array in tensors.items()}
    )


@st.composite
def decoders(draw: st.DrawFn, dtype: str = "float64") -> Checkpoint:
    config = draw(configs(max_layers=2))
    eos = draw(st.none() | st.integers(0, config.vocab_size - 1))
    return decoder(config, draw(st.integers(0, 2**16)), dtype, eos)


@st.composite
def run_options(draw: st.DrawFn, config: ModelConfig) -> dict:
    """Draw the arguments of a request but for its checkpoint, cache and id."""
    tokens = st.integers(0, config.vocab_size - 1)
    policy = Policy(
        draw(st.sampled_from(("greedy", "sample"))),
        draw(st.floats(0.1, 5)),
        draw(st.none() | st.integers(1, config.vocab_size)),
        draw(st.none() | st.floats(0.05, 1)),
    )
    return {
        "prompt_ids": draw(st.lists(tokens, min_size=1, max_size=config.n_positions)),
        "policy": policy,
        "seed": draw(st.integers(0, 2**40)),
        "max_new_tokens": draw(st.none() | st.integers(1, config.n_positions + 2)),
        "stop_token_ids": draw(st.sets(tokens, max_size=2)),
    }


def run(
    checkpoint: Checkpoint,
    prompt_ids: Sequence[int] = (1,),
    policy: Policy = GREEDY,
    seed: int = 0,
    **options: Any,
) -> GenerationTrace:
    return run_request(Request(checkpoint, prompt_ids, policy, seed, **options))


def assert_same_step(one: StepRecord, other: StepRecord) -> None:
    """Every recorded value is the same, arrays bit by bit."""
    assert one.selection.same_as(other.selection)
    for name in ("index", "phase", "consumed_ids", "positions", "length_before", "length_after"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.stop_reason == other.stop_reason
    assert (one.activations is None) == (other.activations is None)
    if one.activations is not None and other.activations is not None:
        for (name, array), (_, same) in zip(
            one.activations.named(), other.activations.named(), strict=True
        ):
            assert array.dtype == same.dtype, name
            assert np.array_equal(array, same), name


def assert_same_trace(one: GenerationTrace, other: GenerationTrace) -> None:
    """The same run, but for the id of the request."""
    names = set(one.__dataclass_fields__) - {"steps", "request_id"}
    assert {n: getattr(one, n) for n in names} == {n: getattr(other, n) for n in names}
    for mine, theirs in zip(one.steps, other.steps, strict=True):
        assert_same_step(mine, theirs)
