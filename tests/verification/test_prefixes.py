"""Which prefixes are compared."""

from itertools import pairwise

from tests.random_models import random_checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.prefixes import controlled_prefixes, distinct_count

SMALL = ModelConfig(vocab_size=13, n_positions=3, n_embd=10, n_layer=2, n_head=2, n_inner=11)


def test_the_controlled_corpus_has_16_prefixes_of_which_11_are_distinct():
    cases = controlled_prefixes(load_checkpoint())
    assert len(cases) == 16
    # by hand: <bos>; then A, X, Y; then AB, XY, YX; then ABC, ABD, XYX, YXY
    distinct = {case.tokens for case in cases}
    assert distinct == {
        "<bos>",
        *(f"<bos> {rest}" for rest in ("A", "X", "Y", "A B", "X Y", "Y X")),
        *(f"<bos> {rest}" for rest in ("A B C", "A B D", "X Y X", "Y X Y")),
    }
    assert distinct_count(cases) == 11


def test_prefixes_of_a_pattern_grow_by_one_token():
    cases = controlled_prefixes(load_checkpoint())
    for pattern in ("A B C", "A B D", "X Y X", "Y X Y"):
        own = [case for case in cases if case.pattern == pattern]
        assert [case.length for case in own] == [1, 2, 3, 4]
        for shorter, longer in pairwise(own):
            assert longer.token_ids[:-1] == shorter.token_ids


def test_another_vocabulary_gets_drawn_prefixes_within_its_context():
    checkpoint = random_checkpoint(SMALL, 5, "float32")
    cases = controlled_prefixes(checkpoint)
    assert [case.length for case in cases] == [1, 2, 3] * 4
    assert all(0 <= token < 13 for case in cases for token in case.token_ids)
    assert cases == controlled_prefixes(random_checkpoint(SMALL, 7, "float32"))
    assert distinct_count(cases) > 8
