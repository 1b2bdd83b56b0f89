"""Tables of memory and work: hand-computed cells and what the core says."""

from __future__ import annotations

from tinydec.evidence.cost_tables import (
    FOOTPRINT,
    PAYLOAD,
    REAL_MODELS,
    TIMING,
    WORK,
    footprint_table,
    payload_table,
    real_models_table,
    timing_table,
    work_table,
)
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.evidence.layouts import checkpoint_layout
from tinydec.memory import find_preset, generation_work, load_presets
from tinydec.memory.measured import (
    MeasuredPayload,
    decoder_sizes,
    measure_footprint,
    measure_payload,
)
from tinydec.memory.timing import StepTiming
from tinydec.model.storage import load_checkpoint

FROZEN = load_checkpoint()
LAYOUT = checkpoint_layout(FROZEN, "frozen")


def test_payload_rows_agree_with_the_arrays() -> None:
    measured = {d: measure_payload(FROZEN.cast(d), range(5), 3) for d in ("float32", "float64")}
    found = read_csv(write_csv(payload_table(LAYOUT, 3, measured), PAYLOAD), PAYLOAD)
    assert len(found) == 10
    assert found["equal"].all()
    assert found["formula_bytes"].tolist()[:5] == [0, 192, 384, 576, 768]


def test_a_measurement_that_differs_is_said_to() -> None:
    wrong = {"float32": (MeasuredPayload(1, 63, 256), MeasuredPayload(2, 128, 256))}
    assert payload_table(LAYOUT, 1, wrong)["equal"].tolist() == [False, True]


def test_real_models_by_hand() -> None:
    presets = load_presets()
    layouts = [find_preset(n, presets) for n in ("Llama-2-7B", "Mistral-7B-v0.1", "GPT-2 small")]
    found = real_models_table(layouts, 5000, 80 * 2**30, 1).set_index("model")
    # Llama-2-7B ends at 4096 tokens: 2 x 32 x 32 x 4096 x 128 scalars of 2 bytes are 2 GiB.
    assert found.loc["Llama-2-7B", "tokens"] == 4096
    assert found.loc["Llama-2-7B", "payload_bytes"] == 2 * 2**30
    assert found.loc["Llama-2-7B", "requests"] == 40
    # Every layer of Mistral-7B-v0.1 keeps at most 4096 positions: nothing grows at 5000.
    assert found.loc["Mistral-7B-v0.1", "growth_bytes"] == 0
    assert found.loc["Mistral-7B-v0.1", "payload_bytes"] == 2 * 32 * 8 * 4096 * 128 * 2
    assert not found.loc["GPT-2 small", "verified"]
    assert found.loc["Mistral-7B-v0.1", "verified"]


def test_whole_blocks_hold_more_and_fit_less() -> None:
    layouts = list(load_presets().values())
    exact, blocks = (real_models_table(layouts, 17, 2**30, size) for size in (1, 16))
    assert (blocks["allocated_bytes"] > exact["allocated_bytes"]).all()
    assert (blocks["requests"] <= exact["requests"]).all()
    assert (exact["allocated_bytes"] == exact["payload_bytes"]).all()
    read_csv(write_csv(blocks, REAL_MODELS), REAL_MODELS)


def test_work_rows_add_up() -> None:
    steps = generation_work(decoder_sizes(FROZEN.config), 2, 3)
    found = read_csv(write_csv(work_table(steps), WORK), WORK)
    parts = ["cached_projections", "cached_attention", "cached_mlp", "cached_head"]
    assert (found[parts].sum(axis=1) == found["cached_total"]).all()
    assert found["cached_total"].cumsum().tolist() == found["cached_sum"].tolist()
    assert found["full_total"].cumsum().tolist() == found["full_sum"].tolist()
    assert found["phase"].tolist() == ["prefill", "decode", "decode"]
    assert found["tokens"].tolist() == [2, 3, 4]
    # One row of d = 4, per layer: 4 x 12 + 4 x 4 projections, 2 x 4 x 8 MLP; head 4 x 8.
    assert found["cached_projections"][1] == 2 * 64
    assert found["cached_mlp"][1] == 2 * 64
    assert found["cached_head"][1] == 32


def test_footprint_has_every_part() -> None:
    found = footprint_table(measure_footprint(FROZEN, 4))
    assert found["bytes"].tolist()[0] == 256
    assert found["part"].tolist()[-1] == "weights"
    read_csv(write_csv(found, FOOTPRINT), FOOTPRINT)


def test_timing_keeps_every_digit() -> None:
    step = StepTiming(3, (0.1, 0.1 + 0.2, 1 / 3), (1e-6, 2e-6, 3e-6))
    found = read_csv(write_csv(timing_table([step]), TIMING), TIMING)
    assert found["cached_median"].tolist() == [0.30000000000000004]
    assert found["full_high"].tolist() == [3e-6]
