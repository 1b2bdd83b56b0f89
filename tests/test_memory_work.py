"""Work formulas against a tiny decoder whose scalars count their own multiplications."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.errors import InputError
from tinydec.memory import (
    CONVENTION,
    DecoderSizes,
    Work,
    decode_work,
    generation_work,
    prefill_work,
    uncached_work,
)

TINY = DecoderSizes(layers=2, width=6, heads=2, head_dim=3, mlp_width=5, vocabulary=7)
FROZEN = DecoderSizes(layers=2, width=4, heads=2, head_dim=2, mlp_width=8, vocabulary=8, context=4)
Array = np.ndarray[Any, np.dtype[Any]]


class Scalar:
    """A number that only counts: each multiplication adds one to the current part of a tally."""

    def __init__(self, tally: "Tally") -> None:
        self.tally = tally

    def __mul__(self, other: "Scalar") -> "Scalar":
        self.tally.counts[self.tally.part] += 1
        return self

    def __add__(self, other: "Scalar") -> "Scalar":
        return self


class Tally:
    """Runs the matrix products of a decoder on counting scalars, with or without a cache."""

    def __init__(self, sizes: DecoderSizes, masked: bool) -> None:
        self.sizes, self.masked = sizes, masked
        self.counts: Counter[str] = Counter()
        self.part = ""
        # one list of K and one of V rows per layer; a full forward starts with empty ones
        self.keys: list[list[Array]] = [[] for _ in range(sizes.layers)]
        self.values: list[list[Array]] = [[] for _ in range(sizes.layers)]

    def array(self, *shape: int) -> Array:
        filled = np.empty(shape, dtype=object)
        filled[...] = Scalar(self)
        return filled

    def product(self, part: str, left: Array, right: Array) -> Array:
        self.part = part
        return np.matmul(left, right)

    def run(self, rows: int, head_rows: int) -> Counter[str]:
        """Consume `rows` tokens after those in the cache; return the multiplications made."""
        s = self.sizes
        before = self.counts.copy()
        x = self.array(rows, s.width)
        for layer in range(s.layers):
            qkv = self.product("projections", x, self.array(s.width, 3 * s.heads * s.head_dim))
            q, k, v = np.split(qkv, 3, axis=1)
            old = len(self.keys[layer])
            self.keys[layer] += list(k)
            self.values[layer] += list(v)
            self.attend(layer, q, old)
            joined = self.array(rows, s.heads * s.head_dim)
            x = self.product("projections", joined, self.array(s.heads * s.head_dim, s.width))
            hidden = self.product("mlp", x, self.array(s.width, s.mlp_width))
            x = self.product("mlp", hidden, self.array(s.mlp_width, s.width))
        if head_rows:
            self.product("head", x[-head_rows:], self.array(s.width, s.vocabulary))
        return self.counts - before

    def attend(self, layer: int, q: Array, old: int) -> None:
        for head in range(self.sizes.heads):
            part = slice(head * self.sizes.head_dim, (head + 1) * self.sizes.head_dim)
            keys = np.array([row[part] for row in self.keys[layer]])  # (t, d_h)
            values = np.array([row[part] for row in self.values[layer]])
            if self.masked:  # one product over all pairs; the mask then hides some scores
                scores = self.product("scores", q[:, part], keys.T)
                self.product("mix", scores, values)
                continue
            for row in range(len(q)):  # only what this query may see
                seen = old + row + 1
                scores = self.product("scores", q[row : row + 1, part], keys[:seen].T)
                self.product("mix", scores, values[:seen])


def as_counts(work: Work) -> Counter[str]:
    parts = {part: getattr(work, part) for part in ("projections", "scores", "mix", "mlp", "head")}
    return Counter({part: number for part, number in parts.items() if number})


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("prompt", [1, 2, 5])
@pytest.mark.parametrize("head", ["all", "last", "none"])
def test_prefill_counts_every_multiplication(masked: bool, prompt: int, head: Any) -> None:
    step = prefill_work(TINY, prompt, head)
    rows = {"all": prompt, "last": 1, "none": 0}[head]
    counted = Tally(TINY, masked).run(prompt, rows)
    assert as_counts(step.dense if masked else step.visible) == counted
    assert step.head_rows == rows


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("cached", [0, 1, 4])
def test_decode_counts_every_multiplication(masked: bool, cached: int) -> None:
    tally = Tally(TINY, masked)
    if cached:
        tally.run(cached, cached)
    counted = tally.run(1, 1)
    step = decode_work(TINY, cached)
    assert as_counts(step.visible) == as_counts(step.dense) == counted
    full = uncached_work(TINY, cached)
    assert as_counts(full.dense if masked else full.visible) == Tally(TINY, masked).run(
        cached + 1, cached + 1
    )


@pytest.mark.parametrize("masked", [False, True])
def test_generation_counts_every_multiplication(masked: bool) -> None:
    steps = generation_work(TINY, prompt=3, new_tokens=4)
    cached = Tally(TINY, masked)
    cached.run(3, 3)
    for _ in range(3):  # the fourth token is returned, not consumed
        cached.run(1, 1)
    uncached: Counter[str] = Counter()
    for length in (3, 4, 5, 6):
        uncached += Tally(TINY, masked).run(length, length)
    last = steps[-1]
    sums = (last.cached_dense_sum, last.uncached_dense_sum)
    if not masked:
        sums = (last.cached_visible_sum, last.uncached_visible_sum)
    assert as_counts(sums[0]) == cached.counts
    assert as_counts(sums[1]) == uncached
    assert [step.length for step in steps] == [3, 4, 5, 6]
    assert [step.phase for step in steps] == ["prefill", "decode", "decode", "decode"]


def test_frozen_model_by_hand() -> None:
    # one row, 2 layers: QKV 4 x 12 = 48 and output 4 x 4 = 16, so 128; MLP 2 x 4 x 8 = 64, so 128;
    # head 4 x 8 = 32. Query 4 sees 4 keys, each 4 products for the score and 4 for the mix:
    # 2 x 4 x 4 = 32 each.
    step = decode_work(FROZEN, 3)
    assert step.visible == step.dense == Work(128, 32, 32, 128, 32)
    assert step.visible.attention == 64
    assert step.visible.blocks == 320
    assert step.visible.total == 352
    # four rows at once: four times all but attention; pairs 10 visible, 16 dense, x 2 x 4
    full = uncached_work(FROZEN, 3)
    assert full.visible == Work(512, 80, 80, 512, 128)
    assert full.dense == Work(512, 128, 128, 512, 128)
    assert (full.visible_pairs, full.dense_pairs) == (10, 16)
    assert (step.visible_pairs, step.dense_pairs) == (4, 4)


def test_gpt2_small_parameters_are_used_once_per_token() -> None:
    # every matrix entry meets each token once: 12 x 12 x 768 x 768 and the head's 50257 x 768
    sizes = DecoderSizes(12, 768, 12, 64, 3072, 50257, 1024)
    step = decode_work(sizes, 0).visible
    assert step.projections + step.mlp == 12 * 12 * 768 * 768 == 84_934_656
    assert step.head == 50257 * 768 == 38_597_376


sizes = st.builds(
    lambda layers, heads, head_dim, mlp, vocabulary: DecoderSizes(
        layers, heads * head_dim, heads, head_dim, mlp, vocabulary
    ),
    *[st.integers(1, 13)] * 5,
)


@given(sizes, st.integers(1, 40), st.integers(1, 40))
def test_prefill_and_decode_together_do_the_visible_work_once(
    model: DecoderSizes, prompt: int, more: int
) -> None:
    split = prefill_work(model, prompt).visible
    for cached in range(prompt, prompt + more):
        split = split + decode_work(model, cached).visible
    assert split == prefill_work(model, prompt + more).visible


@given(sizes, st.integers(0, 60))
def test_only_attention_of_a_decode_step_grows_with_the_cache(
    model: DecoderSizes, cached: int
) -> None:
    now, later = decode_work(model, cached).visible, decode_work(model, cached + 1).visible
    assert later.attention - now.attention == 2 * model.layers * model.width
    assert (later.projections, later.mlp, later.head) == (now.projections, now.mlp, now.head)


@given(sizes, st.integers(1, 40), st.sampled_from(["all", "last", "none"]))
def test_dense_is_never_less_than_visible(model: DecoderSizes, prompt: int, head: Any) -> None:
    step = prefill_work(model, prompt, head)
    assert step.dense.attention >= step.visible.attention
    assert replace(step.dense, scores=0, mix=0) == replace(step.visible, scores=0, mix=0)
    assert (step.dense == step.visible) == (prompt == 1)


@given(sizes, st.integers(1, 20), st.integers(1, 20), st.sampled_from(["all", "last", "none"]))
def test_cache_saves_work_from_the_second_token_on(
    model: DecoderSizes, prompt: int, new: int, head: Any
) -> None:
    last = generation_work(model, prompt, new, head)[-1]
    assert (last.cached_visible_sum == last.uncached_visible_sum) == (new == 1)
    assert last.cached_visible_sum.total <= last.uncached_visible_sum.total
    assert last.cached_dense_sum.total <= last.uncached_dense_sum.total


def test_convention_is_declared() -> None:
    for word in ("visible", "dense", "n (n + 1) / 2", "n x n", "output head"):
        assert word in CONVENTION


def test_exact_beyond_64_bits() -> None:
    big = np.int64(2**31)
    model = DecoderSizes(3, big, 1, big, big, 7)  # type: ignore[arg-type]
    assert decode_work(model, 0).visible.projections == 3 * 4 * 2**62


@pytest.mark.parametrize(
    "field", ["layers", "width", "heads", "head_dim", "mlp_width", "vocabulary", "context"]
)
@pytest.mark.parametrize("bad", [0, -1, 2.0, "2", True])
def test_bad_sizes_are_named(field: str, bad: object) -> None:
    with pytest.raises(InputError, match=f"^{field}: expected a whole number of at least 1"):
        replace(FROZEN, **{field: bad})  # type: ignore[arg-type]


def test_width_must_be_heads_times_head_dim() -> None:
    with pytest.raises(InputError, match="expected heads x head_dim = 2 x 3 = 6, found 7"):
        replace(TINY, width=7)


def test_lengths_beyond_the_context_are_refused() -> None:
    assert prefill_work(FROZEN, 4).rows == 4
    assert decode_work(FROZEN, 3).cached == 3
    assert len(generation_work(FROZEN, 2, 3)) == 3  # the third token is returned, not consumed
    with pytest.raises(InputError, match=r"prompt: .*at most 4 \(the context is 4\), found 5"):
        prefill_work(FROZEN, 5)
    for step in (decode_work, uncached_work):
        with pytest.raises(InputError, match=r"cached: .*at most 3 \(the context is 4\), found 4"):
            step(FROZEN, 4)
    with pytest.raises(InputError, match=r"new_tokens - 1: .*at most 4 .*found 5"):
        generation_work(FROZEN, 2, 4)


@pytest.mark.parametrize("bad", [0, -1, 1.0, "1", None])
def test_bad_lengths_are_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^prompt: "):
        prefill_work(TINY, bad)
    with pytest.raises(InputError, match=r"^prompt: "):
        generation_work(TINY, bad, 1)
    with pytest.raises(InputError, match=r"^new_tokens: "):
        generation_work(TINY, 1, bad)
    if bad != 0:
        with pytest.raises(InputError, match=r"^cached: "):
            decode_work(TINY, bad)


def test_unknown_head_rows_are_refused() -> None:
    with pytest.raises(InputError, match="head: expected one of all, last, none, found 'some'"):
        prefill_work(TINY, 1, "some")  # type: ignore[arg-type]
