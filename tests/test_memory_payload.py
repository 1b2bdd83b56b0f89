"""Payload formulas against hand computations, a slot-by-slot count and their own laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.errors import InputError
from tinydec.memory import (
    AttentionLayout,
    allocated_scalars,
    cache_bytes,
    cache_scalars,
    check_payload,
    dense_layout,
    growth_scalars,
    requests_that_fit,
    valid_scalars,
)

# Python cannot print these: an error message must not try
HUGE = pytest.param(10**5000, id="huge")
MINUS_HUGE = pytest.param(-(10**5000), id="minus huge")

FROZEN = dense_layout("frozen", layers=2, heads=2, head_dim=2, context=4, dtype="float32")


def grouped(kv_heads: int, attention: str = "gqa", context: int = 101) -> AttentionLayout:
    return AttentionLayout(
        "tiny", attention, 3, 0, None, 6, kv_heads, 5, None, context, "float16", True
    )


def sliding(global_layers: int = 2, window_layers: int = 3, window: int = 7) -> AttentionLayout:
    return AttentionLayout(
        "w", "sliding", global_layers, window_layers, window, 6, 2, 5, None, 101, "float16", True
    )


def latent(width: int = 13) -> AttentionLayout:
    return AttentionLayout("l", "mla", 5, 0, None, 7, None, None, width, 101, "bfloat16", True)


def counted_slots(layout: AttentionLayout, tokens: int, batch: int) -> int:
    """Count scalars by filling every layer's cache token by token (independent of the formula)."""
    total = 0
    for layer in range(layout.global_layers + layout.window_layers):
        held: list[int] = []
        for position in range(tokens):
            held.append(position)
            if layer >= layout.global_layers and layout.window is not None:
                held = held[-layout.window :]
        for _ in held:
            if layout.latent_dim is not None:
                total += layout.latent_dim
            else:
                assert layout.kv_heads is not None
                assert layout.head_dim is not None
                total += layout.kv_heads * layout.head_dim  # K
                total += layout.kv_heads * layout.head_dim  # V
    return total * batch


layouts = st.one_of(
    st.sampled_from([1, 2, 3, 6]).map(grouped),
    st.builds(sliding, st.integers(0, 3), st.integers(1, 4), st.integers(1, 120)),
    st.integers(1, 31).map(latent),
)
tokens_in_context = st.integers(0, 101)


@pytest.mark.parametrize("tokens", [1, 2, 3, 4])
def test_frozen_model_caches_16_scalars_and_64_bytes_per_token(tokens: int) -> None:
    # 2 (K, V) x 2 layers x 1 request x 2 heads x T x 2 wide = 16 T; x 4 bytes = 64 T
    scalars = cache_scalars(layers=2, batch=1, kv_heads=2, tokens=tokens, head_dim=2)
    assert scalars == 16 * tokens == valid_scalars(FROZEN, tokens)
    assert cache_bytes(scalars, "float32") == 64 * tokens


def test_frozen_model_at_full_context_takes_256_bytes() -> None:
    assert cache_bytes(valid_scalars(FROZEN, 4), "float32") == 256
    assert cache_bytes(valid_scalars(FROZEN, 4), "float64") == 512
    assert cache_bytes(valid_scalars(FROZEN, 4), "float16") == 128


def test_formula_multiplies_every_prime_size_once() -> None:
    # 2 x 3 x 5 x 7 x 11 x 13 = 30030
    assert cache_scalars(layers=3, batch=5, kv_heads=7, tokens=11, head_dim=13) == 30030


def test_measured_bytes_of_arrays_agree_with_the_formula() -> None:
    # two layers, K and V of (B, h, capacity, d_h) = (3, 5, 11, 7), of which 4 positions are valid
    arrays = [np.zeros((3, 5, 11, 7), np.float32) for _ in range(4)]
    valid = cache_scalars(layers=2, batch=3, kv_heads=5, tokens=4, head_dim=7)
    whole = cache_scalars(layers=2, batch=3, kv_heads=5, tokens=11, head_dim=7)
    assert check_payload(valid, "float32", [a[:, :, :4] for a in arrays]).agrees
    assert check_payload(whole, "float32", arrays).measured_bytes == 2 * 2 * 3 * 5 * 11 * 7 * 4
    assert check_payload(whole, "float32", arrays).agrees
    # negatives: one array missing, the wrong dtype, allocation taken for payload
    assert not check_payload(whole, "float32", arrays[:3]).agrees
    assert not check_payload(whole, "float16", arrays).agrees
    assert not check_payload(valid, "float32", arrays).agrees


@given(layouts, tokens_in_context, st.integers(1, 9))
def test_formula_equals_a_slot_by_slot_count(
    layout: AttentionLayout, tokens: int, batch: int
) -> None:
    assert valid_scalars(layout, tokens, batch) == counted_slots(layout, tokens, batch)


@given(layouts, tokens_in_context, st.integers(1, 50), st.integers(1, 50))
def test_payload_is_linear_in_the_batch(layout: AttentionLayout, t: int, a: int, b: int) -> None:
    together = valid_scalars(layout, t, a + b)
    assert together == valid_scalars(layout, t, a) + valid_scalars(layout, t, b)


@given(layouts, st.integers(1, 101))
def test_payload_never_shrinks_with_tokens(layout: AttentionLayout, tokens: int) -> None:
    grown = growth_scalars(layout, tokens)
    assert grown == valid_scalars(layout, tokens) - valid_scalars(layout, tokens - 1)
    assert grown >= 0
    assert (grown == 0) == (
        layout.global_layers == 0 and layout.window is not None and tokens > layout.window
    )


@given(layouts, st.integers(0, 101))
def test_growth_adds_up_to_the_payload(layout: AttentionLayout, tokens: int) -> None:
    growth = sum(growth_scalars(layout, t) for t in range(1, tokens + 1))
    assert growth == valid_scalars(layout, tokens)


@given(st.integers(0, 3), st.integers(1, 4), st.integers(1, 120), tokens_in_context)
def test_window_never_exceeds_full_attention(g: int, w: int, window: int, tokens: int) -> None:
    windowed = valid_scalars(sliding(g, w, window), tokens)
    full = valid_scalars(
        AttentionLayout("f", "gqa", g + w, 0, None, 6, 2, 5, None, 101, "float16", True), tokens
    )
    assert windowed <= full
    assert (windowed == full) == (tokens <= window)


@given(tokens_in_context, st.integers(1, 9))
def test_grouped_with_as_many_kv_heads_equals_multi_head(tokens: int, batch: int) -> None:
    gqa, mha = grouped(6, "gqa"), grouped(6, "mha")
    assert valid_scalars(gqa, tokens, batch) == valid_scalars(mha, tokens, batch)
    if tokens:  # negative: fewer groups cost less, one group a sixth
        assert valid_scalars(grouped(3), tokens, batch) < valid_scalars(mha, tokens, batch)
        mqa = grouped(1, "mqa")
        assert valid_scalars(mqa, tokens, batch) * 6 == valid_scalars(mha, tokens, batch)


@given(layouts, tokens_in_context, st.integers(1, 9), st.integers(1, 40))
def test_paged_holds_the_payload_with_less_than_one_block_to_spare(
    layout: AttentionLayout, tokens: int, batch: int, block: int
) -> None:
    valid = valid_scalars(layout, tokens, batch)
    paged = allocated_scalars(layout, tokens, batch, block_size=block)
    one_block = block * layout.layers * layout.scalars_per_position
    assert valid <= paged < valid + batch * one_block
    assert paged % (block * layout.scalars_per_position * batch) == 0
    assert allocated_scalars(layout, tokens, batch, block_size=1) == valid


@given(layouts, tokens_in_context, st.integers(1, 9))
def test_preallocated_does_not_depend_on_tokens(
    layout: AttentionLayout, tokens: int, batch: int
) -> None:
    whole = allocated_scalars(layout, tokens, batch, capacity=101)
    assert whole == valid_scalars(layout, 101, batch) >= valid_scalars(layout, tokens, batch)
    assert allocated_scalars(layout, tokens, batch) == valid_scalars(layout, tokens, batch)


def test_paged_rounding_by_hand() -> None:
    # gqa: 3 layers, 2 kv heads, d_h 5: 2 x 2 x 5 = 20 scalars per position and layer.
    # 17 tokens in blocks of 16 take 2 blocks = 32 slots: 3 x 32 x 20 = 1920; batch 4: 7680.
    assert valid_scalars(grouped(2), 17) == 3 * 17 * 20 == 1020
    assert allocated_scalars(grouped(2), 17, block_size=16) == 1920
    assert allocated_scalars(grouped(2), 17, 4, block_size=16) == 7680
    assert allocated_scalars(grouped(2), 16, block_size=16) == 960
    # window 7, blocks of 4: global 2 x 20 slots (17 up), window 3 x 8 slots (7 up); 20 each
    assert allocated_scalars(sliding(), 17, block_size=4) == (2 * 20 + 3 * 8) * 20 == 1280


@given(layouts, st.integers(1, 101), st.integers(0, 10**7), st.integers(1, 40))
def test_requests_that_fit_is_the_largest_number_that_fits(
    layout: AttentionLayout, tokens: int, memory: int, block: int
) -> None:
    fit = requests_that_fit(layout, tokens, memory, block_size=block)

    def needs(batch: int) -> int:
        scalars = allocated_scalars(layout, tokens, batch, block_size=block)
        return cache_bytes(scalars, layout.dtype)

    assert needs(fit + 1) > memory
    assert fit == 0 or needs(fit) <= memory


def test_requests_that_fit_by_hand() -> None:
    # frozen, 3 tokens: 16 x 3 x 4 bytes = 192; 1000 / 192 = 5.2, 959 / 192 = 4.99
    assert requests_that_fit(FROZEN, 3, 1000) == 5
    assert requests_that_fit(FROZEN, 3, 959) == 4
    assert requests_that_fit(FROZEN, 3, 1000, dtype="float64") == 2
    # preallocated for 4: 256 bytes each
    assert requests_that_fit(FROZEN, 3, 1000, capacity=4) == 3
    assert requests_that_fit(FROZEN, 3, 191) == 0


def test_division_stays_exact_where_floats_round() -> None:
    # 10**20 requests of 64 bytes, one byte short: a float quotient would round up
    assert requests_that_fit(FROZEN, 1, 64 * 10**20 - 1) == 10**20 - 1
    assert int((64 * 10**20 - 1) / 64) != 10**20 - 1


def test_numpy_integers_do_not_overflow() -> None:
    big = np.int64(2**40)
    assert (
        cache_scalars(
            layers=np.int64(3),  # type: ignore[arg-type]
            batch=big,  # type: ignore[arg-type]
            kv_heads=1,
            tokens=big,  # type: ignore[arg-type]
            head_dim=1,
        )
        == 6 * 2**80
    )
    layout = replace(FROZEN, max_context=big, head_dim=big)  # type: ignore[arg-type]
    assert type(layout.head_dim) is int
    assert type(layout.max_context) is int
    assert valid_scalars(layout, big, 5) == 2 * 2 * 5 * 2 * 2**80  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 1.0, "3", None, True, HUGE, MINUS_HUGE])
@pytest.mark.parametrize("field", ["layers", "batch", "kv_heads", "tokens", "head_dim"])
def test_bad_numbers_are_named(field: str, bad: object) -> None:
    numbers: dict[str, object] = dict.fromkeys(
        ("layers", "batch", "kv_heads", "tokens", "head_dim"), 2
    )
    numbers[field] = bad
    with pytest.raises(InputError, match=f"^{field}: expected a whole number .*found ") as caught:
        cache_scalars(**numbers)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_zero_is_allowed_for_tokens_alone() -> None:
    assert cache_scalars(layers=2, batch=1, kv_heads=2, tokens=0, head_dim=2) == 0
    with pytest.raises(InputError, match="batch: expected a whole number of at least 1, found 0"):
        cache_scalars(layers=2, batch=0, kv_heads=2, tokens=0, head_dim=2)


def test_bad_allocations_are_refused() -> None:
    with pytest.raises(InputError, match=r"block_size or capacity, found both \(2, 4\)"):
        allocated_scalars(FROZEN, 1, block_size=2, capacity=4)
    with pytest.raises(InputError, match=r"block_size: expected .* at least 1, found 0"):
        allocated_scalars(FROZEN, 1, block_size=0)
    with pytest.raises(InputError, match=r"capacity: expected .* at least 3 and at most 4"):
        allocated_scalars(FROZEN, 3, capacity=2)
    with pytest.raises(InputError, match=r"capacity: expected .* at most 4 .*found 5"):
        allocated_scalars(FROZEN, 3, capacity=5)
    with pytest.raises(InputError, match=r"tokens: expected .* at most 4 .*found 5"):
        valid_scalars(FROZEN, 5)
    with pytest.raises(InputError, match=r"tokens: expected .* at least 1"):
        growth_scalars(FROZEN, 0)
    with pytest.raises(InputError, match=r"tokens: expected .* at least 1"):
        requests_that_fit(FROZEN, 0, 10)
    with pytest.raises(InputError, match=r"memory_bytes: expected .* at least 0, found -1"):
        requests_that_fit(FROZEN, 1, -1)
    with pytest.raises(InputError, match=r"dtype: expected one of float64, .*found 'int3'"):
        requests_that_fit(FROZEN, 1, 1, dtype="int3")
