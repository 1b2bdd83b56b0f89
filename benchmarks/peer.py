"""Hugging Face GPT-2 with the same weights, in its fastest plain setting.

Evaluation mode, ``torch.inference_mode``, ``use_cache`` with a ``DynamicCache``. Both attention
implementations that run on a CPU are timed, and the faster one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

from benchmarks.timing import Job
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward

ATTENTIONS = ("eager", "sdpa")

#: Largest difference of a logit at which both sides still count as the same model.
_SAME = 1e-3


def build(checkpoint: Checkpoint) -> Any:
    """Return the peer with a checkpoint's weights; attention biases are 0 where it has none.

    Raises:
        RuntimeError: its logits differ from this project's full forward.
    """
    config = checkpoint.config
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab_size,
            n_positions=config.n_positions,
            n_embd=config.n_embd,
            n_layer=config.n_layer,
            n_head=config.n_head,
            n_inner=config.n_inner,
            activation_function=config.activation_function,
            layer_norm_epsilon=config.layer_norm_epsilon,
            tie_word_embeddings=config.tie_word_embeddings,
            bos_token_id=0,
            eos_token_id=min(1, config.vocab_size - 1),
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            array = checkpoint.tensors.get(name.removeprefix("transformer."))
            parameter.copy_(torch.zeros(()) if array is None else torch.tensor(array))
    model.eval()
    _check(checkpoint, model)
    return model


def _check(checkpoint: Checkpoint, model: Any) -> None:
    config = checkpoint.config
    ids = np.arange(config.n_positions)[np.newaxis, :8] % config.vocab_size
    with torch.inference_mode():
        theirs = model(torch.from_numpy(ids), use_cache=False).logits.numpy()
    difference = float(np.abs(full_forward(checkpoint, ids).logits - theirs).max())
    if not difference <= _SAME:
        raise RuntimeError(f"expected the peer's logits within {_SAME}, found {difference}")


def with_attention(model: Any, attention: str, job: Job) -> Job:
    """Return the job with the model switched to an attention implementation before each sample."""

    def prepare() -> None:
        model.set_attn_implementation(attention)
        if job.prepare is not None:
            job.prepare()

    return Job(job.run, job.units, prepare)


def decode_context(model: Any, token_ids: Sequence[int], passes: int) -> Job:
    """Consume the tokens one by one in a new cache, ``passes`` times over."""
    columns = [torch.tensor([[token_id]]) for token_id in token_ids]

    def run() -> None:
        with torch.inference_mode():
            for _ in range(passes):
                cache = DynamicCache()
                for column in columns:
                    model(column, cache=cache, use_cache=True)

    return Job(run, passes * len(token_ids))


def final_logits(model: Any, batches: Sequence[Sequence[Sequence[int]]], passes: int) -> Job:
    """Run each batch as a whole and token by token with a cache; keep both final rows alone."""
    tensors = [torch.tensor(batch) for batch in batches]  # each (B, T)

    def once() -> list[tuple[Any, Any]]:
        rows = []
        for ids in tensors:
            full = model(ids, use_cache=False).logits[:, -1]  # (B, V)
            cache = DynamicCache()
            for position in range(ids.shape[1]):
                column = ids[:, position : position + 1]
                cached = model(column, cache=cache, use_cache=True).logits[:, -1]
            rows.append((full, cached))
        return rows

    def run() -> None:
        with torch.inference_mode():
            for _ in range(passes):
                once()

    return Job(run, passes)


class GreedyDecoder:
    """Greedy generation: an untimed prefill of the prompt, then timed decode steps."""

    def __init__(self, model: Any, prompt: Sequence[int], steps: int) -> None:
        self._model = model
        self._prompt = torch.tensor([list(prompt)])
        self._steps = steps
        self.token_ids: list[int] = []

    def job(self) -> Job:
        """Return the timed job, one unit per decode step."""
        return Job(self._decode, self._steps, self._prefill)

    def _prefill(self) -> None:
        self._cache = DynamicCache()
        with torch.inference_mode():
            found = self._model(self._prompt, cache=self._cache, use_cache=True, logits_to_keep=1)
        self.token_ids = [int(found.logits[0, -1].argmax())]

    def _decode(self) -> None:
        ids = self.token_ids
        with torch.inference_mode():
            for _ in range(self._steps):
                column = torch.tensor([ids[-1:]])
                found = self._model(column, cache=self._cache, use_cache=True)
                ids.append(int(found.logits[0, -1].argmax()))


def limit_threads(threads: int) -> None:
    """Make torch compute on this many threads."""
    torch.set_num_threads(threads)


def versions() -> dict[str, str]:
    """Return the peers' versions."""
    return {name: metadata.version(name) for name in ("torch", "transformers")}


def each_attention(model: Any, make: Callable[[], Job]) -> dict[str, Job]:
    """Return one job per attention implementation."""
    return {name: with_attention(model, name, make()) for name in ATTENTIONS}
