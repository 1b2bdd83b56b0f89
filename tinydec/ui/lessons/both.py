"""One run on both paths: what Home and the lesson on the loop show."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.trace_pair import TracePair, compare_traces


@dataclass(frozen=True, eq=False)
class BothPaths:
    """A run with a cache and the same run without.

    Attributes:
        trace: the one that the cache control asks for.
        pair: both, step by step.
    """

    trace: GenerationTrace
    pair: TracePair


def both_paths(checkpoint: Checkpoint, spec: RunSpec) -> BothPaths:
    """Generate with a cache and without.

    Raises:
        InputError: see :func:`tinydec.generation.generate.new_request`.
    """
    cached = generate(checkpoint, replace(spec, cache=True))
    full = generate(checkpoint, replace(spec, cache=False))
    return BothPaths(cached if spec.cache else full, compare_traces(cached, full))
