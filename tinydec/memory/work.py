"""Work of a GPT-2-architecture decoder in multiply-adds, with and without a KV cache.

A matrix product (m, k) x (k, n) is m k n multiply-adds. Counted: the query, key, value and output
projections, attention scores and mix, the MLP's two matrices, the output head. Not counted:
embeddings, biases, norms, softmax, GELU and additions on the residual path, which grow with the
rows alone and stay small beside the products.
"""

from dataclasses import dataclass, fields
from typing import Literal

from tinydec.errors import InputError
from tinydec.memory._checks import whole_number

HeadRows = Literal["all", "last", "none"]
HEAD_ROWS: tuple[HeadRows, ...] = ("all", "last", "none")

CONVENTION = (
    "Causal attention: `visible` counts each query only with the keys it may see, its own position "
    "included: n (n + 1) / 2 pairs for n tokens. `dense` counts what a masked matrix product "
    "multiplies: all n x n pairs, the hidden ones too. A decode step has one query that sees every "
    "key, so both are equal. Totals include the output head for the rows asked for."
)


@dataclass(frozen=True, slots=True)
class DecoderSizes:
    """Sizes of a GPT-2-architecture decoder: L, d, h, d_h, m, V and, optionally, the context.

    Raises InputError for a number below 1, or when heads x head_dim is not the width.
    """

    layers: int
    width: int
    heads: int
    head_dim: int
    mlp_width: int
    vocabulary: int
    context: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "context" or value is not None:
                object.__setattr__(self, field.name, whole_number(field.name, value, 1))
        if self.heads * self.head_dim != self.width:
            raise InputError(
                f"width: expected heads x head_dim = {self.heads} x {self.head_dim} = "
                f"{self.heads * self.head_dim}, found {self.width}"
            )


@dataclass(frozen=True, slots=True)
class Work:
    """Multiply-adds by part; `+` adds them part by part."""

    projections: int = 0
    scores: int = 0
    mix: int = 0
    mlp: int = 0
    head: int = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def attention(self) -> int:
        """Scores and mix together: the part that grows with the cached length."""
        return self.scores + self.mix

    @property
    def blocks(self) -> int:
        """All layers, without the output head."""
        return self.projections + self.attention + self.mlp

    @property
    def total(self) -> int:
        """All layers and the output head."""
        return self.blocks + self.head


@dataclass(frozen=True, slots=True)
class StepWork:
    """One pass over `rows` new positions after `cached` old ones; see CONVENTION.

    visible: only pairs the causal mask lets through. dense: every pair of the masked product.
    head_rows: how many logits rows the pass makes.
    """

    rows: int
    cached: int
    head_rows: int
    visible: Work
    dense: Work

    @property
    def visible_pairs(self) -> int:
        """Query-key pairs per head and layer that the mask lets through."""
        return _visible_pairs(self.rows, self.cached)

    @property
    def dense_pairs(self) -> int:
        """Query-key pairs per head and layer in the masked product."""
        return self.rows * (self.cached + self.rows)


@dataclass(frozen=True, slots=True)
class GenerationStep:
    """Step `index` returns one token: the cached way beside the uncached, with running sums."""

    index: int
    phase: Literal["prefill", "decode"]
    length: int
    cached: StepWork
    uncached: StepWork
    cached_visible_sum: Work
    cached_dense_sum: Work
    uncached_visible_sum: Work
    uncached_dense_sum: Work


def prefill_work(sizes: DecoderSizes, prompt: int, head: HeadRows = "all") -> StepWork:
    """Return the work of prefill over P prompt tokens, which is also that of one full forward.

    head: logits for every row, for the last row alone (enough to select a token), or none.
    """
    prompt = _length(sizes, "prompt", prompt, 1, reserve=0)
    return _step(sizes, prompt, 0, head)


def decode_work(sizes: DecoderSizes, cached: int, head: HeadRows = "all") -> StepWork:
    """Return the work of one decode step: one token consumed at cached length t, t + 1 keys seen.

    Its one row is also its last, so head `all` and `last` are the same. t = 0 is allowed.
    """
    return _step(sizes, 1, _length(sizes, "cached", cached, 0, reserve=1), head)


def uncached_work(sizes: DecoderSizes, cached: int, head: HeadRows = "all") -> StepWork:
    """Return the work of the same step without a cache: a full forward over t + 1 tokens."""
    return _step(sizes, _length(sizes, "cached", cached, 0, reserve=1) + 1, 0, head)


def generation_work(
    sizes: DecoderSizes, prompt: int, new_tokens: int, head: HeadRows = "all"
) -> tuple[GenerationStep, ...]:
    """Return every step of returning N tokens after P prompt tokens, with running sums.

    With a cache: prefill returns the first token, then N - 1 decode steps. Without: N full
    forwards over P, P + 1, ..., P + N - 1 tokens. The last returned token is not consumed.
    Raises InputError when P + N - 1 tokens exceed the context.
    """
    prompt = _length(sizes, "prompt", prompt, 1, reserve=0)
    new_tokens = whole_number("new_tokens", new_tokens, 1)
    _length(sizes, "prompt + new_tokens - 1", prompt + new_tokens - 1, 1, reserve=0)
    steps: list[GenerationStep] = []
    sums = (Work(), Work(), Work(), Work())
    for index in range(new_tokens):
        length = prompt + index
        full = prefill_work(sizes, length, head)
        cached = full if index == 0 else decode_work(sizes, length - 1, head)
        parts = (cached.visible, cached.dense, full.visible, full.dense)
        sums = (
            sums[0] + parts[0],
            sums[1] + parts[1],
            sums[2] + parts[2],
            sums[3] + parts[3],
        )
        phase: Literal["prefill", "decode"] = "prefill" if index == 0 else "decode"
        steps.append(GenerationStep(index, phase, length, cached, full, *sums))
    return tuple(steps)


def _length(sizes: DecoderSizes, name: str, value: int, minimum: int, reserve: int) -> int:
    """Check a length that leaves `reserve` positions of the context free."""
    maximum = None if sizes.context is None else sizes.context - reserve
    limit = f"the context is {sizes.context}"
    return whole_number(name, value, minimum, maximum, limit)


def _visible_pairs(rows: int, cached: int) -> int:
    # query number i (from 1) sees the cached positions and the first i new ones
    return rows * cached + rows * (rows + 1) // 2


def _step(sizes: DecoderSizes, rows: int, cached: int, head: HeadRows) -> StepWork:
    if head not in HEAD_ROWS:
        raise InputError(f"head: expected one of {', '.join(HEAD_ROWS)}, found {head!r}")
    head_rows = {"all": rows, "last": 1, "none": 0}[head]
    inner = sizes.heads * sizes.head_dim
    visible_pairs = _visible_pairs(rows, cached)
    dense_pairs = rows * (cached + rows)

    def work(pairs: int) -> Work:
        return Work(
            # (rows, d) x (d, 3 h d_h), then (rows, h d_h) x (h d_h, d)
            projections=sizes.layers * rows * (sizes.width * 3 * inner + inner * sizes.width),
            scores=sizes.layers * pairs * inner,
            mix=sizes.layers * pairs * inner,
            mlp=sizes.layers * rows * 2 * sizes.width * sizes.mlp_width,
            head=head_rows * sizes.width * sizes.vocabulary,
        )

    return StepWork(rows, cached, head_rows, work(visible_pairs), work(dense_pairs))
