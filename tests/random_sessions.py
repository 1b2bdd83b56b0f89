"""Random decoders and sessions for the fault lab: shapes, prompts and weights from one seed."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tinydec.generation.generate import run_request
from tinydec.generation.request import Request
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ACTIVATIONS, ModelConfig
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import Policy
from tinydec.verification.lab.kill_matrix import Laboratory, laboratory
from tinydec.verification.lab.scenario import Scenario, drawn_scenario


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


def with_reachable_eos(checkpoint: Checkpoint, scenario: Scenario) -> tuple[Checkpoint, Scenario]:
    """Name as ``<eos>`` the token that the greedy run selects at its last position.

    A random checkpoint has no token that ends a sequence; this gives it one for which ``eos`` and
    ``context`` apply at the same step. Where that token comes earlier in the run too, the prompt
    is taken one token longer, up to the whole context, which leaves a single step. The batch's
    greedy row gets the same prompt, so that it ends with ``<eos>`` too. The prompt that fills the
    context gets a last token after which something else than ``<eos>`` comes, if there is one.
    """
    greedy = next(run for run in scenario.runs if run.name == "greedy")
    filled = next(run for run in scenario.runs if run.name == "full context")
    prompt = greedy.prompt
    for extra in range(checkpoint.config.n_positions - len(greedy.prompt) + 1):
        prompt = greedy.prompt + filled.prompt[:extra]
        returned = _returned(checkpoint, prompt)
        if returned[-1] not in returned[:-1]:
            break
    tokens = checkpoint.vocabulary.tokens
    vocabulary = Vocabulary(tokens, checkpoint.vocabulary.bos, tokens[returned[-1]])
    changed = Checkpoint.build(checkpoint.config, vocabulary, checkpoint.tensors)
    prompts = {greedy.name: prompt, filled.name: _without_eos(changed, filled.prompt)}
    return changed, Scenario(
        tuple(replace(run, prompt=prompts.get(run.name, run.prompt)) for run in scenario.runs),
        tuple(
            replace(row, prompt=prompt) if row.policy == greedy.policy else row
            for row in scenario.rows
        ),
        scenario.neighbour_shift,
    )


def _without_eos(checkpoint: Checkpoint, prompt: tuple[str, ...]) -> tuple[str, ...]:
    for token in (prompt[-1], *checkpoint.vocabulary.tokens):
        tried = (*prompt[:-1], token)
        if _returned(checkpoint, tried)[0] != checkpoint.vocabulary.eos_id:
            return tried
    return prompt


def _returned(checkpoint: Checkpoint, prompt: tuple[str, ...]) -> tuple[int, ...]:
    request = Request(checkpoint, checkpoint.vocabulary.encode(prompt), Policy(), 0)
    return run_request(request).returned_ids
