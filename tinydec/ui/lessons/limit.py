"""How far pages let a run go: a large uploaded model must not keep the server busy."""

from __future__ import annotations

from dataclasses import replace

from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec

#: New tokens at most, on pages that show whole runs.
MOST_NEW_TOKENS = 64


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
