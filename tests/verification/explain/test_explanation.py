"""Explanations of every element: the arithmetic agrees, and it ends at what the run was given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.rows import run_cached
from tests.strategies import checkpoints, prompts, splits
from tinydec.errors import InputError
from tinydec.generation.generate import generate
from tinydec.model.activations import HEAD_TENSORS, tensor_names
from tinydec.model.checkpoint import DTYPES
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.model.seams import ReferenceSeams
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.explain import (
    Constant,
    Element,
    Explanation,
    Recording,
    TokenId,
    WeightElement,
    descend,
    explain,
)

FROZEN = load_checkpoint(FROZEN_PATH)
#: Unequal prime sizes, biases, an untied head, exact GELU, two layers.
WIDE = ModelConfig(13, 11, 15, 2, 3, 23, 1e-3, "gelu", True, False)
#: What a checkpoint of the architecture holds, whatever the biases and the head.
KINDS = [(bias, tied, act) for bias in (0, 1) for tied in (0, 1) for act in ("gelu_new", "gelu")]


def elements(recording: Recording, step: int) -> Iterator[Element]:
    """Every element of every named tensor of a step."""
    for tensor in tensor_names(recording.checkpoint.config.n_layer):
        array = recording.array(step, tensor)
        heads = array.shape[1] if tensor.rsplit(".", 1)[-1] in HEAD_TENSORS else 1
        for sequence in range(len(array)):
            for head in range(heads):
                for position in recording.positions(step, tensor):
                    for index in range(array.shape[-1]):
                        yield Element(step, tensor, position, index, head, sequence)


def frozen_run(dtype: str = "float32", cache: bool = True, prompt: str = "<bos> A") -> Recording:
    spec = RunSpec(prompt=tuple(prompt.split()), dtype=dtype, cache=cache)
    trace = generate(FROZEN, spec, keep_activations=True)
    return Recording.of_trace(FROZEN.cast(dtype), trace)


def disagreeing(recording: Recording, step: int) -> list[str]:
    return [
        f"{node.name}: {node.difference} > {node.bound}"
        for node in (explain(recording, e) for e in elements(recording, step))
        if not node.agrees
    ]


# Every element agrees ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("prompt", ["<bos>", "<bos> A", "<bos> A A A"])
def test_every_element_of_a_run_of_the_frozen_decoder_agrees(
    dtype: str, cache: bool, prompt: str
) -> None:
    recording = frozen_run(dtype, cache, prompt)
    for step in range(len(recording.steps)):
        assert disagreeing(recording, step) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("bias", "tied", "activation"), KINDS)
def test_every_element_agrees_for_every_kind_of_checkpoint(
    dtype: str, bias: int, tied: int, activation: str
) -> None:
    config = replace(
        WIDE,
        attention_bias=bool(bias),
        tie_word_embeddings=bool(tied),
        activation_function=activation,
    )
    checkpoint = random_checkpoint(config, 5, dtype)
    ids = [[3, 1, 4]]
    recording = Recording.of(checkpoint, ids, [full_forward(checkpoint, ids)])
    assert disagreeing(recording, 0) == []


@settings(max_examples=40)
@given(st.data())
def test_any_element_of_any_run_agrees_and_descends_to_what_was_given(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    checkpoint = data.draw(checkpoints(dtype, max_layers=2))
    ids = data.draw(prompts(checkpoint.config, batch=data.draw(st.integers(1, 2))))
    if data.draw(st.booleans()):
        _, steps = run_cached(checkpoint, ids, data.draw(splits(len(ids[0]))))
    else:
        steps = [full_forward(checkpoint, ids)]
    recording = Recording.of(checkpoint, ids, steps)
    tensor = data.draw(st.sampled_from(tensor_names(checkpoint.config.n_layer)))
    position = data.draw(st.integers(0, recording.length - 1))
    step = recording.step_of(tensor, position)
    array = recording.array(step, tensor)
    has_heads = tensor.rsplit(".", 1)[-1] in HEAD_TENSORS
    element = Element(
        step,
        tensor,
        position,
        data.draw(st.integers(0, array.shape[-1] - 1)),
        data.draw(st.integers(0, array.shape[1] - 1)) if has_heads else 0,
        data.draw(st.integers(0, len(array) - 1)),
    )
    leaves: set[type] = set()

    def visit(node: Explanation) -> None:
        assert node.agrees, (node.name, node.difference, node.bound)
        assert node.operands
        for operand in node.operands:
            if not isinstance(operand.source, Element):
                leaves.add(type(operand.source))
        if not node.children():
            found = {type(operand.source) for operand in node.operands}
            assert found <= {WeightElement, TokenId, Constant}

    descend(recording, element, visit)
    assert leaves


def test_descent_from_a_logit_reaches_both_tables_through_both_layers() -> None:
    recording = frozen_run()
    visited: list[Element] = []
    count = descend(
        recording, Element(2, "logits", 3, 5), lambda node: visited.append(node.element)
    )
    assert count == len(visited) == len(set(visited))
    names = {element.name for element in visited}
    # The last token sees all four positions: each one's key comes from the step that computed it.
    for position in range(4):
        assert f"token_embedding[{position}, 0]" in names
        assert f"h.0.k[1, {position}, 1]" in names
        assert f"h.1.k[1, {position}, 1]" in names
    # Nothing else of earlier positions' logits, nor of the other tokens' is needed.
    assert {name for name in names if name.startswith("logits")} == {"logits[3, 5]"}


def test_key_of_an_earlier_step_is_explained_where_it_was_computed() -> None:
    recording = frozen_run()  # prefill of two, then two decode steps
    [k] = explain(recording, Element(2, "h.1.keys", 1, 0, head=1)).children()
    assert k == Element(0, "h.1.k", 1, 0, head=1)
    [k] = explain(recording, Element(2, "h.1.keys", 3, 0, head=1)).children()
    assert k.step == 2
    full = frozen_run(cache=False)  # without a cache everything is computed again
    [k] = explain(full, Element(2, "h.1.keys", 1, 0, head=1)).children()
    assert k.step == 2


# By hand -----------------------------------------------------------------------------------------


def test_logit_is_the_hand_computed_sum_over_the_tied_table() -> None:
    recording = frozen_run("float64")
    node = explain(recording, Element(1, "logits", 2, 5))
    row, table = recording.steps[1].ln_f[0], FROZEN.tensors["wte.weight"][5]
    by_hand = sum(float(row[i]) * float(table[i]) for i in range(4))
    assert node.recomputed == pytest.approx(by_hand, abs=1e-15)
    assert [o.name for o in node.operands[:4]] == [
        "ln_f[2, 0]", "wte.weight[5, 0]", "ln_f[2, 1]", "wte.weight[5, 1]",
    ]  # fmt: skip
    assert [t.value for t in node.terms] == [float(row[i]) * float(table[i]) for i in range(4)]


def test_norm_is_the_hand_computed_one() -> None:
    recording = frozen_run("float64")
    node = explain(recording, Element(0, "ln_f", 1, 2))
    x = [float(v) for v in recording.steps[0].blocks[1].residual[1]]
    mean = (x[0] + x[1] + x[2] + x[3]) / 4
    variance = sum((v - mean) ** 2 for v in x) / 4
    weight, bias = (float(FROZEN.tensors[f"ln_f.{n}"][2]) for n in ("weight", "bias"))
    by_hand = (x[2] - mean) / math.sqrt(variance + 1e-5) * weight + bias
    assert node.recomputed == pytest.approx(by_hand, abs=1e-13)
    found = {part.name: part.value for part in node.parts}
    assert found["mean"] == pytest.approx(mean, abs=1e-15)
    assert found["variance"] == pytest.approx(variance, abs=1e-15)
    assert sum(t.value for t in node.terms) == pytest.approx(variance, abs=1e-15)


def test_projection_reads_the_column_of_its_part_head_and_component() -> None:
    checkpoint = random_checkpoint(WIDE, 3)
    recording = Recording.of(checkpoint, [[1, 2]], [full_forward(checkpoint, [[1, 2]])])
    node = explain(recording, Element(0, "h.1.v", 1, 4, head=2))
    # v stands behind q and k (2 x 15 columns); head 2 of width 5 begins at column 10.
    assert node.operands[1].name == "h.1.attn.c_attn.weight[0, 44]"
    assert node.operands[-1].name == "h.1.attn.c_attn.bias[44]"
    assert "bias" in node.formula.text
    assert node.operands[-1].value == float(checkpoint.tensors["h.1.attn.c_attn.bias"][44])


def test_attention_weight_of_two_equal_scores_is_a_half() -> None:
    tensors = {n: np.array(a) for n, a in FROZEN.tensors.items()}
    tensors["h.0.attn.c_attn.weight"][:, :4] = 0  # every query is 0, every score 0
    checkpoint = FROZEN.with_tensors(tensors)
    recording = Recording.of(checkpoint, [0, 2], [full_forward(checkpoint, [0, 2])])
    seen = explain(recording, Element(0, "h.0.attention", 1, 0))
    ahead = explain(recording, Element(0, "h.0.attention", 0, 1))
    hidden = explain(recording, Element(0, "h.0.scores", 0, 1))
    assert (seen.value, seen.recomputed, seen.difference) == (0.5, 0.5, 0.0)
    assert (ahead.value, ahead.recomputed) == (0.0, 0.0)
    assert (hidden.value, hidden.recomputed, hidden.difference) == (-math.inf, -math.inf, 0.0)
    assert [o.value for o in hidden.operands] == [0.0, 1.0]


def test_untied_head_and_exact_gelu_are_named() -> None:
    checkpoint = random_checkpoint(WIDE, 3)
    recording = Recording.of(checkpoint, [1], [full_forward(checkpoint, [1])])
    logit = explain(recording, Element(0, "logits", 0, 12))
    assert logit.operands[-1].name == "lm_head.weight[12, 14]"
    gelu = explain(recording, Element(0, "h.0.mlp_activation", 0, 1))
    x = gelu.operands[0].value
    assert gelu.recomputed == pytest.approx(x / 2 * (1 + math.erf(x / math.sqrt(2))), abs=1e-15)
    assert "erf" in gelu.formula.latex


# What is wrong is flagged ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_perturbed_value_is_flagged_just_beyond_the_bound(dtype: str) -> None:
    recording = frozen_run(dtype)
    for element in elements(recording, 2):
        node = explain(recording, element)
        if not math.isfinite(node.value):
            continue
        inside = replace(node, value=node.recomputed + 0.5 * node.bound)
        outside = replace(node, value=node.recomputed + 1.01 * node.bound + 1e-12)
        assert inside.agrees
        assert not outside.agrees


@pytest.mark.parametrize("cache", [True, False])
def test_perturbed_operand_is_flagged(cache: bool) -> None:
    recording = frozen_run("float64", cache)
    for element in elements(recording, 1):
        node = explain(recording, element)
        for place, operand in enumerate(node.operands):
            changed = replace(operand, value=operand.value + 0.01)
            operands = (*node.operands[:place], changed, *node.operands[place + 1 :])
            found = replace(node, operands=operands)
            if acts(node, place):
                assert not found.agrees, (node.name, operand.name)


def acts(node: Explanation, place: int) -> bool:
    """Whether a change of this operand by 0.01 must show in the result."""
    kind = type(node.operation).__name__
    if kind == "Hidden":  # stays ahead
        return False
    if kind == "Softmax":
        seen = [o for o in node.operands if o.value > -math.inf]
        return len(seen) > 1 and node.value > 0 and node.operands[place] in seen
    if kind == "Dot" and place < len(node.terms) * 2:
        partner = place ^ 1
        return partner >= len(node.operands) or abs(node.operands[partner].value) > 1e-9
    if kind == "ScaledDot" and place < len(node.operands) - 1:
        return abs(node.operands[place ^ 1].value) > 1e-9
    return not (kind == "ScaledDot" and node.value == 0)


def test_run_with_a_fault_is_flagged() -> None:
    ids = [[0, 2, 3]]
    blind = ReferenceSeams(future=np.zeros_like)
    broken = full_forward(FROZEN, ids, seams=blind)
    recording = Recording.of(FROZEN, ids, [broken])
    wrong = {line.split(":")[0] for line in disagreeing(recording, 0)}
    # Only the scores ahead of their query are not what the rule says.
    assert wrong == {
        f"h.{layer}.scores[{head}, {query}, {key}]"
        for layer in range(2)
        for head in range(2)
        for query in range(3)
        for key in range(query + 1, 3)
    }


def test_weights_of_another_checkpoint_are_flagged() -> None:
    tensors = {n: np.array(a) for n, a in FROZEN.tensors.items()}
    tensors["wte.weight"][5, 1] += 1e-3
    other = FROZEN.with_tensors(tensors)
    recording = Recording.of(other, [0, 2], [full_forward(FROZEN, [0, 2])])
    assert not explain(recording, Element(0, "logits", 1, 5)).agrees
    assert explain(recording, Element(0, "logits", 1, 4)).agrees


# Numbers without a bound -------------------------------------------------------------------------


def test_overflow_in_float16_has_no_bound_and_breaks_nothing() -> None:
    tensors = {n: a * (300 if n == "h.0.mlp.c_fc.weight" else 1) for n, a in FROZEN.tensors.items()}
    tensors["h.0.ln_2.weight"] = tensors["h.0.ln_2.weight"] * 300
    checkpoint = FROZEN.with_tensors({n: a.astype("float16") for n, a in tensors.items()})
    with np.errstate(all="ignore"):
        step = full_forward(checkpoint, [0, 2])
    assert not np.isfinite(step.logits).all()
    recording = Recording.of(checkpoint, [0, 2], [step])
    nodes = [explain(recording, e) for e in elements(recording, 0)]
    assert all(node.agrees for node in nodes)
    assert any(node.bound == math.inf for node in nodes)
    assert any(node.bound < 1 for node in nodes)


def names_of_missing() -> list[tuple[Element, str]]:
    good = Element(1, "h.0.q", 2, 1, head=1)
    return [
        (replace(good, step=9), "a step from 0 to 2, found 9"),
        (replace(good, step=-1), "a step from 0 to 2, found -1"),
        (replace(good, tensor="h.2.q"), "found 'h.2.q'"),
        (replace(good, tensor="wte.weight"), "found 'wte.weight'"),
        (replace(good, position=1), "position from 2 to 2, found 1"),
        (replace(good, index=2), "index from 0 to 1, found 2"),
        (replace(good, index=-1), "index from 0 to 1, found -1"),
        (replace(good, head=2), "head from 0 to 1, found 2"),
        (replace(good, tensor="logits"), "head from 0 to 0, found 1"),
        (replace(good, sequence=1), "sequence from 0 to 0, found 1"),
    ]


@pytest.mark.parametrize(("element", "line"), names_of_missing())
def test_element_that_does_not_exist_is_refused(element: Element, line: str) -> None:
    with pytest.raises(InputError) as caught:
        explain(frozen_run(), element)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_explanation_reads_the_checkpoint_that_ran() -> None:
    recording = frozen_run("float16")
    node = explain(recording, Element(0, "logits", 1, 3))
    weight = FROZEN.tensors["wte.weight"][3, 0]
    assert node.operands[1].value == float(np.float16(weight)) != float(weight)
