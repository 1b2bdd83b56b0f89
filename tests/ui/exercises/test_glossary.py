"""The glossary agrees with the arrays of a real pass, and names every letter that they use."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.ui.exercises.glossary import symbols, tensors, words
from tinydec.ui.pages import CATALOGUE
from tinydec.verification.cached_run import run_cached

CONFIG = ModelConfig(13, 11, 15, 2, 3, 23)  # V, context, d, L, h, m
B, P, T = 2, 4, 7


def test_sizes_are_the_checkpoints() -> None:
    found = {entry.term: entry.here for entry in symbols(CONFIG)}
    sizes = {"L": "2", "h": "3", "d": "15", "d_h": "5", "m": "23", "V": "13"}
    assert {term: found[term] for term in sizes} == sizes
    assert found["t"] == "1 to 11"


@pytest.mark.parametrize("step", [0, 2])
def test_axes_are_those_of_real_arrays(step: int) -> None:
    ids = np.arange(B * T).reshape(B, T) % CONFIG.vocab_size
    found = run_cached(random_checkpoint(CONFIG, 1, "float32"), ids, P)[step]
    arrays = dict(found.activations.named())
    given = {entry.term: entry.here for entry in tensors(CONFIG)}
    new, held = found.length_after - found.length_before, found.length_after
    sizes = {"B": B, "P": new, "t": held}
    shapes = {
        term: tuple(sizes.get(size) or int(size) for size in re.findall(r"\w+", axes))
        for term, axes in given.items()
    }
    named = {"k, v": "h.1.v", "keys, values": "h.0.values", "MLP hidden": "h.0.mlp_hidden"}
    named |= {term: f"h.1.{term}" for term in ("q", "scores", "attention", "mix")}
    named |= {term: term for term in ("embedding", "logits")}
    assert {term: arrays[name].shape for term, name in named.items()} == {
        term: shapes[term] for term in named
    }
    assert shapes["token ids"] == (B, new)
    assert set(shapes) == {*named, "token ids"}


def test_each_term_stands_once_and_leads_to_a_page() -> None:
    entries = [*symbols(CONFIG), *tensors(CONFIG), *words()]
    terms = [entry.term for entry in entries]
    assert len(set(terms)) == len(terms)
    paths = {info.url_path for info in CATALOGUE.pages}
    assert [e.term for e in entries if e.page not in paths or not e.meaning] == []


def test_the_words_that_every_lesson_uses_are_explained() -> None:
    found = {entry.term: entry.page for entry in words()}
    assert {"token", "checkpoint", "logit", "seed", "residual", "float32"} <= set(found)
    assert {"query", "key", "value", "layer", "head"} <= set(found)
    assert found["stop reason"] == "generation_loop"


def test_letters_with_two_meanings_have_a_line_for_each() -> None:
    found = {entry.term: entry for entry in symbols(CONFIG)}
    assert "length" in found["T"].meaning
    assert "temperature" in found["τ"].meaning
    assert "heads" in found["h"].meaning
    assert "layer" in found["h.0, h.1"].meaning
    assert found["P"].page == "prefill_decode"
