"""What the views of memory and cost show, cached by what it depends on."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from tinydec.errors import InputError
from tinydec.evidence.cost_tables import PARTS, payload_table, real_models_table, work_table
from tinydec.evidence.layouts import checkpoint_layout
from tinydec.figures.memory import (
    Growth,
    footprint_figure,
    growth_figure,
    payload_figure,
    work_figure,
)
from tinydec.memory import (
    AttentionLayout,
    DecoderSizes,
    GenerationStep,
    cache_bytes,
    generation_work,
    growth_scalars,
    load_presets,
    valid_scalars,
)
from tinydec.memory.measured import (
    Footprint,
    MeasuredPayload,
    decoder_sizes,
    measure_footprint,
    measure_payload,
)
from tinydec.memory.shapes import SHAPES
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import DTYPES, FROZEN, RunSpec
from tinydec.ui.audits import run_of
from tinydec.ui.compute import computed

OWN = "this checkpoint"
GIB = 2**30


@computed("dtype")
def layout_of(checkpoint: Checkpoint, spec: RunSpec) -> AttentionLayout:
    """Return the cache layout of the checkpoint in the number format."""
    return checkpoint_layout(
        checkpoint, FROZEN if spec.checkpoint == FROZEN else OWN, dtype=spec.dtype
    )


# Formats do not change what is measured in each of them, and no control changes the guards.
@computed("guards_off")
def measured(
    checkpoint: Checkpoint, _spec: RunSpec, batch: int
) -> Mapping[str, tuple[MeasuredPayload, ...]]:
    """Return the bytes of real caches at every length, for each number format that fits.

    A format in which a weight would be infinite is left out: no cache can be filled in it.
    """
    lengths = range(checkpoint.config.n_positions + 1)
    found = {}
    for dtype in DTYPES:
        try:
            cast = checkpoint.cast(dtype)
        except InputError:
            continue
        found[dtype] = measure_payload(cast, lengths, batch)
    return found


@computed("dtype")
def payload(checkpoint: Checkpoint, spec: RunSpec, batch: int) -> pd.DataFrame:
    """Return the payload table: formula beside measured, every length and number format."""
    run = run_of(checkpoint, spec)
    return payload_table(layout_of(run), batch, measured(run, batch))


@computed("dtype")
def payload_chart(checkpoint: Checkpoint, spec: RunSpec, batch: int, current: int) -> go.Figure:
    """Return the picture of bytes against tokens."""
    run = run_of(checkpoint, spec)
    layout, found = layout_of(run), measured(run, batch)
    tokens = [m.tokens for m in found[spec.dtype]]
    scalars = [valid_scalars(layout, t, batch) for t in tokens]
    return payload_figure(
        tokens,
        {dtype: [cache_bytes(count, dtype) for count in scalars] for dtype in DTYPES},
        {dtype: [m.valid_bytes for m in measures] for dtype, measures in found.items()},
        spec.dtype,
        found[spec.dtype][-1].allocated_bytes,
        current,
        f"{growth(layout, batch)} T bytes",
    )


def growth(layout: AttentionLayout, batch: int = 1) -> int:
    """Return the bytes that the first consumed token adds."""
    return cache_bytes(growth_scalars(layout, 1, batch), layout.dtype)


@computed("dtype")
def footprint(checkpoint: Checkpoint, spec: RunSpec, tokens: int, batch: int) -> Footprint:
    """Return the payload and what it leaves out."""
    return measure_footprint(checkpoint.cast(spec.dtype), tokens, batch)


@computed("dtype")
def footprint_chart(checkpoint: Checkpoint, spec: RunSpec, tokens: int, batch: int) -> go.Figure:
    """Return the picture of what is held."""
    found = footprint(run_of(checkpoint, spec), tokens, batch)
    return footprint_figure(
        [name for name, _ in PARTS.values()], [getattr(found, part) for part in PARTS]
    )


# Real models --------------------------------------------------------------------------------------


@st.cache_resource(max_entries=1, show_spinner=False)
def presets() -> Mapping[str, AttentionLayout]:
    """Return the layouts of real models by name."""
    return load_presets()


@st.cache_resource(max_entries=128, show_spinner=False)
def real_models(tokens: int, gib: int, block: int) -> pd.DataFrame:
    """Return every model at one length, and how many requests fit in a memory."""
    return real_models_table(list(presets().values()), tokens, gib * GIB, block)


@st.cache_resource(max_entries=128, show_spinner=False)
def growth_chart(model: str, tokens: int, gib: int) -> go.Figure:
    """Return the picture of every model's growth with one on top."""
    return growth_figure([_growth(layout) for layout in presets().values()], model, tokens,
                         gib * GIB)  # fmt: skip


def _growth(layout: AttentionLayout) -> Growth:
    lengths = {2**p for p in range(18) if 2**p < layout.max_context}
    if layout.window is not None:
        lengths.add(layout.window)
    tokens = sorted(length for length in {*lengths, layout.max_context})
    sizes = [cache_bytes(valid_scalars(layout, t), layout.dtype) for t in tokens]
    return Growth(layout.name, tokens, sizes, layout.verified)


# Work ---------------------------------------------------------------------------------------------


def sizes_of(checkpoint: Checkpoint, shape: str) -> DecoderSizes:
    """Return the sizes of the checkpoint or of a published model."""
    return decoder_sizes(checkpoint.config) if shape == OWN else SHAPES[shape]


@computed("guards_off", max_entries=64)
def work(
    checkpoint: Checkpoint, _spec: RunSpec, shape: str, prompt: int, new: int
) -> tuple[GenerationStep, ...]:
    """Return the work of returning ``new`` tokens after ``prompt`` tokens."""
    return generation_work(sizes_of(checkpoint, shape), prompt, new, "last")


@computed("guards_off", max_entries=64)
def work_rows(
    checkpoint: Checkpoint, spec: RunSpec, shape: str, prompt: int, new: int
) -> pd.DataFrame:
    """Return the work of every step as a table."""
    return work_table(work(run_of(checkpoint, spec), shape, prompt, new))


@computed("guards_off", max_entries=64)
def work_chart(
    checkpoint: Checkpoint, spec: RunSpec, shape: str, prompt: int, new: int
) -> go.Figure:
    """Return the picture of work per step and of its sums."""
    steps = work(run_of(checkpoint, spec), shape, prompt, new)
    return work_figure(
        [step.length for step in steps],
        [step.cached.visible.total for step in steps],
        [step.uncached.visible.total for step in steps],
        [step.cached_visible_sum.total for step in steps],
        [step.uncached_visible_sum.total for step in steps],
    )
