"""The full forward: causal, row by row what the slow oracle computes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_checkpoint
from tests.rows import distance
from tests.strategies import checkpoints, prompts
from tinydec.errors import InputError
from tinydec.model import full as full_module
from tinydec.model.activations import tensor_names
from tinydec.model.checkpoint import DTYPES, Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.full import full_forward
from tinydec.model.operations import layer_norm, mlp
from tinydec.verification.scalar_loop import scalar_forward

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7)
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def worst_against_the_oracle(checkpoint: Checkpoint, ids: list[int]) -> float:
    expected = scalar_forward(checkpoint, ids)
    found = dict(full_forward(checkpoint, ids).named())
    assert list(found) == list(expected)
    return max(distance(found[name], expected[name]) for name in expected)


@given(st.data())
def test_every_intermediate_is_that_of_the_scalar_loop(data: st.DataObject) -> None:
    checkpoint = data.draw(checkpoints())
    [ids] = data.draw(prompts(checkpoint.config))
    assert worst_against_the_oracle(checkpoint, ids) < 1e-12


@given(st.data())
def test_later_tokens_never_change_earlier_rows(data: st.DataObject) -> None:
    checkpoint = data.draw(checkpoints())
    config = checkpoint.config
    [ids] = data.draw(prompts(config, min_size=2))
    at = data.draw(st.integers(1, len(ids) - 1))
    other = list(ids)
    other[at] = (ids[at] + data.draw(st.integers(1, config.vocab_size - 1))) % config.vocab_size
    before = full_forward(checkpoint, ids).logits[0]
    after = full_forward(checkpoint, other).logits[0]
    assert distance(after[:at], before[:at]) < 1e-13
    assert np.abs(after[at] - before[at]).max() > 1e-9
    prefix = full_forward(checkpoint, ids[:at]).logits[0]
    assert distance(prefix, before[:at]) < 1e-12


@given(st.data())
def test_sequences_of_a_batch_do_not_see_each_other(data: st.DataObject) -> None:
    checkpoint = data.draw(checkpoints(max_layers=2))
    batch = data.draw(prompts(checkpoint.config, batch=3))
    together = dict(full_forward(checkpoint, batch).named())
    for row, ids in enumerate(batch):
        for name, alone in full_forward(checkpoint, ids).named():
            part = together[name][0 if name == "position_embedding" else row]
            assert distance(part, alone[0]) < 1e-12


def test_attention_rows_sum_to_one_and_end_at_the_diagonal() -> None:
    for block in full_forward(CHECKPOINT, IDS).blocks:
        assert block.attention.sum(axis=-1) == pytest.approx(1)
        assert (block.attention[:, :, np.triu(np.ones((8, 8), bool), 1)] == 0).all()
        assert (block.scores[:, :, np.triu(np.ones((8, 8), bool), 1)] == -np.inf).all()
        assert np.isfinite(block.scores[:, :, np.tril(np.ones((8, 8), bool))]).all()


def test_the_first_position_attends_to_itself_alone() -> None:
    block = full_forward(CHECKPOINT, [5]).blocks[0]
    assert block.attention.tolist() == [[[[1.0]]] * 3]
    assert np.array_equal(block.mix, block.v)


def test_names_and_shapes() -> None:
    activations = full_forward(CHECKPOINT, [IDS, IDS[::-1]])
    named = dict(activations.named())
    assert tuple(named) == tensor_names(3)
    assert named["h.2.q"].shape == named["h.2.keys"].shape == (2, 3, 8, 5)
    assert named["h.2.scores"].shape == (2, 3, 8, 8)
    assert named["h.2.mlp_hidden"].shape == (2, 8, 23)
    assert named["position_embedding"].shape == (1, 8, 15)
    assert named["logits"].shape == activations.logits.shape == (2, 8, 13)
    assert np.array_equal(activations.last_logits, named["logits"][:, 7])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_intermediate_has_the_dtype_of_the_checkpoint(dtype: str) -> None:
    named = full_forward(CHECKPOINT.cast(dtype), IDS).named()
    assert {array.dtype.name for _, array in named} == {dtype}


# Break it and see -------------------------------------------------------------------------------


def break_mask(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(np, "triu", lambda ones, _: np.zeros_like(ones))


def break_mask_by_one(patch: pytest.MonkeyPatch) -> None:
    right = np.triu
    patch.setattr(np, "triu", lambda ones, k: right(ones, k + 1))


def break_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_module, "math", SimpleNamespace(sqrt=lambda width: width))


def break_norm(patch: pytest.MonkeyPatch) -> None:
    right = layer_norm
    patch.setattr(full_module, "layer_norm", lambda x, norm: right(x, norm) - norm.bias)


def break_bias(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_module, "linear", lambda x, weight, _: x @ weight)


def break_activation(patch: pytest.MonkeyPatch) -> None:
    right = mlp
    patch.setattr(full_module, "mlp", lambda x, block, _: right(x, block, "gelu"))


@pytest.mark.parametrize(
    "breaking",
    [break_mask, break_mask_by_one, break_scale, break_norm, break_bias, break_activation],
)
def test_a_broken_forward_differs_from_the_oracle(
    breaking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worst_against_the_oracle(CHECKPOINT, IDS) < 1e-12
    breaking(monkeypatch)
    assert worst_against_the_oracle(CHECKPOINT, IDS) > 1e-5


@pytest.mark.parametrize("names", [("q", "k"), ("k", "v")])
def test_swapped_projections_differ_from_the_oracle(names: tuple[str, str]) -> None:
    places = [slice(5 * 3 * "qkv".index(name), 5 * 3 * ("qkv".index(name) + 1)) for name in names]
    weight = CHECKPOINT.tensors["h.1.attn.c_attn.weight"].copy()
    weight[:, places[0]], weight[:, places[1]] = weight[:, places[1]], weight[:, places[0]].copy()
    swapped = CHECKPOINT.with_tensors({**CHECKPOINT.tensors, "h.1.attn.c_attn.weight": weight})
    found = full_forward(swapped, IDS).logits
    assert distance(found, scalar_forward(CHECKPOINT, IDS)["logits"]) > 1e-3


# Wrong ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "expected at least one token, found none"),
        ([[]], "expected at least one token, found none"),
        ([0] * 12, "at most 11 tokens .*found 12"),
        ([13], "expected 0 to 12, found 13"),
        ([0, -1], "expected 0 to 12, found -1"),
        ([2**64 - 1], "expected 0 to 12, found 18446744073709551615"),
        ([2**70], "expected integers, found object"),
        ([1.0], "expected integers, found float64"),
        ([True], "expected integers, found bool"),
        ([[0, 1], [0, True]], "expected integers, found bool"),
        (["1"], "expected integers, found str"),
        ([None], "expected integers, found object"),
        (None, "expected integers, found object"),
        (3, r"expected axes \(B, T\) or \(T,\), found shape \(\)"),
        ([[[1]]], r"found shape \(1, 1, 1\)"),
        ([[1, 2], [3]], "expected sequences of one length, found unequal lengths"),
    ],
)
def test_wrong_ids_are_refused_in_one_line(ids: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as info:
        full_forward(CHECKPOINT, ids)
    assert len(str(info.value).splitlines()) == 1
