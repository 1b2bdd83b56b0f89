"""The slow oracle, against Hugging Face's numbers and hand computations."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from tests.golden_files import random_cases, read_golden
from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.activations import tensor_names
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.verification import scalar_loop
from tinydec.verification.scalar_loop import scalar_forward, scalar_logits

CASES = random_cases()
CONFIG = ModelConfig(7, 5, 6, 2, 2, 11)


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_hugging_face(name: str) -> None:
    checkpoint, ids, golden = CASES[name]
    assert np.abs(scalar_logits(checkpoint, ids) - golden).max() < 1e-12 * np.abs(golden).max()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("part", ["_softmax", "_scores", "_norm", "_heads", "_linear", "_add"])
def test_a_broken_part_is_noticed_by_the_golden_logits(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, ids, golden = CASES[name]
    right = getattr(scalar_loop, part)

    def slightly_wrong(*args):  # a number in the last row that it returns, off by 1e-6
        result = right(*args)
        target = result
        while not isinstance(target[0], float):
            target = target[-1]
        target[0] += 1e-6
        return result

    monkeypatch.setattr(scalar_loop, part, slightly_wrong)
    assert np.abs(scalar_logits(checkpoint, ids) - golden).max() > 1e-9


def test_frozen_logits_are_those_of_hugging_face() -> None:
    checkpoint = load_checkpoint()
    for prefix in read_golden("frozen_logits.json")["prefixes"]:
        difference = scalar_logits(checkpoint, prefix["token_ids"]) - np.array(prefix["float64"])
        assert np.abs(difference).max() < 1e-12


def test_one_position_through_empty_blocks_is_the_normed_embedding_times_the_head() -> None:
    # All matrices zero: every block adds nothing, and logits = norm(wte[1] + wpe[0]) . wte[v].
    config = ModelConfig(2, 1, 2, 1, 1, 1, attention_bias=False)
    tensors = {name: np.zeros(shape) for name, shape in config.tensor_shapes().items()}
    tensors["wte.weight"] = np.array([[1.0, 2.0], [3.0, 7.0]])
    tensors["wpe.weight"] = np.array([[0.5, 0.5]])
    tensors["ln_f.weight"] = np.ones(2)
    checkpoint = Checkpoint.build(config, Vocabulary.numbered(2), tensors)
    # (3.5, 7.5): mean 5.5, variance 4, normed (-2, 2) / sqrt(4 + 1e-5).
    unit = 2 / math.sqrt(4 + 1e-5)
    expected = [-unit * 1 + unit * 2, -unit * 3 + unit * 7]
    assert scalar_logits(checkpoint, [1])[0] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(("x", "expected"), [(0.0, 0.0), (1.0, 0.8411919906082768)])
def test_gelu_tanh_by_hand(x: float, expected: float) -> None:
    # 0.5 (1 + tanh(0.7978845608 * 1.044715)) = 0.5 (1 + 0.6823839812)
    assert scalar_loop._gelu_tanh(x) == pytest.approx(expected, abs=1e-15)


def test_gelu_exact_is_x_times_the_normal_distribution() -> None:
    assert scalar_loop._gelu_exact(1.0) == pytest.approx(0.8413447460685429, abs=1e-15)
    assert scalar_loop._gelu_exact(-1.0) == pytest.approx(-0.15865525393145707, abs=1e-15)


def test_intermediates_have_the_names_of_the_forward_passes_in_their_order() -> None:
    trace = scalar_forward(random_checkpoint(CONFIG, 1), [0, 3, 6])
    assert tuple(trace) == tensor_names(CONFIG.n_layer)
    assert trace["h.1.scores"].shape == (1, 2, 3, 3)
    assert trace["h.1.q"].shape == (1, 2, 3, 3)
    assert trace["logits"].shape == (1, 3, 7)
    assert {array.dtype.name for array in trace.values()} == {"float64"}


def test_float32_weights_are_computed_in_float64() -> None:
    single = random_checkpoint(CONFIG, 1, "float32")
    double = single.cast("float64")
    assert np.array_equal(scalar_logits(single, [0, 3]), scalar_logits(double, [0, 3]))


@pytest.mark.parametrize("ids", [[], [0] * 6, [7], [-1], [1.0], [True], ["1"]])
def test_wrong_ids_are_refused(ids: list) -> None:
    with pytest.raises(InputError, match=r"expected .* found"):
        scalar_logits(random_checkpoint(CONFIG, 1), ids)


def test_the_oracle_imports_nothing_that_it_judges_and_uses_numpy_for_containers_alone() -> None:
    tree = ast.parse(Path(scalar_loop.__file__).read_text(encoding="utf-8"))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith("tinydec")} == {
        "tinydec.errors",
        "tinydec.model.checkpoint",
    }
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "np"
    }
    assert used == {"array", "float64", "integer"}
