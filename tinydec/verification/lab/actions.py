"""The functions that faults put at seams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.generation.stopping import CONTEXT, EOS
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.vocabulary import Vocabulary

Array = NDArray[Any]

# Loading ---------------------------------------------------------------------------------------


def lose_output_head(checkpoint: Checkpoint) -> Checkpoint:
    """Replace the output head by zeros, as a loader does with a tensor that it cannot find."""
    name = "wte.weight" if checkpoint.config.tie_word_embeddings else "lm_head.weight"
    lost = np.zeros_like(checkpoint.tensors[name])
    return checkpoint.with_tensors({**checkpoint.tensors, name: lost})


def rotate_vocabulary(checkpoint: Checkpoint) -> Checkpoint:
    """Give every token string the next token's id."""
    old = checkpoint.vocabulary
    vocabulary = Vocabulary(old.tokens[-1:] + old.tokens[:-1], old.bos, old.eos)
    return Checkpoint.build(
        checkpoint.config, vocabulary, checkpoint.tensors, checkpoint.provenance, checkpoint.mode
    )


def in_training_mode(checkpoint: Checkpoint) -> Checkpoint:
    """Leave the checkpoint in training mode."""
    return checkpoint.in_mode("training")


# Checkpoints that change while a cache is kept ---------------------------------------------------


def _from_first_decode(
    change: Callable[[str, Array, int], Array],
) -> Callable[[int, Checkpoint], Checkpoint]:
    def checkpoint_at(step: int, checkpoint: Checkpoint) -> Checkpoint:
        if step == 0:
            return checkpoint
        last = checkpoint.config.n_layer - 1
        return checkpoint.with_tensors(
            {name: change(name, array, last) for name, array in checkpoint.tensors.items()}
        )

    return checkpoint_at


def _other_projections(name: str, array: Array, _last: int) -> Array:
    return array * 1.5 if name.endswith("c_attn.weight") else array


def _other_last_layers(name: str, array: Array, last: int) -> Array:
    feeds_none = name.startswith((f"h.{last}.ln_2", f"h.{last}.mlp", "ln_f"))
    return array * 1.25 if feeds_none else array


def _reversed(_name: str, array: Array, _last: int) -> Array:
    return array[::-1]


new_projections = _from_first_decode(_other_projections)
new_last_layers = _from_first_decode(_other_last_layers)
other_checkpoint = _from_first_decode(_reversed)

# What is stored, and how often -------------------------------------------------------------------


def values_from_keys(k: Array, _v: Array) -> tuple[Array, Array]:
    """Store the keys as values too."""
    return k, k


def axes_mistaken(k: Array, v: Array) -> tuple[Array, Array]:
    """Read (B, h, P, d_h) as if its numbers stood in the order (B, P, h, d_h)."""
    mistaken = [np.ascontiguousarray(part.swapaxes(1, 2)).reshape(part.shape) for part in (k, v)]
    return mistaken[0], mistaken[1]


def third_input_twice(consumed: int) -> int:
    """Append the row of the third input twice."""
    return 2 if consumed == 2 else 1


def second_input_never(consumed: int) -> int:
    """Count the second input's slot without writing it."""
    return 0 if consumed == 1 else 1


def every_input_twice(_consumed: int) -> int:
    """Append every row twice."""
    return 2


def last_prompt_token_twice(ids: tuple[int, ...]) -> tuple[int, ...]:
    """Consume the prompt's last token twice."""
    return ids + ids[-1:]


# Positions and layers ----------------------------------------------------------------------------


def position_zero(_consumed: int) -> int:
    """Give every input position 0."""
    return 0


def position_after(consumed: int) -> int:
    """Be one position ahead."""
    return consumed + 1


def position_before(consumed: int) -> int:
    """Be one position behind."""
    return max(consumed - 1, 0)


def prompt_counted_twice(prompt_length: int, consumed: int) -> int:
    """Add the prompt's length again from the first decode step on."""
    return consumed if consumed < prompt_length else consumed + prompt_length


def wrap(position: int, rows: int) -> int:
    """Begin again at position 0 past the last row."""
    return position % rows


def clamp(_position: int, rows: int) -> int:
    """Stay at the last row."""
    return rows - 1


def first_layer_for_second(layer: int) -> int:
    """Let the second layer read the first layer's cache."""
    return 0 if layer == 1 else layer


# Caches between steps ----------------------------------------------------------------------------


def permute_slots(step: int, used: KVCache, _neighbour: KVCache) -> None:
    """Exchange the first two slots of every layer, keys, values and tags together."""
    if step == 1:
        for layer in used.layers:
            for part in (layer.keys, layer.values):
                part[:, :, :2] = part[:, :, 1::-1].copy()
            layer.tags[:2] = layer.tags[1::-1]


def swap_layers(step: int, used: KVCache, _neighbour: KVCache) -> None:
    """Exchange the caches of the first two layers, where there are two."""
    if step == 1 and len(used.layers) > 1:
        first, second, *rest = used.layers
        used.layers = (second, first, *rest)


def overwritten_by_neighbour(step: int, used: KVCache, neighbour: KVCache) -> None:
    """Let the other request write its last row into the cache's slot of that order."""
    if step == 1:
        for mine, theirs in zip(used.layers, neighbour.layers, strict=True):
            slot = theirs.length - 1
            mine.keys[:, :, slot] = theirs.keys[:, :, slot]
            mine.values[:, :, slot] = theirs.values[:, :, slot]
            mine.tags[slot] = theirs.tags[slot]


# Masks -------------------------------------------------------------------------------------------


def everything_visible(visible: Array) -> Array:
    """Forget the causal mask."""
    return np.ones_like(visible)


def top_left(visible: Array) -> Array:
    """Align the causal triangle with the first key instead of the last."""
    return np.tril(np.ones_like(visible))


def nothing_hidden(future: Array) -> Array:
    """Hide no key from the uncached path."""
    return np.zeros_like(future)


def second_row_first(rows: Array) -> Array:
    """Read the first position row in place of the second."""
    wrong = rows.copy()
    wrong[1:2] = rows[:1]
    return wrong


# Stop reasons ------------------------------------------------------------------------------------


def eos_as_context(reason: str | None, consumed: int, context: int) -> str | None:
    """Record the context limit when ``<eos>`` comes at the last position."""
    return CONTEXT if reason == EOS and consumed == context else reason


def once_more_past_context(reason: str | None, consumed: int, context: int) -> str | None:
    """Go on for one input after the context is full."""
    return None if reason == CONTEXT and consumed == context else reason
