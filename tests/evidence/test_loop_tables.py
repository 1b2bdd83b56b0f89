"""Tables of one run, against its trace; every one can be written and read back."""

from dataclasses import replace

import pandas as pd
import pytest

from tinydec.evidence import loop_tables
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import SAMPLE, Policy, RunSpec
from tinydec.verification.trace_pair import compare_traces

SPEC = RunSpec(prompt=("<bos>", "A"), policy=Policy(SAMPLE, 2.0))


@pytest.fixture(scope="module")
def shipped() -> Checkpoint:
    return load_checkpoint()


@pytest.fixture(scope="module")
def trace(shipped: Checkpoint) -> GenerationTrace:
    return generate(shipped, SPEC)


def test_turns_grow_the_prefix_by_the_selected_token(
    shipped: Checkpoint, trace: GenerationTrace
) -> None:
    table = loop_tables.turns(shipped.vocabulary, trace)
    assert table["prefix"][0] == "<bos> A"
    assert list(table["positions"])[:2] == ["0 to 1", "2"]
    for row in table.itertuples():
        assert row[11 - 1] == f"{row[2]} {row[9]}"
    assert list(table["prefix"])[1:] == list(table["extended prefix"])[:-1]
    assert list(table["uniform"]) == [step.selection.uniform for step in trace.steps]
    assert list(table["stop reason"]) == [None] * (len(table) - 1) + [trace.stop_reason]


def test_lead_is_the_gap_to_the_next_logit(shipped: Checkpoint) -> None:
    # The near-tie: D above C, and far below both the rest.
    table = loop_tables.turns(
        shipped.vocabulary, generate(shipped, RunSpec(prompt=("<bos>", "A", "B")))
    )
    rows = loop_tables.logit_rows(
        shipped.vocabulary, generate(shipped, RunSpec(prompt=("<bos>", "A", "B")))
    )
    logits = rows[rows["step"] == 0].set_index("token")["logit"]
    assert table["highest logit"][0] == "D"
    assert table["lead"][0] == logits["D"] - logits["C"]
    assert 0 < table["lead"][0] < 0.05


def test_logit_rows_hold_every_number_of_every_step(
    shipped: Checkpoint, trace: GenerationTrace
) -> None:
    table = loop_tables.logit_rows(shipped.vocabulary, trace)
    assert len(table) == 8 * len(trace.steps)
    for step in trace.steps:
        part = table[table["step"] == step.index]
        assert part["logit"].tolist() == step.selection.logits.tolist()
        assert part["probability"].tolist() == step.selection.probabilities.tolist()
        assert part["selected"].to_numpy().nonzero()[0].tolist() == [step.returned_id]


def test_columns_by_step_are_the_logits_in_token_order(
    shipped: Checkpoint, trace: GenerationTrace
) -> None:
    table = loop_tables.by_step(shipped.vocabulary, trace, range(1, 2))
    assert list(table.columns) == ["id", "token", "step 1"]
    assert table["step 1"].tolist() == trace.steps[1].selection.logits.tolist()


def test_paths_stand_side_by_side(shipped: Checkpoint, trace: GenerationTrace) -> None:
    pair = compare_traces(trace, generate(shipped, replace(SPEC, cache=False)))
    table = loop_tables.paths(shipped.vocabulary, pair)
    assert table["with cache"].tolist() == table["without cache"].tolist()
    assert table["largest difference"].tolist() == [s.max_abs_error for s in pair.steps]
    assert table["same token"].all()
    other = compare_traces(trace, generate(shipped, replace(SPEC, seed=1)))
    assert not loop_tables.paths(shipped.vocabulary, other)["same draw"].any()


def test_every_table_comes_back_from_its_csv(shipped: Checkpoint, trace: GenerationTrace) -> None:
    vocabulary = shipped.vocabulary
    pair = compare_traces(trace, generate(shipped, replace(SPEC, cache=False)))
    greedy = generate(shipped, RunSpec(max_new_tokens=1))
    for table, schema in (
        (loop_tables.turns(vocabulary, trace), loop_tables.TURNS),
        (loop_tables.turns(vocabulary, greedy), loop_tables.TURNS),
        (loop_tables.logit_rows(vocabulary, trace), loop_tables.LOGIT_ROWS),
        (loop_tables.stop_rules(shipped, trace, 0), loop_tables.STOP_RULES),
        (loop_tables.paths(vocabulary, pair), loop_tables.PATHS),
    ):
        pd.testing.assert_frame_equal(read_csv(write_csv(table, schema), schema), table)
