"""Every table: its file, its columns, its rows."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from tests.random_models import random_checkpoint
from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.csv_format import read_csv
from tinydec.evidence.registry import TABLES, tables_of
from tinydec.evidence.schema import KINDS
from tinydec.model.config import ModelConfig
from tinydec.verification.equivalence import verify_prefixes

#: The columns that were asked for, file by file.
REQUIRED = {
    "prefix_equivalence.csv": "pattern length prefix_ids prefix_tokens mode dtype max_abs_error "
    "max_ulp tolerance passed full_argmax cached_argmax",
    "prefix_logits.csv": "pattern length path token_id token logit",
    "cache_trace.csv": "pattern step phase token_id token position layer owner k_shape v_shape "
    "expected_shape length_before length_after payload_scalars payload_bytes k_max_error "
    "v_max_error passed",
    "kv_values.csv": "pattern length path tensor layer head position index value",
    "attention.csv": "pattern length path tensor layer head query_position key_position value",
    "intermediates.csv": "pattern length path tensor layer head position index value",
    "deliberate_failures.csv": "failure pattern length max_abs_error tolerance argmax_kept "
    "shapes_valid rejected",
    "policies.csv": "run policy temperature top_k top_p seed",
    "traces.csv": "run path token_id token returned consumed position",
    "probabilities.csv": "run path step token_id token logit scaled probability kept cdf_low "
    "cdf_high uniform chosen state_before state_after",
    "stops.csv": "run path stop_reason returned consumed",
    "memory.csv": "model tokens scalars formula_bytes measured_bytes allocated_bytes verified",
    "acceptance_gate.csv": "condition figure expected passed",
    "published_vs_measured.csv": "quantity published measured note",
    "audit.csv": "stage check contract verdict observed expected tolerance where reason",
    "batch_isolation.csv": "row layout neighbours max_abs_error tolerance tokens_equal draws_equal "
    "stop_equal excused passed",
    "kill_matrix.csv": "fault stage_expected stage_found first_tensor first_position max_abs_error "
    "greedy_changed caught_by silent passed",
    "fixture.csv": "measure layer head figure relation expected passed",
}
#: Counted by hand: 16 prefixes of 40 tokens in all, 40 splits, vocabulary 8, 2 layers, 2 heads,
#: d_h 2, d 4, m 8. Query-key pairs of a pattern: 1 + 4 + 9 + 16 = 30 in the full passes, and
#: 1 + 3 + 6 + 10 = 20 in the cached ones, which have no hidden keys. Intermediates of a position:
#: three embeddings of 4, in each layer ten tensors of 4 and two of 8, ln_f of 4, 8 logits.
ROWS = {
    "prefix_equivalence.csv": 40,
    "prefix_logits.csv": 16 * 2 * 8,
    "cache_trace.csv": 40 * 2,
    "kv_values.csv": 2 * 40 * 2 * 2 * 2 * 2,
    "attention.csv": 2 * 4 * (30 + 20) * 2 * 2,
    "intermediates.csv": 2 * 40 * (12 + 2 * (10 * 4 + 2 * 8) + 4 + 8),
    "deliberate_failures.csv": 32,
    "policies.csv": 3,
    "traces.csv": 2 * 3 * 5,
    "probabilities.csv": 2 * (4 + 4 + 1) * 8,
    "stops.csv": 6,
    "memory.csv": 5 + 30,
    "acceptance_gate.csv": 5,
    "published_vs_measured.csv": 10,
    "audit.csv": 6 + 8 + 6 + 5 + 7 + 2,
    "batch_isolation.csv": 3 * 5,
    "kill_matrix.csv": 42 + 5,
    "fixture.csv": 2 * 2 + 1,
}


@pytest.fixture(scope="module")
def tables(report: AuditReport) -> dict[str, pd.DataFrame]:
    return {name: table.build(report) for name, table in TABLES.items()}


def test_every_file_asked_for_is_there() -> None:
    assert set(TABLES) == {*REQUIRED, "columns.csv"}


@pytest.mark.parametrize("file", REQUIRED)
def test_columns_asked_for_come_in_their_order(file: str) -> None:
    names = TABLES[file].schema.names
    wanted = REQUIRED[file].split()
    assert [name for name in names if name in wanted] == wanted
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("file", ROWS)
def test_number_of_rows(file: str, tables: dict[str, pd.DataFrame]) -> None:
    assert len(tables[file]) == ROWS[file]


@pytest.mark.parametrize("file", TABLES)
def test_file_comes_back_as_the_same_table(file: str, report: AuditReport) -> None:
    table = TABLES[file]
    pd.testing.assert_frame_equal(
        read_csv(table.csv(report), table.schema), table.build(report), check_exact=True
    )


def test_every_column_says_what_it_means(tables: dict[str, pd.DataFrame]) -> None:
    for table in TABLES.values():
        assert table.schema.title
        for column in table.schema.columns:
            assert column.kind in KINDS
            assert column.meaning.strip() == column.meaning != ""
            assert "\n" not in column.meaning
    described = tables["columns.csv"]
    assert len(described) == sum(len(table.schema.columns) for table in TABLES.values())
    first = described.iloc[0]
    assert (first["file"], first["column"]) == ("acceptance_gate.csv", "number")


def test_schema_tells_captions_and_columns() -> None:
    schema = TABLES["prefix_logits.csv"].schema
    assert schema.captions()["logit"] == "final logit"
    assert schema.column("logit").rule == "close"
    with pytest.raises(KeyError):
        schema.column("probability")


def test_forty_rows_name_every_split_of_every_prefix(tables: dict[str, pd.DataFrame]) -> None:
    rows = tables["prefix_equivalence.csv"]
    assert not rows.duplicated(["pattern", "length", "mode"]).any()
    assert rows.groupby(["pattern", "length"]).size().tolist() == [1, 2, 3, 4] * 4
    assert rows["prefix_ids"].nunique() == 11
    assert (rows["prefill_length"] == 1).sum() == 16
    assert rows["passed"].all()
    assert set(rows["model_mode"]) == {"evaluation"}


def test_last_token_is_returned_and_not_consumed(tables: dict[str, pd.DataFrame]) -> None:
    rows = tables["traces.csv"]
    for _, trace in rows.groupby(["run", "path"]):
        assert trace["consumed"].tolist() == [True] * 4 + [False]
        assert trace["position"].tolist() == [0, 1, 2, 3, None]
        assert trace["returned"].iloc[-1]
        assert not trace["returned"].iloc[0]


def test_stops_show_both_reasons(tables: dict[str, pd.DataFrame]) -> None:
    rows = tables["stops.csv"]
    assert rows["stop_reason"].tolist() == ["eos"] * 4 + ["context"] * 2
    assert not rows["last_consumed"].any()


def test_failures_that_cannot_act_say_why(tables: dict[str, pd.DataFrame]) -> None:
    rows = tables["deliberate_failures.csv"]
    idle = rows[~rows["can_act"]]
    assert len(idle) == 4
    assert set(idle["failure"]) == {"positions-reset"}
    assert set(idle["reason"]) == {"a one-token prefix has position 0 anyway"}
    assert set(idle["length"]) == {1}
    acting = rows[rows["can_act"]]
    assert acting["rejected"].all()
    assert acting["shapes_valid"].all()
    assert (acting["max_abs_error"] > 1e-2).all()
    assert acting["reason"].isna().all()
    assert acting["refusal"].str.contains("expected").all()


def test_memory_lists_the_checkpoint_measured_and_presets_marked(
    tables: dict[str, pd.DataFrame],
) -> None:
    rows = tables["memory.csv"]
    own = rows[rows["model"] == "frozen"]
    assert own["measured_bytes"].tolist() == own["formula_bytes"].tolist() == [0, 64, 128, 192, 256]
    assert own["agrees"].tolist() == [True] * 5
    assert own["measured_allocated_bytes"].tolist() == own["allocated_bytes"].tolist() == [256] * 5
    presets = rows[rows["model"] != "frozen"]
    assert presets["measured_bytes"].isna().all()
    assert not presets["verified"].all()


def test_other_checkpoint_gets_its_own_tables() -> None:
    config = ModelConfig(vocab_size=7, n_positions=5, n_embd=6, n_layer=3, n_head=2, n_inner=11)
    found = run_audit(random_checkpoint(config, 3))
    assert TABLES.keys() - tables_of(found).keys() == {"kill_matrix.csv"}  # left to faults
    tables = {name: table.build(found) for name, table in tables_of(found).items()}
    assert set(tables["columns.csv"]["file"]) == tables.keys()
    assert len(tables["prefix_logits.csv"]) == 16 * 2 * 7
    assert len(tables["cache_trace.csv"]) == 40 * 3
    assert tables["memory.csv"]["model"].iloc[0] == f"checkpoint {found.checkpoint.digest[:12]}"
    published = tables["published_vs_measured.csv"]
    assert published["note"].str.startswith("Measured in another set-up").all()
    assert published["measured"].iloc[0] == config.parameter_count()


def test_tables_do_not_depend_on_how_prefixes_were_batched(report: AuditReport) -> None:
    batched = replace(report, equivalence=verify_prefixes(report.checkpoint, side_by_side=True))
    for name in ("prefix_logits.csv", "kv_values.csv", "attention.csv", "intermediates.csv"):
        one, other = (TABLES[name].build(found) for found in (report, batched))
        pd.testing.assert_frame_equal(one, other, rtol=1e-5, atol=1e-5)


def test_session_tables_are_named_in_snake_case() -> None:
    for file in ("audit.csv", "batch_isolation.csv", "kill_matrix.csv", "fixture.csv"):
        for name in TABLES[file].schema.names:
            assert re.fullmatch("[a-z]+(_[a-z]+)*", name)
