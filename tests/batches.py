"""Random decoders with an end token, and random batches: requests, joins and leaves."""

import random
from collections.abc import Sequence

from tests.random_models import random_tensors
from tests.strategies import CONTEXTS, HEAD_WIDTHS, HEADS, MLP_WIDTHS, VOCABULARIES
from tinydec.generation.schedule import JOIN, LEAVE, BatchRequest, Event
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ACTIVATIONS, ModelConfig
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import Policy

EOS_ID = 1


def random_model(seed: int, dtype: str = "float64", layers: int | None = None) -> Checkpoint:
    """Return a decoder whose sizes are pairwise unequal primes; token 1 ends a sequence."""
    rng = random.Random(seed)
    taken: set[int] = set()

    def prime(choices: Sequence[int]) -> int:
        number = rng.choice([choice for choice in choices if choice not in taken])
        taken.add(number)
        return number

    heads, d_h, context = prime(HEADS), prime(HEAD_WIDTHS), prime(CONTEXTS)
    config = ModelConfig(
        vocab_size=prime(VOCABULARIES),
        n_positions=context,
        n_embd=heads * d_h,
        n_layer=rng.randint(1, 3) if layers is None else layers,
        n_head=heads,
        n_inner=prime(MLP_WIDTHS),
        activation_function=rng.choice(ACTIVATIONS),
        attention_bias=rng.random() < 0.5,
        tie_word_embeddings=rng.random() < 0.5,
    )
    tensors = {name: array.astype(dtype) for name, array in random_tensors(config, seed).items()}
    tokens = Vocabulary.numbered(config.vocab_size).tokens
    return Checkpoint.build(config, Vocabulary(tokens, eos=tokens[EOS_ID]), tensors)


def random_policy(rng: random.Random, vocab_size: int) -> Policy:
    return Policy(
        rng.choice(("greedy", "sample", "sample")),
        rng.choice((0.5, 1.0, 1.7)),
        rng.choice((None, 1, 3, vocab_size)),
        rng.choice((None, None, 0.6, 1.0)),
    )


def random_request(rng: random.Random, config: ModelConfig, number: int) -> BatchRequest:
    length = rng.randint(1, config.n_positions)
    return BatchRequest(
        f"r{number}",
        tuple(rng.randrange(config.vocab_size) for _ in range(length)),
        random_policy(rng, config.vocab_size),
        rng.randrange(1000),
        rng.choice((None, None, 1, 2, 5)),
        tuple(rng.sample(range(config.vocab_size), rng.choice((0, 0, 1)))),
    )


def random_batch(
    rng: random.Random, config: ModelConfig, most: int = 6
) -> tuple[tuple[BatchRequest, ...], tuple[Event, ...]]:
    """Return 1 to ``most`` requests, of which some join late and some are cancelled."""
    requests = tuple(random_request(rng, config, n) for n in range(rng.randint(1, most)))
    events = []
    for request in requests:
        joined = rng.choice((0, 0, 1, 2, 3, 7))
        if joined:
            events.append(Event(joined, JOIN, request.request_id))
        if rng.random() < 0.25:
            events.append(Event(joined + rng.randint(0, 4), LEAVE, request.request_id))
    rng.shuffle(events)
    return requests, tuple(events)
