"""Tables of prefill beside decode: shapes, passes and work."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import TableSchema, integer, numbers, text
from tinydec.memory import StepWork
from tinydec.model.config import ModelConfig
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification.phases import Pass, ShapeRow, pass_work

SHAPES = TableSchema(
    "shapes.csv",
    "The shape of every tensor in two passes, read off the arrays",
    (
        text("tensor", "name of the tensor; h.0. is layer 0"),
        text("axes", "its axes: P new positions, t keys"),
        numbers("first_shape", "in the pass over the prompt"),
        numbers("later_shape", "in the later pass; empty where there is none", optional=True),
        integer("first_scalars", "numbers in it, first pass"),
        integer("later_scalars", "numbers in it, later pass", optional=True),
    ),
)

PASSES = TableSchema(
    "passes.csv",
    "Every pass of the run: what it read, which pairs it scored, what it multiplied",
    (
        integer("step", "0 reads the prompt"),
        text("phase", "prefill or decode; full without a cache"),
        text("inputs", "tokens whose rows are computed"),
        integer("queries", "P, query rows per layer and head"),
        integer("keys_from_cache", "key rows that were there before"),
        integer("keys_made", "key rows made in this pass"),
        integer("pairs_seen", "query-key pairs that the mask lets through, per layer and head"),
        integer("pairs_hidden", "pairs that are multiplied and then hidden by the mask"),
        integer("multiply_adds", "of the pass, visible pairs alone, all logits rows"),
    ),
)

WORK = TableSchema(
    "phase_work.csv",
    "Multiply-adds by part in two passes, visible pairs alone",
    (
        text("part", "what is multiplied"),
        text("formula", "how it grows: P rows, pairs seen"),
        integer("first", "in the pass over the prompt"),
        integer("later", "in the later pass", optional=True),
        integer(
            "other_way", "that step without a cache; with one if the run has none", optional=True
        ),
    ),
)

_PARTS = (
    ("projections", "q, k, v and output projections", "L · P · 4d²"),
    ("scores", "attention scores", "L · h · pairs · d_h"),
    ("mix", "attention mix", "L · h · pairs · d_h"),
    ("mlp", "MLP", "L · P · 2dm"),
    ("head", "output head", "P · dV"),
    ("total", "total", ""),
)


def shapes(rows: Sequence[ShapeRow]) -> pd.DataFrame:
    """Return one row for every tensor."""
    return frame(
        SHAPES,
        (
            (r.tensor, r.axes, r.first, r.later, r.first_scalars, r.later_scalars)
            for r in rows
        ),
    )  # fmt: skip


def layers_folded(rows: Sequence[ShapeRow]) -> pd.DataFrame:
    """Return the table of shapes with one row for tensors that every layer has alike."""
    table = shapes(rows)
    names = table["tensor"].str.replace(r"^h\.\d+\.", "", regex=True)
    inside = names != table["tensor"]
    table["tensor"] = names.where(~inside, "layer · " + names)
    return table.drop_duplicates(ignore_index=True)


def passes(vocabulary: Vocabulary, config: ModelConfig, found: Sequence[Pass]) -> pd.DataFrame:
    """Return one row for each pass."""
    rows = []
    for step, one in enumerate(found):
        seen = int(one.visible().sum())
        rows.append(
            (
                step,
                one.phase,
                vocabulary.decode(one.token_ids),
                one.rows,
                one.start,
                one.rows,
                seen,
                one.rows * one.keys - seen,
                pass_work(config, one).visible.total,
            )
        )
    return frame(PASSES, rows)


def work(first: StepWork, later: StepWork | None, other_way: StepWork | None) -> pd.DataFrame:
    """Return the work by part.

    Args:
        first: the pass over the prompt.
        later: the pass beside it.
        other_way: the later step without a cache, or with one where the run has none.
    """
    columns = [None if one is None else one.visible for one in (first, later, other_way)]
    return frame(
        WORK,
        (
            (part, formula, *(None if c is None else getattr(c, name) for c in columns))
            for name, part, formula in _PARTS
        ),
    )
