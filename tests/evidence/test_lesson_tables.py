"""Tables of phases, cache and positions: right numbers, and CSV that reads back the same."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.random_models import random_checkpoint
from tinydec.evidence import kv_tables, phase_tables, position_tables
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.generation.generate import generate
from tinydec.memory import uncached_work
from tinydec.memory.measured import decoder_sizes
from tinydec.model.cache import KVCache
from tinydec.model.config import ModelConfig
from tinydec.model.prefill import prefill
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.cache_operations import try_operations
from tinydec.verification.cached_run import run_cached
from tinydec.verification.overflow import SLIDE, fill_context, overflow
from tinydec.verification.perturbation import perturb_past
from tinydec.verification.phases import (
    pass_work,
    run_phases,
    shape_rows,
    split_phases,
)
from tinydec.verification.row_history import row_histories

FROZEN = load_checkpoint()
CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
CONFIG, VOCABULARY = CHECKPOINT.config, CHECKPOINT.vocabulary
IDS = (4, 0, 12, 7, 7, 3, 9)
PASSES = run_phases(CHECKPOINT, split_phases(IDS[:4], IDS[4:], 11))
ROWS = shape_rows(PASSES[0].activations, PASSES[2].activations)
STEPS = run_cached(CHECKPOINT, np.array([IDS]), 4)
REPORT = overflow(FROZEN, fill_context(FROZEN, [0]))


def tables() -> dict[str, tuple[pd.DataFrame, Any]]:
    """Every table with its schema."""
    cache = KVCache(CHECKPOINT, "request-0")
    prefill(CHECKPOINT, cache, [IDS], "request-0")
    first, later = (pass_work(CONFIG, PASSES[i]) for i in (0, 2))
    other = uncached_work(decoder_sizes(CONFIG), 5)
    alone = shape_rows(PASSES[0].activations, None)
    tokens = FROZEN.vocabulary
    return {
        "shapes": (phase_tables.shapes(ROWS), phase_tables.SHAPES),
        "shapes of one pass": (phase_tables.shapes(alone), phase_tables.SHAPES),
        "passes": (phase_tables.passes(VOCABULARY, CONFIG, PASSES), phase_tables.PASSES),
        "work": (phase_tables.work(first, later, other), phase_tables.WORK),
        "work of one pass": (phase_tables.work(first, None, None), phase_tables.WORK),
        "cells": (kv_tables.cells(STEPS[-1].stored), kv_tables.CELLS),
        "history": (
            kv_tables.history(VOCABULARY, IDS, row_histories(STEPS)), kv_tables.HISTORY,
        ),
        "moves": (
            kv_tables.moves(VOCABULARY, IDS, perturb_past(CHECKPOINT, IDS, 1)), kv_tables.MOVES,
        ),
        "label": (kv_tables.label(cache), kv_tables.LABEL),
        "operations": (
            kv_tables.operations(try_operations(CHECKPOINT, IDS, 2)), kv_tables.OPERATIONS,
        ),
        "positions": (
            position_tables.positions(tokens, generate(FROZEN, RunSpec())),
            position_tables.POSITIONS,
        ),
        "overflow": (
            position_tables.overflow_table(tokens, REPORT, 1e-5), position_tables.OVERFLOW,
        ),
        "logits": (position_tables.window_logits(tokens, REPORT), position_tables.WINDOW_LOGITS),
        "slots": (position_tables.slots(tokens, REPORT), position_tables.slots_schema(2)),
    }  # fmt: skip


TABLES = tables()


@pytest.mark.parametrize("name", TABLES)
def test_csv_reads_back_as_the_same_table(name: str) -> None:
    table, schema = TABLES[name]
    again = read_csv(write_csv(table, schema), schema)
    pd.testing.assert_frame_equal(again, table)
    assert all(column.meaning for column in schema.columns)


def test_files_have_names_of_their_own() -> None:
    files = [schema.file for _, schema in TABLES.values()]
    assert len(set(files)) == len(files) - 2  # two tables come twice


# Phases --------------------------------------------------------------------------------------


def test_folded_table_has_each_layer_tensor_once() -> None:
    folded = phase_tables.layers_folded(ROWS)
    assert len(folded) == 3 + 16 + 2
    assert len(phase_tables.shapes(ROWS)) == 3 + 3 * 16 + 2
    keys = folded[folded["tensor"] == "layer · keys"].iloc[0]
    assert (keys["first_shape"], keys["later_shape"]) == ((1, 3, 4, 5), (1, 3, 6, 5))


def test_layers_that_differ_are_not_folded() -> None:
    odd = [row if row.tensor != "h.1.q" else row.__class__("h.1.q", row.axes, (1,), (1,))
           for row in ROWS]  # fmt: skip
    assert len(phase_tables.layers_folded(odd)) == 3 + 16 + 2 + 1


def test_passes_count_pairs_and_keys() -> None:
    table = TABLES["passes"][0]
    assert table["keys_from_cache"].tolist() == [0, 4, 5, 6]
    assert table["pairs_seen"].tolist() == [10, 5, 6, 7]
    assert table["pairs_hidden"].tolist() == [6, 0, 0, 0]
    assert table["inputs"].tolist() == ["t4 t0 t12 t7", "t7", "t3", "t9"]


def test_parts_add_up_to_the_total() -> None:
    table = TABLES["work"][0]
    for column in ("first", "later", "other_way"):
        *parts, total = table[column].tolist()
        assert sum(parts) == total
    assert table["first"].iloc[-1] == TABLES["passes"][0]["multiply_adds"].iloc[0]


# Cache ---------------------------------------------------------------------------------------


def test_cells_are_the_stored_numbers() -> None:
    table = TABLES["cells"][0]
    assert len(table) == 2 * 3 * 3 * 7 * 5
    row = table[
        (table["layer"] == 1) & (table["tensor"] == "V") & (table["head"] == 2)
        & (table["position"] == 6) & (table["index"] == 3)
    ]  # fmt: skip
    values = STEPS[-1].stored[1].values  # noqa: PD011 - no pandas
    assert row["value"].tolist() == [float(values[0, 2, 6, 3])]


def test_positions_gather_their_rows_of_all_layers() -> None:
    table = kv_tables.history_by_position(TABLES["history"][0])
    assert table["position"].tolist() == list(range(7))
    assert table["compared_steps"].tolist() == [3, 3, 3, 3, 2, 1, 0]
    # 3 layers x (K and V) x 3 heads x 5 numbers in each compared step
    assert table["numbers_compared"].tolist() == [90 * n for n in (3, 3, 3, 3, 2, 1, 0)]
    assert table["same_bits"].all()


def test_one_changed_row_spoils_its_position_alone() -> None:
    table = TABLES["history"][0].copy()
    spoilt = table.index[(table["position"] == 2) & (table["layer"] == 1)][0]
    table.loc[spoilt, ["changed_steps", "same_bits"]] = [1, False]
    found = kv_tables.history_by_position(table)
    assert found["same_bits"].tolist() == [True, True, False, True, True, True, True]
    assert found["changed_steps"].tolist() == [0, 0, 1, 0, 0, 0, 0]


def test_label_says_owner_length_and_bytes() -> None:
    table = TABLES["label"][0]
    found = dict(zip(table["what"], table["found"], strict=True))
    assert found["owner: request"] == "request-0"
    assert found["owner: checkpoint digest"] == CHECKPOINT.digest
    assert found["consumed inputs = next position"] == found["length of each layer"] == "7"
    assert found["slots in use"] == "7 of 11"
    assert found["layers"] == "3, numbered 0 to 2"
    # 3 layers x (K and V) x 3 heads x 7 positions x 5 numbers x 8 bytes
    assert found["valid bytes"] == f"{3 * 2 * 3 * 7 * 5 * 8} (float64)"


# Positions -----------------------------------------------------------------------------------


def test_last_returned_token_is_never_consumed() -> None:
    table = TABLES["positions"][0]
    assert table["position_rows"].tolist() == [(0,), (1,), (2,), (3,)]
    assert table["next_position"].tolist() == [1, 2, 3, 4]
    assert table["consumed_later"].tolist() == [True, True, True, False]
    assert table["stop_reason"].tolist() == [None, None, None, "eos"]


def test_overflow_judges_by_the_tolerance() -> None:
    table = TABLES["overflow"][0]
    assert table["within_tolerance"].tolist() == [None, False, True]
    assert table["logit_error"].tolist()[0] is None
    loose = position_tables.overflow_table(FROZEN.vocabulary, REPORT, 1.0)
    assert loose["within_tolerance"].tolist() == [None, True, True]


def test_slots_say_where_each_key_was_made() -> None:
    table = TABLES["slots"][0]
    assert table["made_at"].tolist() == [1, 2, 3, 3]
    assert table["should_be"].tolist() == [0, 1, 2, 3]
    judged = REPORT.outcome(SLIDE).judged
    assert judged is not None
    assert table["key_error_layer_1"].tolist() == judged.key_errors[1].tolist()
