"""Tables of a decode step and of explanations, against the core and through the CSV writer."""

from __future__ import annotations

import pytest

from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.evidence.step_tables import (
    EXPLANATION,
    STEP_VALUES,
    explanation,
    openable,
    operands,
    step_values,
)
from tinydec.generation.generate import generate
from tinydec.model.activations import tensor_names
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import RunSpec
from tinydec.verification.explain import Element, Explanation, Recording, explain

FROZEN = load_checkpoint(FROZEN_PATH)
TRACE = generate(FROZEN, RunSpec(prompt=("<bos>", "A")), keep_activations=True)
RECORDING = Recording.of_trace(FROZEN, TRACE)
TOKENS = tuple(FROZEN.vocabulary.tokens[i] for i in TRACE.consumed_ids)


def node(tensor: str, position: int = 2, index: int = 0, head: int = 0) -> Explanation:
    step = RECORDING.step_of(tensor, position)
    return explain(RECORDING, Element(step, tensor, position, index, head))


def test_step_table_holds_every_number_of_the_step_once() -> None:
    table = step_values(RECORDING, 1, TOKENS)
    sizes = [RECORDING.array(1, tensor).size for tensor in tensor_names(2)]
    assert len(table) == sum(sizes)
    assert tuple(dict.fromkeys(table["tensor"])) == tensor_names(2)
    for _, tensor, head, position, token, index, value in table.to_numpy().tolist():
        assert RECORDING.value(Element(1, tensor, position, index, head or 0)) == value
        assert token == TOKENS[position]
    assert not table.duplicated(["tensor", "head", "position", "index"]).any()


def test_step_table_can_be_cut_and_limited_to_some_tensors() -> None:
    table = step_values(RECORDING, 0, TOKENS, ("h.1.q", "ln_f"))
    assert set(table["tensor"]) == {"h.1.q", "ln_f"}
    assert len(step_values(RECORDING, 0, TOKENS, (), 7)) == 7


def test_tables_come_back_from_their_csv() -> None:
    # position_embedding has no head, -inf stands among the scores of the prefill
    values = step_values(RECORDING, 0, TOKENS)
    assert read_csv(write_csv(values, STEP_VALUES), STEP_VALUES).equals(values)
    chain = explanation([node("logits"), node("ln_f"), node("token_embedding")], TOKENS)
    assert read_csv(write_csv(chain, EXPLANATION), EXPLANATION).equals(chain)
    assert set(chain["level"]) == {0, 1, 2}
    assert chain["agrees"].all()
    assert "input B" in set(chain["source"])


def test_operands_of_a_product_sum_stand_in_pairs() -> None:
    table = operands(node("logits", index=5), TOKENS, 8)
    assert list(table.columns) == ["operand", "value", "times", "its value", "product"]
    assert list(table["times"]) == [f"wte.weight[5, {i}]" for i in range(4)]
    assert list(table["value"] * table["its value"]) == pytest.approx(list(table["product"]))
    assert sum(table["product"]) == pytest.approx(node("logits", index=5).recomputed)


def test_long_sums_end_in_the_rest() -> None:
    whole = node("h.0.mlp_output")
    table = operands(whole, TOKENS, 3)  # 8 products and a bias
    assert list(table["operand"])[-1] == "6 more, together"
    assert sum(table["product"]) == pytest.approx(whole.recomputed)
    smallest = min(abs(v) for v in list(table["product"])[:-1])
    left_out = sorted((abs(t.value) for t in whole.terms), reverse=True)[3:]
    assert all(value <= smallest for value in left_out)
    assert len(openable(whole, 3)) <= 3
    assert len(openable(whole, 99)) == 8  # the bias is a weight


def test_operands_beside_the_sum_follow_it() -> None:
    table = operands(node("ln_f", index=1), TOKENS, 8)
    assert list(table["operand"])[4:] == ["ln_f.weight[1]", "ln_f.bias[1]", "ε"]
    assert list(table["(x − mean)²/d"])[4:] == [None, None, None]
    scores = operands(node("h.0.scores"), TOKENS, 8)
    assert list(scores["operand"])[-1] == "d_h"


def test_operands_of_what_is_no_sum_say_where_they_come_from() -> None:
    table = operands(node("token_embedding"), TOKENS, 8)
    assert list(table["from"]) == ["input B", "weight"]
    assert openable(node("token_embedding"), 8) == ()
    assert [e.tensor for e in openable(node("h.1.keys"), 8)] == ["h.1.k"]
