"""Exercises on memory: the bytes of a cache's own arrays, and what fits into a machine."""

from __future__ import annotations

import random

from tinydec.memory import dtype_bytes, load_presets, requests_that_fit
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.prefill import prefill
from tinydec.runspec import DTYPES
from tinydec.ui.exercise import Task

_REQUEST = "exercise"
_GIB = 2**30


def bytes_task(checkpoint: Checkpoint, rng: random.Random) -> Task:
    """Ask for the bytes of the valid keys and values after T inputs."""
    config = checkpoint.config
    dtype = rng.choice(DTYPES)
    batch = rng.randint(1, 3)
    tokens = rng.randint(1, min(config.n_positions, 9))
    cast = checkpoint.cast(dtype)
    cache = KVCache(cast, _REQUEST, batch)
    ids = [[rng.randrange(config.vocab_size) for _ in range(tokens)] for _ in range(batch)]
    prefill(cast, cache, ids, _REQUEST)
    measured = sum(array.nbytes for layer in cache.layers for array in layer.valid())
    size = dtype_bytes(dtype)
    return Task(
        f"A decoder of **{config.n_layer}** {'layer' if config.n_layer == 1 else 'layers'}, "
        f"**{config.n_head}** heads and head width **{config.d_h}** runs in **{dtype}**. "
        f"**{batch}** {'request has' if batch == 1 else 'requests have'} consumed **{tokens}** "
        f"{'input' if tokens == 1 else 'inputs'} each. How many bytes of keys and values are "
        "valid?",
        measured,
        f"Count numbers first, keys and values both; one number in {dtype} takes {size} bytes.",
        f"$2 \\cdot L \\cdot B \\cdot h \\cdot T \\cdot d_h = 2 \\cdot {config.n_layer} \\cdot "
        f"{batch} \\cdot {config.n_head} \\cdot {tokens} \\cdot {config.d_h} = "
        f"{measured // size}$ numbers of {size} bytes: **{measured}** bytes, and the arrays of a "
        "cache that was filled just now hold as many.",
    )


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
