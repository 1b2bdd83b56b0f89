"""Tables of memory and work: payload by length, real models in a given memory, work by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.memory import (
    AttentionLayout,
    GenerationStep,
    cache_bytes,
    growth_scalars,
    layout_report,
    requests_that_fit,
    valid_scalars,
)
from tinydec.memory.measured import Footprint, MeasuredPayload
from tinydec.memory.timing import StepTiming

PAYLOAD = TableSchema(
    "payload.csv",
    "Cache payload of the checkpoint by length and number format: formula beside arrays",
    (
        integer("tokens", "T, consumed tokens of each request"),
        integer("batch", "B, requests side by side"),
        text("dtype", "number format of a cached scalar"),
        integer("scalars", "by the formula"),
        integer("formula_bytes", "by the formula"),
        integer("measured_bytes", "valid bytes read off the arrays"),
        integer("allocated_bytes", "bytes set aside, read off the arrays"),
        flag("equal", "whether formula and arrays agree"),
    ),
)

REAL_MODELS = TableSchema(
    "real_models.csv",
    "Real models: payload of one request, and how many requests fit in a given memory",
    (
        text("model", "name"),
        text("attention", "mha, gqa, mqa, sliding or mla"),
        text("dtype", "number format of the cache"),
        integer("tokens", "T, at most the model's context"),
        integer("growth_bytes", "bytes that the latest token adds"),
        integer("payload_bytes", "valid bytes of one request"),
        integer("allocated_bytes", "the same in whole blocks"),
        integer("requests", "requests that fit in the memory, weights not counted"),
        flag("verified", "whether every size was confirmed in the sources"),
        text("notes", "what to know about the sizes", optional=True),
        text("source", "where the sizes come from"),
    ),
)

WORK = TableSchema(
    "work.csv",
    "Multiply-adds of each step with a cache and without one",
    (
        integer("step", "0 for the first returned token"),
        text("phase", "prefill or decode"),
        integer("tokens", "tokens that the step's logits depend on"),
        integer("cached_projections", "query, key, value and output projections"),
        integer("cached_attention", "scores and mix, visible pairs alone"),
        integer("cached_mlp", "both matrices of the MLP"),
        integer("cached_head", "output head"),
        integer("cached_total", "all of it"),
        integer("full_total", "without a cache"),
        integer("cached_sum", "all steps so far with a cache"),
        integer("full_sum", "all steps so far without one"),
    ),
)

FOOTPRINT = TableSchema(
    "footprint.csv",
    "The cache payload and what it leaves out",
    (text("part", "what is held"), integer("bytes", "how much"), text("meaning", "what it is")),
)

TIMING = TableSchema(
    "timing.csv",
    "Seconds of one step here, quartiles over repeats",
    (
        integer("tokens", "tokens that the step's logits depend on"),
        number("cached_low", "decode step, lower quartile", rule="exact"),
        number("cached_median", "decode step, median", rule="exact"),
        number("cached_high", "decode step, upper quartile", rule="exact"),
        number("full_low", "full forward, lower quartile", rule="exact"),
        number("full_median", "full forward, median", rule="exact"),
        number("full_high", "full forward, upper quartile", rule="exact"),
    ),
)

#: Parts of a footprint in the order of the picture, and what each is.
PARTS: Mapping[str, tuple[str, str]] = {
    "payload": ("payload", "valid keys and values: what the formula counts"),
    "unused": ("unused slots", "set aside for tokens to come"),
    "records": ("records", "token ids, tags, owner and array headers, as Python counts them"),
    "decode": ("temporaries, decode", "every intermediate of one decode step, if all are kept"),
    "prefill": ("temporaries, prefill", "every intermediate of a prefill, if all are kept"),
    "weights": ("weights", "all tensors of the checkpoint, shared by every request"),
}


def payload_table(
    layout: AttentionLayout, batch: int, measured: Mapping[str, Sequence[MeasuredPayload]]
) -> pd.DataFrame:
    """Return one row per number format and length."""
    rows = []
    for dtype, found in measured.items():
        for measure in found:
            scalars = valid_scalars(layout, measure.tokens, batch)
            expected = cache_bytes(scalars, dtype)
            rows.append(
                (
                    measure.tokens,
                    batch,
                    dtype,
                    scalars,
                    expected,
                    measure.valid_bytes,
                    measure.allocated_bytes,
                    expected == measure.valid_bytes,
                )
            )
    return frame(PAYLOAD, rows)


def real_models_table(
    layouts: Sequence[AttentionLayout], tokens: int, memory_bytes: int, block_size: int
) -> pd.DataFrame:
    """Return one row per model, each at ``tokens`` or its whole context if that is shorter.

    ``block_size`` 1 stores no more than is valid.
    """
    rows = []
    for layout in layouts:
        length = min(tokens, layout.max_context)
        found = layout_report(layout, length, block_size=block_size)
        rows.append(
            (
                layout.name,
                layout.attention,
                layout.dtype,
                length,
                cache_bytes(growth_scalars(layout, length), layout.dtype),
                found.bytes,
                found.allocated_bytes,
                requests_that_fit(layout, length, memory_bytes, block_size=block_size),
                layout.verified,
                layout.notes or None,
                layout.source,
            )
        )
    return frame(REAL_MODELS, rows)


def work_table(steps: Sequence[GenerationStep]) -> pd.DataFrame:
    """Return one row per returned token."""
    return frame(
        WORK,
        (
            (
                step.index,
                step.phase,
                step.length,
                step.cached.visible.projections,
                step.cached.visible.attention,
                step.cached.visible.mlp,
                step.cached.visible.head,
                step.cached.visible.total,
                step.uncached.visible.total,
                step.cached_visible_sum.total,
                step.uncached_visible_sum.total,
            )
            for step in steps
        ),
    )


def footprint_table(found: Footprint) -> pd.DataFrame:
    """Return one row per part."""
    return frame(
        FOOTPRINT,
        ((name, getattr(found, part), meaning) for part, (name, meaning) in PARTS.items()),
    )


def timing_table(steps: Sequence[StepTiming]) -> pd.DataFrame:
    """Return one row per length."""
    return frame(TIMING, ((step.length, *step.cached, *step.full) for step in steps))
