"""A decode step as a walk: its stages in the order of computation, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One stage of the walk.

    Attributes:
        key: short label of its button.
        fields: tensors in the order shown: what goes in, then what comes out. ``stream`` stands
            for what enters the layer (or the final norm).
        title: what happens.
        look_for: what to look for in its numbers.
    """

    key: str
    fields: tuple[str, ...]
    title: str
    look_for: str

    @property
    def result(self) -> str:
        """The tensor that the stage makes."""
        return self.fields[-1]


OUTSIDE_BEFORE = (
    Stage(
        "embed",
        ("token_embedding", "position_embedding", "embedding"),
        "token row + position row",
        "one new row: the token's own numbers plus those of its position.",
    ),
)
IN_LAYER = (
    Stage(
        "norm",
        ("stream", "ln_1"),
        "layer norm before attention",
        "numbers of any size going in, numbers of about the same size coming out.",
    ),
    Stage(
        "q k v",
        ("ln_1", "q", "k", "v"),
        "one row becomes query, key and value, head by head",
        "one query, one key and one value per head for each position that is new in this step.",
    ),
    Stage(
        "append",
        ("k", "v", "keys", "values"),
        "the new key and value join the cache",
        "the framed rows: they are k and v of this step. The rows above come from earlier steps.",
    ),
    Stage(
        "scores",
        ("q", "keys", "scores"),
        "the query against every key it may see",
        "one score for each cached position, in one row per query.",
    ),
    Stage(
        "weights",
        ("scores", "attention"),
        "scores become shares that add up to 1",
        "the largest score takes the largest share; −∞ takes none.",
    ),
    Stage(
        "mix",
        ("attention", "values", "mix"),
        "values, weighted by attention",
        "a mix close to the value of the position with the largest weight.",
    ),
    Stage(
        "+ attn",
        ("mix", "attn_output", "stream", "residual_mid"),
        "all heads through one matrix, added to the stream",
        "the residual stream: what came in plus what attention found.",
    ),
    Stage(
        "norm 2",
        ("residual_mid", "ln_2"),
        "layer norm before the MLP",
        "the same kind of norm as before attention, with weights of its own.",
    ),
    Stage(
        "MLP",
        ("ln_2", "mlp_hidden", "mlp_activation", "mlp_output"),
        "widen, bend, narrow",
        "negative hidden numbers: GELU takes them towards 0, those below −3 almost all the way.",
    ),
    Stage(
        "+ MLP",
        ("residual_mid", "mlp_output", "residual"),
        "the MLP's row added to the stream",
        "the row that leaves the layer: the next layer, or the final norm, begins with it.",
    ),
)
OUTSIDE_AFTER = (
    Stage(
        "norm f",
        ("stream", "ln_f"),
        "layer norm before the output head",
        "the last row that has the width of the stream.",
    ),
    Stage(
        "logits",
        ("ln_f", "logits"),
        "one number for each token of the vocabulary",
        "the largest logit of the last row: greedy selects that token.",
    ),
)
STAGES: tuple[Stage, ...] = (*OUTSIDE_BEFORE, *IN_LAYER, *OUTSIDE_AFTER)


def stage_of(tensor: str) -> Stage:
    """Return the stage that makes a tensor.

    Raises:
        KeyError: no stage makes it.
    """
    field = tensor.rsplit(".", 1)[-1]
    for stage in STAGES:
        if stage.result == field:
            return stage
    for stage in STAGES:  # k is made beside v, the hidden row on the way to the MLP's output
        if field in stage.fields[1:]:
            return stage
    return {"token_embedding": STAGES[0]}[field]


def tensor_of(stage: Stage, layer: int, n_layer: int, field: str | None = None) -> str:
    """Return the name of a stage's tensor in a layer: its result, unless a field is given."""
    name = stage.result if field is None else field
    if name == "stream":
        outer = n_layer if stage in OUTSIDE_AFTER else layer
        return f"h.{outer - 1}.residual" if outer else "embedding"
    if stage in IN_LAYER:
        return f"h.{layer}.{name}"
    return name


def walk(n_layer: int) -> tuple[tuple[int, Stage], ...]:
    """Return every (layer, stage) in the order of computation; layer 0 stands for outside, too."""
    inner = ((layer, stage) for layer in range(n_layer) for stage in IN_LAYER)
    last = n_layer - 1
    return (
        *((0, stage) for stage in OUTSIDE_BEFORE),
        *inner,
        *((last, stage) for stage in OUTSIDE_AFTER),
    )
