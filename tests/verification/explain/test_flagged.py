"""Numbers that are not what their operands make of them are flagged; none breaks anything."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.explained import FROZEN, disagreeing, elements, frozen_run
from tinydec.errors import InputError
from tinydec.model.checkpoint import DTYPES
from tinydec.model.full import full_forward
from tinydec.model.seams import ReferenceSeams
from tinydec.verification.explain import Element, Explanation, Recording, explain


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
