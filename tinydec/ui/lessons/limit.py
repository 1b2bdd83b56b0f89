"""How far pages let a run go: a large uploaded model must not keep the server busy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.trace_pair import TracePair, compare_traces

#: New tokens at most, on pages that show whole runs.
MOST_NEW_TOKENS = 64


@dataclass(frozen=True, eq=False)
class LessonRun:
    """A run with a cache and the same run without.

    Attributes:
        trace: the one that the cache control asks for.
        pair: both, step by step.
        note: what was limited, or "".
    """

    trace: GenerationTrace
    pair: TracePair
    note: str


def limited(checkpoint: Checkpoint, spec: RunSpec) -> tuple[RunSpec, str]:
    """Return the spec of a run that ends in good time, and a note when that changed it.

    The shipped checkpoint's runs end after 4 steps anyway; nothing changes for it.
    """
    steps = checkpoint.config.n_positions - len(spec.prompt) + 1
    asked = steps if spec.max_new_tokens is None else min(steps, spec.max_new_tokens)
    if asked <= MOST_NEW_TOKENS:
        return spec, ""
    note = f"This context allows {asked} new tokens; the page runs the first {MOST_NEW_TOKENS}."
    return replace(spec, max_new_tokens=MOST_NEW_TOKENS), note


def lesson_run(checkpoint: Checkpoint, spec: RunSpec) -> LessonRun:
    """Generate with a cache and without, no further than a page shows.

    Raises:
        InputError: see :func:`tinydec.generation.generate.new_request`.
    """
    short, note = limited(checkpoint, spec)
    cached = generate(checkpoint, replace(short, cache=True))
    full = generate(checkpoint, replace(short, cache=False))
    return LessonRun(cached if spec.cache else full, compare_traces(cached, full), note)
