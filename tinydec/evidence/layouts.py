"""The cache layout of a checkpoint at hand."""

from __future__ import annotations

from tinydec.memory import AttentionLayout, dense_layout
from tinydec.model.checkpoint import Checkpoint


def checkpoint_layout(
    checkpoint: Checkpoint, name: str, dtype: str | None = None
) -> AttentionLayout:
    """Return the cache layout of a checkpoint, read off its config.

    Args:
        checkpoint: supplies layers, heads, head width and context.
        name: what to call it in a table.
        dtype: number format of the cache; the checkpoint's own unless given.
    """
    config = checkpoint.config
    return dense_layout(
        name,
        layers=config.n_layer,
        heads=config.n_head,
        head_dim=config.d_h,
        context=config.n_positions,
        dtype=checkpoint.dtype.name if dtype is None else dtype,
        source="the checkpoint's config",
    )
