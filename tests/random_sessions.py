"""Random decoders and sessions for the fault lab: shapes, prompts and weights from one seed."""

from functools import lru_cache

import numpy as np

from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ACTIVATIONS, ModelConfig
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.lab.kill_matrix import Laboratory, laboratory
from tinydec.verification.lab.scenario import Scenario, drawn_scenario, with_reachable_eos


def session(seed: int) -> tuple[Checkpoint, Scenario]:
    """Layers 2 to 4, heads 1 to 4, width at least 4, context 4 to 16, initial scale 0.5."""
    draw = np.random.default_rng(seed)
    heads = int(draw.integers(1, 5))
    d_h = int(draw.choice([2, 3, 5]))
    while heads * d_h < 4:
        d_h += 1
    config = ModelConfig(
        vocab_size=int(draw.integers(7, 18)),
        n_positions=int(draw.integers(4, 17)),
        n_embd=heads * d_h,
        n_layer=int(draw.integers(2, 5)),
        n_head=heads,
        n_inner=int(draw.integers(5, 24)),
        activation_function=str(draw.choice(ACTIVATIONS)),
        attention_bias=bool(draw.integers(2)),
        tie_word_embeddings=bool(draw.integers(2)),
    )
    tensors = {
        name: draw.normal(size=shape) * 0.5 + (1.0 if _is_scale(name) else 0.0)
        for name, shape in config.tensor_shapes().items()
    }
    checkpoint = Checkpoint.build(config, Vocabulary.numbered(config.vocab_size), tensors)
    return with_reachable_eos(checkpoint, drawn_scenario(checkpoint, seed))


def _is_scale(name: str) -> bool:
    return name.split(".")[-2].startswith("ln_") and name.endswith("weight")


@lru_cache(maxsize=4)
def random_laboratory(seed: int) -> Laboratory:
    """The lab of one random session in float64."""
    checkpoint, scenario = session(seed)
    return laboratory(checkpoint, scenario, 1e-9)
