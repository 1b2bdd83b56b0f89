"""An exercise on real models: how many requests fit into a machine."""

from __future__ import annotations

import random

from tinydec.memory import dtype_bytes, load_presets, requests_that_fit
from tinydec.ui.exercise import Task

_GIB = 2**30


def fit_task(rng: random.Random) -> Task:
    """Ask how many requests to a real model fit into a given memory."""
    layouts = [
        layout
        for layout in load_presets().values()
        if layout.window_layers == 0 and layout.latent_dim is None
    ]
    layout = rng.choice(layouts)
    memory = rng.choice((1, 2, 4, 8, 16, 24, 40))
    lengths = [tokens for tokens in (512, 1000, 2000, 4000, 8000) if tokens <= layout.max_context]
    tokens = rng.choice(lengths)
    answer = requests_that_fit(layout, tokens, memory * _GIB)
    size = dtype_bytes(layout.dtype)
    row = layout.scalars_per_position * layout.global_layers * size
    return Task(
        f"**{layout.name}** has {layout.global_layers} layers, {layout.kv_heads} key/value "
        f"{'head' if layout.kv_heads == 1 else 'heads'} of width {layout.head_dim}, and caches in "
        f"{layout.dtype} ({size} bytes a number). **{memory} GiB** are free for caches "
        f"(1 GiB = 1024³ bytes). How many requests of **{tokens}** tokens fit?",
        answer,
        "Find the bytes that one token adds in all layers, then those of one request. Only whole "
        "requests count.",
        f"One token: $2 \\cdot {layout.global_layers} \\cdot {layout.kv_heads} \\cdot "
        f"{layout.head_dim} \\cdot {size} = {row}$ bytes. One request: ${row} \\cdot {tokens} = "
        f"{row * tokens}$ bytes. {memory} GiB are {memory * _GIB} bytes, which hold **{answer}** "
        "whole requests.",
    )
