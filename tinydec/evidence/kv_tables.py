"""Tables of one cache: its numbers, its rows over time, what moves the next logits, its label."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.model.cache import KVCache
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.cache_operations import OperationResult
from tinydec.verification.cached_run import StoredLayer
from tinydec.verification.perturbation import Perturbation
from tinydec.verification.row_history import RowHistory

CELLS = TableSchema(
    "kv_cells.csv",
    "Every number in the cache after one step",
    (
        integer("layer", "layer, from 0"),
        text("tensor", "K or V"),
        integer("head", "head, from 0"),
        integer("position", "position, which is the slot"),
        integer("index", "index within the head width d_h"),
        number("value", "the number"),
    ),
)

HISTORY = TableSchema(
    "row_history.csv",
    "Every written row against its first copy, bit by bit",
    (
        integer("layer", "layer, from 0"),
        text("tensor", "K or V"),
        integer("position", "position of the row"),
        text("token", "the token it stands for"),
        integer("written_step", "step that wrote it"),
        integer("compared_steps", "later steps in which it was compared"),
        integer("numbers_compared", "numbers in all those comparisons"),
        integer("changed_steps", "of those steps, the ones in which any bit differed"),
        flag("same_bits", "whether none did"),
    ),
)

MOVES = TableSchema(
    "past_moves.csv",
    "What one amount, added to a past row in every layer and head, does to the next logits row",
    (
        integer("position", "past position"),
        text("token", "its token"),
        number("amount", "what is added to every number of the row", rule="exact"),
        number("query_scores", "largest change of the past query's own scores"),
        number("query_logits", "largest change of the next logits by the past query"),
        number("key_logits", "largest change by the past key"),
        number("value_logits", "largest change by the past value"),
    ),
)

LABEL = TableSchema(
    "cache_label.csv",
    "What the cache says of itself after one step",
    (text("what", "the entry"), text("found", "what it holds")),
)

OPERATIONS = TableSchema(
    "cache_operations.csv",
    "Operations and refusals of a cache, with what they left behind",
    (
        text("operation", "what was called"),
        integer("length", "consumed inputs afterwards"),
        integer("valid_bytes", "bytes of valid keys and values"),
        text("owner", "request that owns the cache"),
        text("checked", "what was checked"),
        flag("holds", "whether it held"),
        text("message", "the refusal's words; empty where nothing was refused", optional=True),
    ),
)


def cells(stored: Sequence[StoredLayer], row: int = 0) -> pd.DataFrame:
    """Return every number of one sequence's cache."""
    return frame(
        CELLS,
        (
            (layer.layer, tensor, head, position, index, value)
            for layer in stored
            for tensor, array in (("K", layer.keys), ("V", layer.values))  # noqa: PD011
            for head, plane in enumerate(array[row].tolist())  # (B, h, t, d_h)
            for position, line in enumerate(plane)
            for index, value in enumerate(line)
        ),
    )


def history(
    vocabulary: Vocabulary, ids: Sequence[int], found: Sequence[RowHistory]
) -> pd.DataFrame:
    """Return one row for every layer, tensor and position."""
    return frame(
        HISTORY,
        (
            (
                h.layer, h.tensor, h.position, vocabulary.tokens[ids[h.position]],
                h.written_step, h.compared_steps, h.compared_steps * h.scalars,
                len(h.changed_steps), h.unchanged,
            )
            for h in found
        ),
    )  # fmt: skip


def history_by_position(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of :func:`history` with layers, K and V of a position taken together."""
    grouped = table.groupby("position", as_index=False, sort=True)
    return grouped.agg(
        token=("token", "first"),
        written_step=("written_step", "first"),
        compared_steps=("compared_steps", "first"),
        numbers_compared=("numbers_compared", "sum"),
        changed_steps=("changed_steps", "max"),
        same_bits=("same_bits", "all"),
    )


def moves(vocabulary: Vocabulary, ids: Sequence[int], found: Perturbation) -> pd.DataFrame:
    """Return one row for each past position."""
    return frame(
        MOVES,
        (
            (m.position, vocabulary.tokens[ids[m.position]], float(found.amount), *m[1:])
            for m in found.moves
        ),
    )


def label(cache: KVCache) -> pd.DataFrame:
    """Return what a cache knows about itself."""
    lengths = sorted({layer.length for layer in cache.layers})
    shapes = {str(part.shape) for layer in cache.layers for part in layer.valid()}
    dtype = cache.layers[0].keys.dtype.name
    rows = (
        ("owner: request", cache.owner.request_id),
        ("owner: checkpoint digest", cache.owner.checkpoint_digest),
        ("layers", f"{len(cache.layers)}, numbered {_span(cache.layer_tags())}"),
        ("K and V of each layer", " ".join(sorted(shapes))),
        ("length of each layer", ", ".join(map(str, lengths))),
        ("consumed inputs = next position", str(cache.length)),
        ("slots in use", f"{cache.length} of {cache.capacity}"),
        ("valid bytes", f"{cache.valid_nbytes()} ({dtype})"),
        ("allocated bytes", f"{cache.allocated_nbytes()} ({dtype})"),
    )
    return frame(LABEL, rows)


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def operations(found: Sequence[OperationResult]) -> pd.DataFrame:
    """Return one row for each operation."""
    return frame(
        OPERATIONS,
        (
            (o.operation, o.length, o.valid_bytes, o.owner, o.claim, o.holds, o.message or None)
            for o in found
        ),
    )
