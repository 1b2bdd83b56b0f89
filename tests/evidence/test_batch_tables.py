"""Tables of a batch: rows, steps, slots and stop reasons as the trace has them."""

from __future__ import annotations

import pandas as pd
import pytest

from tinydec.evidence import batch_tables
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.generation.batch import run_batch
from tinydec.generation.schedule import JOIN, LEAVE, BatchRequest, Event
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy
from tinydec.verification.isolation import isolation

MODEL = load_checkpoint()
TRACE = run_batch(
    MODEL,
    [
        BatchRequest("p", (0,), Policy()),
        BatchRequest("q", (0, 2, 2), Policy(), max_new_tokens=1),
        BatchRequest("r", (0,), Policy("sample"), 41),
    ],
    [Event(1, JOIN, "r"), Event(3, LEAVE, "r")],
)
TABLES = {
    "lanes": (batch_tables.lanes(MODEL.vocabulary, TRACE), batch_tables.LANES),
    "stops": (batch_tables.stops(MODEL.vocabulary, TRACE), batch_tables.STOPS),
    "slots": (batch_tables.slots(MODEL.vocabulary, TRACE, 0), batch_tables.SLOTS),
    "isolation": (batch_tables.isolation_rows(isolation(MODEL, TRACE)), batch_tables.ISOLATION),
}


def cells(table: pd.DataFrame, row: str, columns: list[str]) -> list[object]:
    return [table.loc[row, column] for column in columns]


@pytest.mark.parametrize("name", TABLES)
def test_csv_reads_back_as_it_was_written(name: str) -> None:
    table, schema = TABLES[name]
    assert read_csv(write_csv(table, schema), schema).equals(table)


def test_lanes_tell_who_consumed_what_where() -> None:
    table = TABLES["lanes"][0]
    first = table[table["batch_step"] == 0].set_index("row")
    assert cells(first, "p", ["consumed", "positions", "slots", "padding"]) == [
        "<bos>",
        "0",
        "2",
        2,
    ]
    columns = ["consumed", "positions", "slots", "padding", "stop_reason"]
    found = cells(first, "q", columns)
    assert found == ["<bos> A A", "0 1 2", "0 1 2", 0, "max_new_tokens"]
    assert table[table["batch_step"] == 1]["row"].tolist() == ["r"]


def test_stops_are_each_rows_own() -> None:
    table = TABLES["stops"][0].set_index("row")
    assert table["stop_reason"].tolist() == ["eos", "max_new_tokens", None]
    assert table["end"].tolist() == ["stopped", "stopped", "cancelled"]
    assert cells(table, "p", ["returned", "consumed", "joined"]) == ["A B D <eos>", 4, 0]
    assert cells(table, "r", ["joined", "last_step"]) == [1, 2]


def test_slots_tell_padding_from_tokens_and_from_nothing() -> None:
    table = TABLES["slots"][0]
    assert table[table["row"] == "p"]["holds"].tolist() == ["pad", "pad", "<bos>"]
    assert table[table["row"] == "p"]["seen"].tolist() == [False, False, True]
    later = batch_tables.slots(MODEL.vocabulary, TRACE, 1)  # q has left, and its slots with it
    assert later[later["row"] == "r"]["holds"].tolist() == ["<bos>"]


def test_isolation_names_the_neighbours_and_passes() -> None:
    table = TABLES["isolation"][0].set_index("row")
    assert table["neighbours"].tolist() == ["q r", "p", "p"]
    assert table["passed"].all()
