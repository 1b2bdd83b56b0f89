"""Words: the formula with its numbers, whatever the operation and however long the sum."""

from __future__ import annotations

import re

import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.verification.explain import (
    Constant,
    Element,
    Operand,
    Recording,
    TokenId,
    WeightElement,
    explain,
    filled,
    origin,
)

CONFIG = ModelConfig(13, 11, 15, 2, 3, 23)
CHECKPOINT = random_checkpoint(CONFIG, 7)
IDS = [3, 1, 4]
RECORDING = Recording.of(CHECKPOINT, IDS, [full_forward(CHECKPOINT, IDS)])


def show(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")


def numbers(tensor: str, position: int = 1, index: int = 0, limit: int = 100) -> str:
    return filled(explain(RECORDING, Element(0, tensor, position, index)), show, limit)


def evaluated(text: str) -> float:
    """What Python makes of the text before its last equals sign."""
    sum_ = text.rsplit(" = ", 1)[0]
    for ours, python in (("−", "-"), ("×", "*"), ("√(", "pow0.5("), ("√3", "3**0.5")):
        sum_ = sum_.replace(ours, python)
    sum_ = sum_.replace("√5", "5**0.5")
    return float(eval(sum_.replace("pow0.5", "(lambda v: v**0.5)")))


@pytest.mark.parametrize(
    "tensor",
    ["embedding", "h.0.ln_1", "h.1.q", "h.0.scores", "h.1.attention", "h.0.mix", "h.0.attn_output",
     "h.0.residual_mid", "h.1.mlp_hidden", "h.1.mlp_activation", "h.0.residual", "ln_f", "logits"],
)  # fmt: skip
def test_written_arithmetic_gives_the_written_result(tensor: str) -> None:
    text = numbers(tensor)
    value = float(text.rsplit(" = ", 1)[1].replace("−", "-"))
    assert value == pytest.approx(explain(RECORDING, Element(0, tensor, 1, 0)).value, abs=6e-5)
    # Every number is rounded to four decimals: products of them are off by a little.
    assert evaluated(text) == pytest.approx(value, abs=5e-3)
    assert evaluated(text.replace(" + ", " + 1 + ", 1)) != pytest.approx(value, abs=5e-3)


def test_long_sums_give_the_largest_terms_and_the_rest() -> None:
    text = numbers("h.0.mlp_output", limit=3)
    assert text.count("×") + len(re.findall(r"bias", text)) <= 3
    assert "from 21 more" in text  # 23 products and a bias, three of them written out
    assert "more" not in numbers("h.0.mlp_output", limit=24)


def test_what_is_read_copied_or_hidden_says_so() -> None:
    assert numbers("token_embedding", 2, 5).startswith("row 4, column 5: ")
    assert numbers("position_embedding", 2, 5).startswith("row 2, column 5: ")
    assert numbers("h.0.keys").endswith(", unchanged")
    assert numbers("h.0.scores", 1, 2) == "key 2 > query 1: −inf"


def test_origin_names_what_an_operand_is() -> None:
    tokens = ("t3", "t1", "t4")
    assert origin(Operand(4.0, TokenId(2)), tokens) == "input t4"
    assert origin(Operand(4.0, TokenId(2))) == "input"
    assert origin(Operand(4.0, WeightElement("wte.weight", (4, 1)))) == "weight"
    assert origin(Operand(4.0, Constant("ε"))) == "constant"
    assert origin(Operand(4.0, Element(0, "ln_f", 0, 0))) == "computed"


def test_negative_numbers_stand_in_brackets_behind_an_operator() -> None:
    node = explain(RECORDING, Element(0, "logits", 1, 0))
    pairs = list(zip(node.operands[::2], node.operands[1::2], strict=True))
    assert any(b.value < 0 for _, b in pairs)
    expected = " + ".join(f"{bracketed(a.value)} × {bracketed(b.value)}" for a, b in pairs)
    assert numbers("logits") == f"{expected} = {show(node.value)}"


def bracketed(value: float) -> str:
    return f"({show(value)})" if value < 0 else show(value)
