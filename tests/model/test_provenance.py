"""Provenance: JSON values that are refused when they are none, and frozen when they are."""

from typing import Any

import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.provenance import frozen_provenance, plain_json
from tinydec.model.storage import checkpoint_bytes

BASE = random_checkpoint(ModelConfig(7, 5, 6, 2, 2, 11, attention_bias=False), 3, "float32")
NESTED = {"made": {"by": "hand", "steps": [1, 2.5, None, True, {"deep": []}]}, "é": "猫"}


def bottomless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    "values",
    [
        [], "text", 3, [("a", 1)],
        {"a": "\ud800"}, {"\udfff": 1}, {"a": float("nan")}, {"a": [float("inf")]},
        {"a": object()}, {"a": {1, 2}}, {("a", "b"): 1}, {"a": bottomless()}, {"a": b"bytes"},
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused_in_one_line(values: Any) -> None:
    with pytest.raises(InputError, match=r"provenance: expected (a JSON object|JSON values)"):
        frozen_provenance(values)
    with pytest.raises(InputError) as info:
        Checkpoint.build(BASE.config, BASE.vocabulary, BASE.tensors, values)
    assert len(str(info.value).splitlines()) == 1
    assert len(str(info.value)) < 200


def test_json_values_come_back_as_they_were() -> None:
    assert plain_json(frozen_provenance(NESTED)) == NESTED
    assert plain_json(frozen_provenance(frozen_provenance(NESTED))) == NESTED


def test_nothing_inside_a_checkpoint_can_be_changed() -> None:
    given = {"made": {"steps": [1, 2]}}
    built = Checkpoint.build(BASE.config, BASE.vocabulary, BASE.tensors, given)
    before = checkpoint_bytes(built)
    given["made"]["steps"].append(3)
    with pytest.raises(TypeError):
        built.provenance["made"]["steps"] = 4
    with pytest.raises(TypeError):
        built.provenance["made"]["steps"][0] = 4
    assert checkpoint_bytes(built) == before
