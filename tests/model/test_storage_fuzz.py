"""Damaged checkpoint files load or are refused in one line; no other exception escapes."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.config import ModelConfig
from tinydec.model.storage import METADATA_KEY, checkpoint_bytes, load_checkpoint

CHECKPOINT = random_checkpoint(ModelConfig(7, 5, 6, 2, 2, 11, attention_bias=False), 3, "float32")
VALID = checkpoint_bytes(CHECKPOINT)
HEADER_END = 8 + struct.unpack("<Q", VALID[:8])[0]
HEADER = json.loads(VALID[8:HEADER_END])["__metadata__"][METADATA_KEY]


def with_metadata(text: str) -> bytes:
    """The file with another text under its metadata key."""
    return save(dict(CHECKPOINT.tensors), metadata={METADATA_KEY: text})


def loads_or_refuses(path: Path, data: bytes) -> None:
    """A file either loads into finite tensors or is refused in one line; nothing else happens."""
    path.write_bytes(data)
    message = ""
    try:
        loaded = load_checkpoint(path)
    except InputError as error:
        message = str(error)
    else:
        assert all(np.isfinite(array).all() for array in loaded.tensors.values())
        assert len(loaded.vocabulary) == loaded.config.vocab_size
    assert len(message.splitlines()) <= 1


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, HEADER_END - 1), st.integers(0, 255)), min_size=1))
def test_bytes_changed_in_the_header(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(VALID)
    for place, byte in changes:
        data[place] = byte
    loads_or_refuses(tmp_path_factory.getbasetemp() / "fuzz-header", bytes(data))


@settings(max_examples=200)
@given(st.integers(0, len(VALID)), st.binary(max_size=16), st.integers(0, 16))
def test_bytes_cut_out_and_put_in(
    tmp_path_factory: pytest.TempPathFactory, at: int, inserted: bytes, removed: int
) -> None:
    data = VALID[:at] + inserted + VALID[at + removed :]
    loads_or_refuses(tmp_path_factory.getbasetemp() / "fuzz-cut", data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=300)
@given(data=st.data())
def test_any_value_of_the_metadata_replaced_by_any_json(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    values = json.loads(HEADER)
    parent: Any = values
    while True:
        keys = list(range(len(parent))) if isinstance(parent, list) else sorted(parent)
        key = data.draw(st.sampled_from(keys))
        child = parent[key]
        if not isinstance(child, dict | list) or not child or data.draw(st.booleans()):
            break
        parent = child
    parent[key] = data.draw(JSON)
    loads_or_refuses(
        tmp_path_factory.getbasetemp() / "fuzz-json", with_metadata(json.dumps(values))
    )
