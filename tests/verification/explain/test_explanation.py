"""Explanations of every element: the arithmetic agrees, and it ends at what the run was given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explained import FROZEN, disagreeing, frozen_run
from tests.random_models import random_checkpoint
from tests.rows import run_cached
from tests.strategies import checkpoints, prompts, splits
from tinydec.model.activations import HEAD_TENSORS, tensor_names
from tinydec.model.checkpoint import DTYPES
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
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

#: Unequal prime sizes, biases, an untied head, exact GELU, two layers.
WIDE = ModelConfig(13, 11, 15, 2, 3, 23, 1e-3, "gelu", True, False)
#: What a checkpoint of the architecture holds, whatever the biases and the head.
KINDS = [(bias, tied, act) for bias in (0, 1) for tied in (0, 1) for act in ("gelu_new", "gelu")]


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


def test_explanation_reads_the_checkpoint_that_ran() -> None:
    recording = frozen_run("float16")
    node = explain(recording, Element(0, "logits", 1, 3))
    weight = FROZEN.tensors["wte.weight"][3, 0]
    assert node.operands[1].value == float(np.float16(weight)) != float(weight)
