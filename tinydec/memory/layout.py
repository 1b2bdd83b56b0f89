"""What one model keeps per token: heads, layers, windows and latents, as an immutable record."""

from dataclasses import dataclass, fields

from tinydec.errors import InputError
from tinydec.memory._checks import whole_number
from tinydec.memory.dtypes import dtype_bytes

ATTENTION_KINDS = ("mha", "gqa", "mqa", "sliding", "mla")


class LayoutError(InputError):
    """One field of a layout is wrong; carries the field, what was expected and what was found."""

    def __init__(self, model: str, field: str, expected: str, found: str) -> None:
        super().__init__(f"layout {model}, {field}: expected {expected}, found {found}")
        self.field = field
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True)
class AttentionLayout:
    """The cache-relevant sizes of one model.

    attention: `mha` (as many key/value heads as query heads), `gqa` (groups share one), `mqa` (one
    for all), `sliding` (some layers keep only the last `window` positions) or `mla` (one latent of
    `latent_dim` scalars per token and layer instead of keys and values).
    global_layers, window_layers: layers that cache every position, and at most `window` positions.
    kv_heads, head_dim: None for `mla`; latent_dim: None for all others; window: None without
    window layers. max_context: the longest prefix in tokens. dtype: the model's own cache dtype.
    verified: every number was confirmed in the sources named by `source`.

    Raises LayoutError (an InputError) when the fields contradict each other.
    """

    name: str
    attention: str
    global_layers: int
    window_layers: int
    window: int | None
    query_heads: int
    kv_heads: int | None
    head_dim: int | None
    latent_dim: int | None
    max_context: int
    dtype: str
    verified: bool
    notes: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type in (int, int | None) and getattr(self, field.name) is not None:
                # a NumPy integer becomes a Python int here: products stay exact
                object.__setattr__(self, field.name, self._whole(field.name))
        _check_words(self)
        _check_layers(self)
        _check_heads(self)

    def _whole(self, field: str) -> int:
        minimum = 0 if field in ("global_layers", "window_layers") else 1
        value = getattr(self, field)
        try:
            return whole_number(field, value, minimum)
        except InputError:
            expected = f"a whole number of at least {minimum}"
            raise LayoutError(str(self.name), field, expected, repr(value)) from None

    @property
    def layers(self) -> int:
        """All layers, global and window."""
        return self.global_layers + self.window_layers

    @property
    def scalars_per_position(self) -> int:
        """Scalars that one layer caches for one position: 2 h_kv d_h, or the latent alone."""
        if self.latent_dim is not None:
            return self.latent_dim
        return 2 * (self.kv_heads or 0) * (self.head_dim or 0)

    @property
    def label(self) -> str:
        """The name, marked when the numbers are not verified."""
        return self.name if self.verified else f"{self.name} (not verified)"


def dense_layout(
    name: str, *, layers: int, heads: int, head_dim: int, context: int, dtype: str, source: str = ""
) -> AttentionLayout:
    """Return the layout of a plain multi-head model, such as the frozen checkpoint.

    Its sizes are read from a checkpoint at hand, so it counts as verified.
    """
    return AttentionLayout(
        name=name,
        attention="mha",
        global_layers=layers,
        window_layers=0,
        window=None,
        query_heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        latent_dim=None,
        max_context=context,
        dtype=dtype,
        verified=True,
        source=source,
    )


def _require(layout: AttentionLayout, holds: bool, field: str, expected: str) -> None:
    if not holds:
        value = getattr(layout, field)
        found = "nothing" if value is None or value == "" else repr(value)
        raise LayoutError(str(layout.name), field, expected, found)


def _check_words(layout: AttentionLayout) -> None:
    kinds = ", ".join(ATTENTION_KINDS)
    name: object = layout.name  # field types are not enforced at run time
    named = isinstance(name, str) and name == name.strip() != ""
    _require(layout, named, "name", "a name without outer spaces")
    known = layout.attention in ATTENTION_KINDS
    _require(layout, known, "attention", f"one of {kinds}")
    _require(layout, isinstance(layout.verified, bool), "verified", "True or False")
    try:
        dtype_bytes(layout.dtype)
    except InputError as error:
        expected = str(error).partition("expected ")[2].rpartition(", found")[0]
        raise LayoutError(layout.name, "dtype", expected, repr(layout.dtype)) from None


def _check_layers(layout: AttentionLayout) -> None:
    _require(layout, layout.layers >= 1, "global_layers", "at least 1 layer in all")
    if layout.attention == "sliding":
        _require(layout, layout.window_layers >= 1, "window_layers", "at least 1 for sliding")
        _require(layout, layout.window is not None, "window", "a window for the window layers")
    else:
        no_window_layers = layout.window_layers == 0
        _require(layout, no_window_layers, "window_layers", f"0 for {layout.attention}")
        _require(layout, layout.window is None, "window", f"nothing for {layout.attention}")


def _check_heads(layout: AttentionLayout) -> None:
    if layout.attention == "mla":
        _require(layout, layout.latent_dim is not None, "latent_dim", "a latent width for mla")
        _require(layout, layout.kv_heads is None, "kv_heads", "nothing for mla")
        _require(layout, layout.head_dim is None, "head_dim", "nothing for mla")
        return
    kind, queries, keys = layout.attention, layout.query_heads, layout.kv_heads
    _require(layout, layout.latent_dim is None, "latent_dim", f"nothing for {kind}")
    _require(layout, layout.head_dim is not None, "head_dim", f"a head width for {kind}")
    _require(layout, keys is not None, "kv_heads", f"a head count for {kind}")
    divides = keys is not None and queries % keys == 0
    _require(layout, divides, "kv_heads", f"a divisor of the {queries} query heads")
    if kind == "mha":
        _require(layout, keys == queries, "kv_heads", f"{queries}, as many as query heads, for mha")
    if kind == "mqa":
        _require(layout, keys == 1, "kv_heads", "1 for mqa")
