"""One immutable answer to "how much memory does this cache take?", with the formula filled in."""

from collections.abc import Mapping
from dataclasses import dataclass

from tinydec.memory._checks import whole_number
from tinydec.memory.dtypes import dtype_bytes, format_bytes
from tinydec.memory.layout import AttentionLayout
from tinydec.memory.payload import allocated_scalars, growth_scalars, valid_scalars
from tinydec.memory.presets import find_preset, load_presets


@dataclass(frozen=True, slots=True)
class PayloadFormula:
    """The payload formula in symbols and in numbers, as plain text and as LaTeX (no dollar signs).

    A model with global and window layers has one term for each kind.
    """

    symbols: str
    numbers: str
    symbols_latex: str
    numbers_latex: str
    bytes_numbers: str
    bytes_latex: str


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Cache memory of one model for `batch` requests of `tokens` tokens each.

    scalars, bytes: valid cached values. allocated_scalars, allocated_bytes: what storage sets
    aside by the rule in `allocation`. growth_bytes: bytes that the latest token of every request
    added. label: the name, marked when not verified.
    """

    model: str
    label: str
    attention: str
    tokens: int
    batch: int
    dtype: str
    element_bytes: int
    scalars: int
    bytes: int
    allocation: str
    allocated_scalars: int
    allocated_bytes: int
    growth_bytes: int
    formula: PayloadFormula
    max_context: int
    verified: bool
    notes: str
    source: str

    @property
    def size(self) -> str:
        """The valid bytes in the largest binary unit that fits, such as `2 GiB`."""
        return format_bytes(self.bytes)


def payload_formula(
    layout: AttentionLayout, tokens: int, batch: int = 1, dtype: str | None = None
) -> PayloadFormula:
    """Return the payload formula of `layout` with its numbers filled in.

    The frozen model at four tokens gives `2 x 2 x 1 x 2 x 4 x 2 = 64 scalars`: K and V, layers,
    batch, key/value heads, tokens, head width. InputError on bad numbers or an unknown dtype.
    """
    scalars = valid_scalars(layout, tokens, batch)
    dtype = layout.dtype if dtype is None else dtype
    element = dtype_bytes(dtype)
    terms = _terms(layout, int(tokens), int(batch))
    total = scalars * element
    plain = " + ".join(" x ".join(str(number) for _, _, number, _ in term) for term in terms)
    latex = " + ".join(r" \times ".join(number for _, _, _, number in term) for term in terms)
    return PayloadFormula(
        symbols=" + ".join(" ".join(symbol for symbol, _, _, _ in term) for term in terms),
        numbers=f"{plain} = {scalars} scalars",
        symbols_latex=" + ".join(r" \, ".join(symbol for _, symbol, _, _ in t) for t in terms),
        numbers_latex=rf"{latex} = {scalars}\ \text{{scalars}}",
        bytes_numbers=f"{scalars} scalars x {element} bytes = {total} bytes",
        bytes_latex=rf"{scalars} \times {element}\ \text{{bytes}} = {total}\ \text{{bytes}}",
    )


def layout_report(
    layout: AttentionLayout,
    tokens: int,
    batch: int = 1,
    dtype: str | None = None,
    block_size: int | None = None,
) -> MemoryReport:
    """Return the memory report of any layout, such as that of a checkpoint at hand.

    dtype None means the layout's own. Allocated means whole blocks of `block_size` positions per
    request, or, when it is None, storage preallocated for the model's whole context.
    Raises InputError for tokens outside 1 to max_context, a batch below 1 or an unknown dtype.
    """
    limit = f"the context of {layout.name}"
    tokens = whole_number("tokens", tokens, 1, layout.max_context, limit)
    batch = whole_number("batch", batch, 1)
    dtype = layout.dtype if dtype is None else dtype
    element = dtype_bytes(dtype)
    scalars = valid_scalars(layout, tokens, batch)
    if block_size is None:
        allocation = f"preallocated for {layout.max_context} positions"
        allocated = allocated_scalars(layout, tokens, batch, capacity=layout.max_context)
    else:
        allocated = allocated_scalars(layout, tokens, batch, block_size=block_size)
        allocation = f"whole blocks of {block_size} positions"
    return MemoryReport(
        model=layout.name,
        label=layout.label,
        attention=layout.attention,
        tokens=tokens,
        batch=batch,
        dtype=dtype,
        element_bytes=element,
        scalars=scalars,
        bytes=scalars * element,
        allocation=allocation,
        allocated_scalars=allocated,
        allocated_bytes=allocated * element,
        growth_bytes=growth_scalars(layout, tokens, batch) * element,
        formula=payload_formula(layout, tokens, batch, dtype),
        max_context=layout.max_context,
        verified=layout.verified,
        notes=layout.notes,
        source=layout.source,
    )


def memory_report(
    model: str,
    tokens: int,
    batch: int = 1,
    dtype: str | None = None,
    *,
    block_size: int | None = None,
    presets: Mapping[str, AttentionLayout] | None = None,
) -> MemoryReport:
    """Return the memory report of a named preset: `memory --model NAME --tokens T ...`.

    presets None means the shipped file. Raises InputError as `layout_report`, and for an unknown
    model name (listing the valid ones).
    """
    layout = find_preset(model, load_presets() if presets is None else presets)
    return layout_report(layout, tokens, batch, dtype, block_size)


# symbol, its LaTeX, the number, its LaTeX
_Factor = tuple[str, str, str, str]


def _terms(layout: AttentionLayout, tokens: int, batch: int) -> list[list[_Factor]]:
    """Return one product per kind of layer, in the order 2, L, B, h_kv, T, d_h."""

    def factor(symbol: str, latex: str, number: int | None) -> _Factor:
        return (symbol, latex, str(number), str(number))

    def term(layers: _Factor, positions: _Factor) -> list[_Factor]:
        size = factor("B", "B", batch)
        if layout.latent_dim is not None:  # it stands for K and V together: no factor 2
            return [layers, size, positions, factor("d_c", "d_c", layout.latent_dim)]
        heads = factor("h_kv", r"h_{\mathrm{kv}}", layout.kv_heads)
        width = factor("d_h", "d_h", layout.head_dim)
        return [factor("2", "2", 2), layers, size, heads, positions, width]

    every = factor("T", "T", tokens)
    if layout.window is None:
        return [term(factor("L", "L", layout.global_layers), every)]
    window = (
        "min(T, w)",
        r"\min(T, w)",
        f"min({tokens}, {layout.window})",
        rf"\min({tokens}, {layout.window})",
    )
    terms = [term(factor("L_w", r"L_{\mathrm{w}}", layout.window_layers), window)]
    if layout.global_layers > 0:
        terms.insert(0, term(factor("L_g", r"L_{\mathrm{g}}", layout.global_layers), every))
    return terms
