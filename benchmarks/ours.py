"""What the decoder does in the timed calls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.timing import Job
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.prefill import prefill
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.equivalence import verify_prefixes

_REQUEST = "benchmark"

#: The sizes of GPT-2 small: 124,439,808 parameters.
GPT2_SMALL = ModelConfig(
    vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12, n_inner=3072
)


def random_checkpoint(config: ModelConfig, seed: int = 0) -> Checkpoint:
    """Return float32 normal weights of deviation 0.02, as GPT-2 starts its training from."""
    generator = np.random.default_rng(seed)
    tensors = {
        name: generator.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        for name, shape in config.tensor_shapes().items()
    }
    return Checkpoint.build(config, Vocabulary.numbered(config.vocab_size), tensors)


def decode_context(checkpoint: Checkpoint, token_ids: Sequence[int], passes: int) -> Job:
    """Consume the tokens one by one in a new cache, ``passes`` times over.

    Guards are on, the seams are asked, and every step returns all of its intermediates.
    """

    def run() -> None:
        for _ in range(passes):
            cache = KVCache(checkpoint, _REQUEST)
            for token_id in token_ids:
                decode_step(checkpoint, cache, (token_id,), _REQUEST)

    return Job(run, passes * len(token_ids))


def verify(checkpoint: Checkpoint, every_split: bool, side_by_side: bool, passes: int) -> Job:
    """Compare both paths on the controlled prefixes, everything recorded; all of it must pass."""

    def run() -> None:
        for _ in range(passes):
            report = verify_prefixes(checkpoint, every_split=every_split, side_by_side=side_by_side)
            if not report.passed:
                raise RuntimeError(f"{report.passed_count} of {len(report.prefixes)} prefixes pass")

    return Job(run, passes)


class GreedyDecoder:
    """Greedy generation: an untimed prefill of the prompt, then timed decode steps."""

    def __init__(self, checkpoint: Checkpoint, prompt: Sequence[int], steps: int) -> None:
        self._checkpoint = checkpoint
        self._prompt = tuple(prompt)
        self._steps = steps
        self.token_ids: list[int] = []

    def job(self) -> Job:
        """Return the timed job, one unit per decode step."""
        return Job(self._decode, self._steps, self._prefill)

    def _prefill(self) -> None:
        self._cache = KVCache(self._checkpoint, _REQUEST)
        found = prefill(self._checkpoint, self._cache, self._prompt, _REQUEST)
        self.token_ids = [int(found.last_logits[0].argmax())]

    def _decode(self) -> None:
        ids = self.token_ids
        for _ in range(self._steps):
            found = decode_step(self._checkpoint, self._cache, ids[-1:], _REQUEST)
            ids.append(int(found.last_logits[0].argmax()))


def gigabytes(config: ModelConfig) -> float:
    """Return the size of the float32 weights that a decode step has to read."""
    return 4 * sum(math.prod(shape) for shape in config.tensor_shapes().values()) / 1e9
