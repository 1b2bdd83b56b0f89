"""Reports and filled-in formulas of real presets against hand computations."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.errors import InputError
from tinydec.memory import (
    dense_layout,
    layout_report,
    load_presets,
    memory_report,
    payload_formula,
    valid_scalars,
)

PRESETS = load_presets()
HUGE = pytest.param(10**5000, id="huge")  # Python cannot print it
FROZEN = dense_layout("frozen", layers=2, heads=2, head_dim=2, context=4, dtype="float32")
KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.mark.parametrize(
    ("model", "tokens", "batch", "dtype", "expected"),
    [
        # 12 layers, 12 heads of 64, float32: 2 x 12 x 12 x 64 x 4 bytes = 72 KiB a token
        ("GPT-2 small", 1024, 1, None, 72 * KIB * 1024),
        # 32 layers, 32 heads of 128, float16: 2 x 32 x 32 x 128 x 2 = 512 KiB a token
        ("Llama-2-7B", 4096, 1, "float16", 2 * 32 * 1 * 32 * 4096 * 128 * 2),
        ("Llama-2-7B", 4096, 1, None, 2 * GIB),
        ("Llama-2-7B", 1, 1, None, 512 * KIB),
        ("Llama-2-7B", 4096, 8, None, 16 * GIB),
        ("Llama-2-7B", 4096, 1, "int8", 1 * GIB),
        # 80 layers, 8 of 64 heads kept: 2 x 80 x 8 x 128 x 2 = 320 KiB a token
        ("Llama-2-70B", 4096, 1, None, 320 * KIB * 4096),
        # one kv head of 64: 2 x 32 x 1 x 64 x 2 = 8 KiB a token, not 71 times that
        ("Falcon-7B", 2048, 1, None, 16 * MIB),
        # every layer a window of 4096: 2 x 32 x 8 x 128 x 2 = 128 KiB a token, up to 4096 tokens
        ("Mistral-7B-v0.1", 4095, 1, None, 128 * KIB * 4095),
        ("Mistral-7B-v0.1", 4096, 1, None, 512 * MIB),
        ("Mistral-7B-v0.1", 32768, 1, None, 512 * MIB),
        # the same sizes without a window keep growing
        ("Mistral-7B-v0.3", 32768, 1, None, 4 * GIB),
        # 13 + 13 layers, 4 kv heads of 256: 2 x 4 x 256 x 2 = 4 KiB a token and layer
        ("Gemma-2-2B", 3000, 1, None, 26 * 3000 * 4 * KIB),
        ("Gemma-2-2B", 4096, 1, None, 26 * 4096 * 4 * KIB),
        ("Gemma-2-2B", 8192, 1, None, (13 * 8192 + 13 * 4096) * 4 * KIB),
        # 61 layers of one 576-wide latent, 2 bytes, no factor 2: 70272 bytes a token
        ("DeepSeek-V3", 1, 1, None, 70272),
        ("DeepSeek-V3", 4096, 1, None, 61 * 4096 * 576 * 2),
        # 18 full + 18 of window 128, 8 kv heads of 64: 2 x 8 x 64 x 2 = 2 KiB a token and layer
        ("gpt-oss-120b", 1000, 3, None, 3 * (18 * 1000 + 18 * 128) * 2 * KIB),
    ],
)
def test_payload_of_real_models_by_hand(
    model: str, tokens: int, batch: int, dtype: str | None, expected: int
) -> None:
    report = memory_report(model, tokens, batch, dtype)
    assert report.bytes == expected
    assert report.bytes == report.scalars * report.element_bytes


def test_latent_cache_has_no_factor_two() -> None:
    assert memory_report("DeepSeek-V3", 1).scalars == 61 * 576
    assert memory_report("DeepSeek-V3", 1).formula.numbers == "61 x 1 x 1 x 576 = 35136 scalars"


def test_growth_stops_in_full_windows() -> None:
    # Gemma-2-2B: 4 KiB per layer; 26 layers grow up to 4096 tokens, then the 13 global ones
    assert memory_report("Gemma-2-2B", 4096).growth_bytes == 26 * 4 * KIB
    assert memory_report("Gemma-2-2B", 4097).growth_bytes == 13 * 4 * KIB
    assert memory_report("Mistral-7B-v0.1", 4096).growth_bytes == 128 * KIB
    assert memory_report("Mistral-7B-v0.1", 4097).growth_bytes == 0
    assert memory_report("Llama-2-7B", 9, 3).growth_bytes == 3 * 512 * KIB


def test_allocated_beside_valid() -> None:
    # preallocated for the context of 4096: 512 KiB x 4096 = 2 GiB whatever the tokens
    report = memory_report("Llama-2-7B", 100)
    assert (report.bytes, report.allocated_bytes) == (100 * 512 * KIB, 2 * GIB)
    assert report.allocation == "preallocated for 4096 positions"
    # 100 tokens in blocks of 16: 7 blocks = 112 positions
    paged = memory_report("Llama-2-7B", 100, block_size=16)
    assert (paged.bytes, paged.allocated_bytes) == (100 * 512 * KIB, 112 * 512 * KIB)
    assert paged.allocation == "whole blocks of 16 positions"
    # a window model preallocates its windows alone
    assert memory_report("Mistral-7B-v0.1", 100).allocated_bytes == 512 * MIB


def test_report_carries_marks_and_sources() -> None:
    report = memory_report("llama-2-7b", 5, 7, "float8")
    assert (report.model, report.label) == ("Llama-2-7B", "Llama-2-7B (not verified)")
    assert report.verified is False
    assert "CONFLICT" in report.notes
    assert "litgpt" in report.source
    assert (report.tokens, report.batch, report.dtype) == (5, 7, "float8")
    assert memory_report("Gemma-2-2B", 5).verified is True
    assert memory_report("Gemma-2-2B", 5).label == "Gemma-2-2B"
    assert memory_report("Llama-2-7B", 4096).size == "2 GiB"
    with pytest.raises(AttributeError):
        report.bytes = 0  # type: ignore[misc]


def test_formula_of_the_frozen_model() -> None:
    formula = layout_report(FROZEN, 4).formula
    assert formula.symbols == "2 L B h_kv T d_h"
    assert formula.numbers == "2 x 2 x 1 x 2 x 4 x 2 = 64 scalars"
    assert formula.symbols_latex == r"2 \, L \, B \, h_{\mathrm{kv}} \, T \, d_h"
    assert formula.numbers_latex == (
        r"2 \times 2 \times 1 \times 2 \times 4 \times 2 = 64\ \text{scalars}"
    )
    assert formula.bytes_numbers == "64 scalars x 4 bytes = 256 bytes"
    assert formula.bytes_latex == r"64 \times 4\ \text{bytes} = 256\ \text{bytes}"


def test_formula_of_windows_has_one_term_per_kind_of_layer() -> None:
    formula = memory_report("Gemma-2-2B", 8192).formula
    assert formula.symbols == "2 L_g B h_kv T d_h + 2 L_w B h_kv min(T, w) d_h"
    assert formula.numbers == (
        "2 x 13 x 1 x 4 x 8192 x 256 + 2 x 13 x 1 x 4 x min(8192, 4096) x 256 = 327155712 scalars"
    )
    # all layers windowed: the term without layers is left out
    assert memory_report("Mistral-7B-v0.1", 5000, 3).formula.numbers == (
        "2 x 32 x 3 x 8 x min(5000, 4096) x 128 = 805306368 scalars"
    )
    assert memory_report("DeepSeek-V3", 9).formula.symbols == "L B T d_c"


def evaluate(formula: str) -> tuple[int, int]:
    """Return the value of the left side, computed from the text alone, and the right side."""
    left, right = formula.split(" = ")
    plain = left.replace(r"\times", "x").replace(r"\min", "min")
    assert re.fullmatch(r"[0-9x+(), min]+", plain)
    value = eval(plain.replace("x", "*"), {"__builtins__": {}, "min": min})
    return value, int(re.match(r"[0-9]+", right).group())  # type: ignore[union-attr]


@given(st.sampled_from(list(PRESETS)), st.integers(1, 1024), st.integers(1, 99))
def test_every_filled_in_formula_computes_to_its_own_result(
    name: str, tokens: int, batch: int
) -> None:
    formula = payload_formula(PRESETS[name], tokens, batch)
    scalars = valid_scalars(PRESETS[name], tokens, batch)
    assert evaluate(formula.numbers) == (scalars, scalars)
    assert evaluate(formula.numbers_latex) == (scalars, scalars)
    # as many factors in symbols as in numbers, term by term
    for symbols, numbers in zip(
        formula.symbols.split(" + "), formula.numbers.split(" = ")[0].split(" + "), strict=True
    ):
        tidy = re.sub(r"min\([^)]*\)", "m", symbols)
        assert len(tidy.split()) == len(numbers.split(" x "))


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_reports_at_one_token_and_at_its_full_context(name: str) -> None:
    layout = PRESETS[name]
    for tokens in (1, layout.max_context):
        report = memory_report(name, tokens)
        assert 0 < report.bytes <= report.allocated_bytes
        assert report.dtype == layout.dtype
    assert report.bytes == report.allocated_bytes
    with pytest.raises(InputError, match=rf"tokens: .* at most {layout.max_context} "):
        memory_report(name, layout.max_context + 1)


@pytest.mark.parametrize("tokens", [0, -1, 1.5, 4.0, "4", None, True, 4097, HUGE])
def test_bad_token_counts_are_refused_with_the_limit(tokens: int) -> None:
    with pytest.raises(
        InputError, match=r"^tokens: .*at least 1 and at most 4096 \(the context of Llama-2-7B\)"
    ) as caught:
        memory_report("Llama-2-7B", tokens)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("batch", [0, -3, 2.0, "2", None, HUGE])
def test_bad_batches_are_refused(batch: int) -> None:
    with pytest.raises(InputError, match=r"^batch: expected a whole number of at least 1, found"):
        memory_report("Llama-2-7B", 5, batch)
    with pytest.raises(InputError, match=r"^batch: "):
        payload_formula(FROZEN, 3, batch)


@pytest.mark.parametrize("dtype", ["float", "FLOAT16", "", "float128", 16])
def test_unknown_dtypes_list_the_valid_ones(dtype: str) -> None:
    with pytest.raises(
        InputError, match="float64, float32, float16, bfloat16, float8, int8, found "
    ):
        memory_report("Llama-2-7B", 5, 1, dtype)


def test_unknown_models_and_bad_blocks_are_refused() -> None:
    with pytest.raises(InputError, match=r"GPT-2 small, .*gpt-oss-20b; found 'GPT-9'"):
        memory_report("GPT-9", 5)
    with pytest.raises(InputError, match="expected one of GPT-2 small; found"):
        memory_report("Llama-2-7B", 5, presets={"GPT-2 small": PRESETS["GPT-2 small"]})
    with pytest.raises(InputError, match=r"block_size: expected .* at least 1, found 0"):
        memory_report("Llama-2-7B", 5, block_size=0)
