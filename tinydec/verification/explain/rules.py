"""How each named tensor is made: the operation, its operands with their sources, the formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from tinydec.model.checkpoint import Checkpoint
from tinydec.verification.explain.elements import (
    Constant,
    Element,
    Operand,
    TokenId,
    WeightElement,
)
from tinydec.verification.explain.formulas import Formula, formula
from tinydec.verification.explain.operations import (
    Add,
    Copy,
    Dot,
    GeluExact,
    GeluTanh,
    Hidden,
    Lookup,
    Norm,
    Operation,
    ScaledDot,
    Softmax,
)
from tinydec.verification.explain.recording import Recording

#: Where q, k and v stand in the columns of ``c_attn``.
_PARTS = {"q": 0, "k": 1, "v": 2}


class Rule(NamedTuple):
    """What made an element."""

    operation: Operation
    operands: tuple[Operand, ...]
    formula: Formula


def rule(recording: Recording, element: Element) -> Rule:
    """Return the arithmetic behind an element.

    Raises:
        InputError: the element does not exist.
    """
    recording.value(element)  # refuses what does not exist
    return _RULES[element.field](recording, element)


# Operands ----------------------------------------------------------------------------------------


def _read(recording: Recording, element: Element) -> Operand:
    return Operand(recording.value(element), element)


def _weight(checkpoint: Checkpoint, tensor: str, *index: int) -> Operand:
    return Operand(float(checkpoint.tensors[tensor][index]), WeightElement(tensor, index))


def _beside(element: Element, field: str) -> str:
    """Return the name of another tensor of the element's layer."""
    return f"h.{element.layer}.{field}"


def _stream(recording: Recording, element: Element) -> str:
    """Return the tensor that enters the element's layer (or the final norm)."""
    layer = recording.checkpoint.config.n_layer if element.layer is None else element.layer
    return f"h.{layer - 1}.residual" if layer else "embedding"


def _row(recording: Recording, element: Element, tensor: str, width: int) -> list[Operand]:
    """Return the row of ``tensor`` at the element's position."""
    at = replace(element, tensor=tensor, head=0)
    return [_read(recording, replace(at, index=i)) for i in range(width)]


def _interleaved(pairs: Iterable[tuple[Operand, Operand]]) -> tuple[Operand, ...]:
    return tuple(operand for pair in pairs for operand in pair)


# Embeddings --------------------------------------------------------------------------------------


def _token_embedding(recording: Recording, element: Element) -> Rule:
    row = recording.token_ids[element.sequence][element.position]
    token = Operand(float(row), TokenId(element.position, element.sequence))
    value = _weight(recording.checkpoint, "wte.weight", row, element.index)
    return Rule(Lookup(row), (token, value), formula("token_embedding"))


def _position_embedding(recording: Recording, element: Element) -> Rule:
    step = recording.steps[element.step]
    row = step.positions[element.position - recording.starts[element.step]]
    position = Operand(float(row), Constant("position"))
    value = _weight(recording.checkpoint, "wpe.weight", row, element.index)
    return Rule(Lookup(row), (position, value), formula("position_embedding"))


def _embedding(recording: Recording, element: Element) -> Rule:
    token = replace(element, tensor="token_embedding")
    position = replace(element, tensor="position_embedding", sequence=0)
    operands = (_read(recording, token), _read(recording, position))
    return Rule(Add(), operands, formula("embedding"))


# Layers ------------------------------------------------------------------------------------------


def _norm(recording: Recording, element: Element) -> Rule:
    checkpoint, width = recording.checkpoint, recording.checkpoint.config.n_embd
    source = (
        _beside(element, "residual_mid") if element.field == "ln_2" else _stream(recording, element)
    )
    norm = element.tensor
    epsilon = float(checkpoint.weights.ln_f.epsilon.flat[0])  # as the dtype rounds it
    operands = (
        *_row(recording, element, source, width),
        _weight(checkpoint, f"{norm}.weight", element.index),
        _weight(checkpoint, f"{norm}.bias", element.index),
        Operand(epsilon, Constant("ε")),
    )
    return Rule(Norm(width, element.index), operands, formula(element.field))


def _linear(
    recording: Recording, element: Element, row: list[Operand], tensor: str, column: int
) -> Rule:
    """Return a row times a column of ``tensor`` (without ``.weight``), plus its bias if any."""
    checkpoint = recording.checkpoint
    pairs = ((x, _weight(checkpoint, f"{tensor}.weight", i, column)) for i, x in enumerate(row))
    operands = _interleaved(pairs)
    biased = f"{tensor}.bias" in checkpoint.tensors
    if biased:
        operands += (_weight(checkpoint, f"{tensor}.bias", column),)
    return Rule(Dot(len(row), biased), operands, formula(element.field, bias=biased))


def _projection(recording: Recording, element: Element) -> Rule:
    config = recording.checkpoint.config
    row = _row(recording, element, _beside(element, "ln_1"), config.n_embd)
    part = _PARTS[element.field] * config.n_embd
    column = part + element.head * config.d_h + element.index
    return _linear(recording, element, row, _beside(element, "attn.c_attn"), column)


def _cached(recording: Recording, element: Element) -> Rule:
    """Return the copy of a new key or value into its slot, perhaps in an earlier step."""
    tensor = _beside(element, element.field.removesuffix("eys").removesuffix("alues"))
    step = recording.step_of(tensor, element.position, element.step)
    source = replace(element, tensor=tensor, step=step)
    return Rule(Copy(), (_read(recording, source),), formula(element.field))


def _scores(recording: Recording, element: Element) -> Rule:
    d_h = recording.checkpoint.config.d_h
    if recording.is_hidden(element):
        query = Operand(float(element.position), Constant("position of the query"))
        key = Operand(float(element.index), Constant("position of the key"))
        return Rule(Hidden(), (query, key), formula("hidden"))
    q = replace(element, tensor=_beside(element, "q"))
    k = replace(element, tensor=_beside(element, "keys"), position=element.index)
    pairs = (
        (_read(recording, replace(q, index=i)), _read(recording, replace(k, index=i)))
        for i in range(d_h)
    )
    operands = (*_interleaved(pairs), Operand(float(d_h), Constant("d_h")))
    return Rule(ScaledDot(d_h), operands, formula("scores"))


def _attention(recording: Recording, element: Element) -> Rule:
    scores = replace(element, tensor=_beside(element, "scores"))
    count = recording.array(element.step, scores.tensor).shape[-1]
    operands = tuple(_read(recording, replace(scores, index=i)) for i in range(count))
    return Rule(Softmax(element.index), operands, formula("attention"))


def _mix(recording: Recording, element: Element) -> Rule:
    attention = replace(element, tensor=_beside(element, "attention"))
    values = replace(element, tensor=_beside(element, "values"))
    count = recording.array(element.step, attention.tensor).shape[-1]
    pairs = (
        (
            _read(recording, replace(attention, index=slot)),
            _read(recording, replace(values, position=slot)),
        )
        for slot in range(count)
    )
    return Rule(Dot(count), _interleaved(pairs), formula("mix"))


def _attn_output(recording: Recording, element: Element) -> Rule:
    config = recording.checkpoint.config
    mix = replace(element, tensor=_beside(element, "mix"))
    row = [
        _read(recording, replace(mix, head=head, index=i))
        for head in range(config.n_head)
        for i in range(config.d_h)
    ]
    return _linear(recording, element, row, _beside(element, "attn.c_proj"), element.index)


def _residual_mid(recording: Recording, element: Element) -> Rule:
    before = replace(element, tensor=_stream(recording, element))
    output = replace(element, tensor=_beside(element, "attn_output"))
    operands = (_read(recording, before), _read(recording, output))
    return Rule(Add(), operands, formula("residual_mid"))


def _mlp_hidden(recording: Recording, element: Element) -> Rule:
    width = recording.checkpoint.config.n_embd
    row = _row(recording, element, _beside(element, "ln_2"), width)
    return _linear(recording, element, row, _beside(element, "mlp.c_fc"), element.index)


def _mlp_activation(recording: Recording, element: Element) -> Rule:
    exact = recording.checkpoint.config.activation_function == "gelu"
    hidden = _read(recording, replace(element, tensor=_beside(element, "mlp_hidden")))
    operation: Operation = GeluExact() if exact else GeluTanh()
    return Rule(operation, (hidden,), formula("gelu" if exact else "gelu_new"))


def _mlp_output(recording: Recording, element: Element) -> Rule:
    width = recording.checkpoint.config.n_inner
    row = _row(recording, element, _beside(element, "mlp_activation"), width)
    return _linear(recording, element, row, _beside(element, "mlp.c_proj"), element.index)


def _residual(recording: Recording, element: Element) -> Rule:
    middle = replace(element, tensor=_beside(element, "residual_mid"))
    output = replace(element, tensor=_beside(element, "mlp_output"))
    operands = (_read(recording, middle), _read(recording, output))
    return Rule(Add(), operands, formula("residual"))


def _logits(recording: Recording, element: Element) -> Rule:
    checkpoint = recording.checkpoint
    tied = checkpoint.config.tie_word_embeddings
    head = "wte.weight" if tied else "lm_head.weight"
    row = _row(recording, element, "ln_f", checkpoint.config.n_embd)
    pairs = ((x, _weight(checkpoint, head, element.index, i)) for i, x in enumerate(row))
    name = "logits" if tied else "logits_untied"
    return Rule(Dot(len(row)), _interleaved(pairs), formula(name))


_RULES: dict[str, Callable[[Recording, Element], Rule]] = {
    "token_embedding": _token_embedding,
    "position_embedding": _position_embedding,
    "embedding": _embedding,
    "ln_1": _norm,
    "q": _projection,
    "k": _projection,
    "v": _projection,
    "keys": _cached,
    "values": _cached,
    "scores": _scores,
    "attention": _attention,
    "mix": _mix,
    "attn_output": _attn_output,
    "residual_mid": _residual_mid,
    "ln_2": _norm,
    "mlp_hidden": _mlp_hidden,
    "mlp_activation": _mlp_activation,
    "mlp_output": _mlp_output,
    "residual": _residual,
    "ln_f": _norm,
    "logits": _logits,
}
