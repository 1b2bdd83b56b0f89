"""Exercises of memory and cost, their answers computed by the core."""

from __future__ import annotations

import random

from tinydec.memory import (
    DecoderSizes,
    cache_bytes,
    cache_scalars,
    decode_work,
    dense_layout,
    dtype_bytes,
    requests_that_fit,
    uncached_work,
)
from tinydec.ui.exercise import Task


def draw_bytes(rng: random.Random) -> Task:
    """Ask for the payload of a cache."""
    layers, heads, width = rng.randint(2, 6), rng.choice((1, 2, 3, 5)), rng.choice((2, 4, 8))
    tokens, batch, dtype = rng.randint(3, 20), rng.randint(1, 4), rng.choice(("float16", "float32"))
    scalars = cache_scalars(
        layers=layers, batch=batch, kv_heads=heads, tokens=tokens, head_dim=width
    )
    size = cache_bytes(scalars, dtype)
    return Task(
        f"{layers} layers, {heads} key/value head{'s' if heads > 1 else ''} of width {width}, "
        f"{batch} request{'s' if batch > 1 else ''} with {tokens} consumed tokens each, {dtype}. "
        "How many bytes of keys and values?",
        size,
        "Keys and values: a factor 2. Then multiply layers, batch, heads, tokens, head width and "
        "the bytes of one scalar. The number of query heads plays no part.",
        rf"$2 \times {layers} \times {batch} \times {heads} \times {tokens} \times {width} "
        rf"= {scalars}$ scalars of {dtype_bytes(dtype)} bytes: **{size} bytes**.",
    )


def draw_fit(rng: random.Random) -> Task:
    """Ask how many requests fit in a memory."""
    layers, heads, width = rng.choice((8, 16, 32)), rng.choice((4, 8, 32)), rng.choice((64, 128))
    tokens, gib = rng.choice((1024, 2048, 4096)), rng.choice((2, 3, 5, 10))
    layout = dense_layout(
        "drawn", layers=layers, heads=heads, head_dim=width, context=8192, dtype="float16"
    )
    answer = requests_that_fit(layout, tokens, gib * 2**30)
    each = cache_bytes(
        cache_scalars(layers=layers, batch=1, kv_heads=heads, tokens=tokens, head_dim=width),
        "float16",
    )
    return Task(
        f"{layers} layers, {heads} key/value heads of width {width}, float16. How many requests "
        f"of {tokens} tokens fit in {gib} GiB of cache memory?",
        answer,
        "Bytes of one request first, then how often they go into the memory; a part of a request "
        "is none. 1 GiB is $2^{30}$ bytes.",
        rf"One request: $2 \times {layers} \times {heads} \times {tokens} \times {width} \times 2 "
        rf"= {each}$ bytes. $\lfloor {gib} \times 2^{{30}} / {each} \rfloor =$ **{answer}**.",
    )


def draw_work(rng: random.Random) -> Task:
    """Ask how many score products a step saves."""
    heads, width, length = rng.choice((2, 3)), rng.choice((2, 4, 5)), rng.randint(4, 12)
    sizes = DecoderSizes(1, heads * width, heads, width, 8, 8)
    cached = decode_work(sizes, length - 1).visible.scores
    full = uncached_work(sizes, length - 1).visible.scores
    return Task(
        f"One layer, {heads} heads of width {width}, a step that sees {length} tokens. How many "
        "multiply-adds for attention scores does the cache save in this step? Count each query "
        "only with the keys it may see.",
        full - cached,
        f"With a cache: one query and {length} keys. Without: {length} queries, of which number "
        "$i$ sees $i$ keys. Each pair costs the head width, in each head.",
        rf"With: ${length} \times {heads} \times {width} = {cached}$. Without: "
        rf"$\tfrac{{{length} \times {length + 1}}}{{2}} \times {heads} \times {width} = {full}$. "
        f"Saved: **{full - cached}**.",
    )
