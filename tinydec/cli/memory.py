"""``memory``: the cache payload of a preset, or of a checkpoint beside its measured bytes."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from tinydec.cli import options
from tinydec.cli.text import Outcome, one_line, verdict
from tinydec.errors import InputError
from tinydec.evidence.audit import checkpoint_id
from tinydec.evidence.layouts import checkpoint_layout
from tinydec.memory import (
    MemoryReport,
    PayloadCheck,
    check_payload,
    format_bytes,
    layout_report,
    memory_report,
)
from tinydec.memory.presets import find_preset, load_presets
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import DTYPES, Checkpoint
from tinydec.model.prefill import prefill
from tinydec.runspec import FROZEN

#: Above this many multiply-adds, about a second, a cache is not filled just to read its size.
_MOST_WORK = 10**9


def run(given: Namespace) -> Outcome:
    """Print the payload; exit code 1 when formula and arrays disagree."""
    tokens = options.integer("tokens", given.tokens)
    batch = options.integer("batch", given.batch)
    batch = 1 if batch is None else batch
    if given.model is not None:
        if given.checkpoint is not None:
            raise InputError("memory: expected --model or --checkpoint, found both")
        presets = load_presets()
        longest = find_preset(given.model, presets).max_context
        found = memory_report(
            given.model, longest if tokens is None else tokens, batch, given.dtype, presets=presets
        )
        return Outcome("\n".join(_lines(found)))
    checkpoint = options.checkpoint(given)
    name = checkpoint_id(checkpoint)
    layout = checkpoint_layout(checkpoint, FROZEN if name == FROZEN else f"checkpoint {name[:12]}")
    length = layout.max_context if tokens is None else tokens
    found = layout_report(layout, length, batch, given.dtype)
    check = measure(checkpoint, found)
    lines = _lines(found)
    if check is None:
        lines.append("Measured: not here (too large to fill, or no dtype that the decoder has)")
        return Outcome("\n".join(lines))
    lines.append(f"Measured: {check.measured_bytes} bytes of arrays, {verdict(check.agrees)}")
    return Outcome("\n".join(lines), 0 if check.agrees else 1)


def measure(checkpoint: Checkpoint, found: MemoryReport) -> PayloadCheck | None:
    """Fill a cache with that many positions and read its bytes off the arrays."""
    work = checkpoint.config.parameter_count() * found.tokens * found.batch * found.tokens
    if found.dtype not in DTYPES or work > _MOST_WORK:
        return None
    cast = checkpoint.cast(found.dtype)
    cache = KVCache(cast, "memory", found.batch)
    prefill(cast, cache, np.zeros((found.batch, found.tokens), int), "memory")
    return check_payload(
        found.scalars, found.dtype, (part for layer in cache.layers for part in layer.valid())
    )


def _lines(found: MemoryReport) -> list[str]:
    requests = "request" if found.batch == 1 else "requests"
    lines = [
        (
            f"{found.label}: {found.attention}, {found.batch} {requests} of {found.tokens} tokens, "
            f"{found.dtype}"
        ),
        f"Payload: {found.formula.symbols} = {found.formula.numbers}",
        f"Valid: {found.formula.bytes_numbers} ({found.size})",
        (
            f"Allocated: {found.allocated_bytes} bytes ({format_bytes(found.allocated_bytes)}), "
            f"{found.allocation}"
        ),
        f"The latest token of each request added {found.growth_bytes} bytes in all",
    ]
    lines += [f"Notes: {found.notes}"] if found.notes else []
    return [one_line(line) for line in [*lines, f"Source: {found.source}"]]
