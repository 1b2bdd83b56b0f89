"""The prefixes on which both paths are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinydec.corpus import BOS, PATTERNS, TOKENS
from tinydec.model.checkpoint import Checkpoint

#: Patterns drawn for a checkpoint whose vocabulary is not the controlled one, and their length.
DRAWN_PATTERNS = 4
DRAWN_LENGTH = 4


@dataclass(frozen=True)
class PrefixCase:
    """One prefix of one pattern.

    Attributes:
        pattern: the pattern's name, such as ``A B C``.
        length: T, the number of tokens, ``<bos>`` included.
        token_ids: the T ids.
        tokens: the same as text.
    """

    pattern: str
    length: int
    token_ids: tuple[int, ...]
    tokens: str


def controlled_prefixes(checkpoint: Checkpoint) -> tuple[PrefixCase, ...]:
    """Return the prefixes of length 1 to 4 of the four patterns: 16, of which 11 are distinct.

    All four patterns begin with ``<bos>``, and two of them with ``<bos> A B``. A checkpoint with
    another vocabulary gets four patterns drawn by a generator with seed 0, of 4 tokens or of the
    whole context if that is shorter; they begin with its ``bos`` token where it has one.
    """
    vocabulary = checkpoint.vocabulary
    if vocabulary.tokens == TOKENS:
        patterns = {" ".join(pattern): vocabulary.encode((BOS, *pattern)) for pattern in PATTERNS}
    else:
        patterns = _drawn_patterns(checkpoint)
    longest = checkpoint.config.n_positions
    return tuple(
        PrefixCase(name, length, ids[:length], vocabulary.decode(ids[:length]))
        for name, ids in patterns.items()
        for length in range(1, min(len(ids), longest) + 1)
    )


def distinct_count(cases: tuple[PrefixCase, ...]) -> int:
    """Return how many different token sequences the cases hold."""
    return len({case.token_ids for case in cases})


def _drawn_patterns(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    config = checkpoint.config
    length = min(DRAWN_LENGTH, config.n_positions)
    drawn = np.random.default_rng(0).integers(config.vocab_size, size=(DRAWN_PATTERNS, length))
    if checkpoint.vocabulary.bos_id is not None:
        drawn[:, 0] = checkpoint.vocabulary.bos_id
    return {f"drawn {n}": tuple(int(i) for i in row) for n, row in enumerate(drawn, 1)}
