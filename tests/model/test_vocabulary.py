"""Token strings and ids."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.corpus import BOS, EOS, TOKENS
from tinydec.errors import InputError
from tinydec.model.vocabulary import Vocabulary

VOCABULARY = Vocabulary(TOKENS, BOS, EOS)


def test_ids_are_places_in_the_list() -> None:
    assert VOCABULARY.encode("<bos> A B D <eos>") == (0, 2, 3, 5, 1)
    assert VOCABULARY.encode(["<bos>", "Y"]) == (0, 7)
    assert (VOCABULARY.bos_id, VOCABULARY.eos_id, len(VOCABULARY)) == (0, 1, 8)
    assert Vocabulary(("a",)).eos_id is None
    assert Vocabulary(("a",)).bos_id is None


@given(st.lists(st.integers(0, len(TOKENS) - 1), min_size=1))
def test_encode_reverses_decode(ids: list[int]) -> None:
    assert VOCABULARY.encode(VOCABULARY.decode(ids)) == tuple(ids)


def test_unknown_token_lists_the_valid_ones() -> None:
    with pytest.raises(InputError) as info:
        VOCABULARY.encode("<bos> Z")
    assert str(info.value) == "token: expected one of <bos> <eos> A B C D X Y, found 'Z'"


def test_long_listing_is_cut_and_counted() -> None:
    with pytest.raises(InputError, match=r"t31 … \(18 more\), found 'Z'"):
        Vocabulary.numbered(50).encode("Z")


@pytest.mark.parametrize("text", ["", "  \n", []])
def test_empty_prompt_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="prompt: expected at least one token, found none"):
        VOCABULARY.encode(text)


@pytest.mark.parametrize("token_id", [-1, 8])
def test_id_outside_the_vocabulary_is_refused(token_id: int) -> None:
    with pytest.raises(InputError, match=f"token id: expected 0 to 7, found {token_id}"):
        VOCABULARY.decode([token_id])


@pytest.mark.parametrize(
    "values",
    [
        {"tokens": []},
        {"tokens": ["a", ""]},
        {"tokens": ["a", "b c"]},
        {"tokens": ["a", " b"]},
        {"tokens": ["a", "b\n"]},
        {"tokens": ["a", 7]},
        {"tokens": ["a", None]},
        {"tokens": ["a", ["b"]]},
        {"tokens": ["a", "\ud800"]},
        {"tokens": ["a", "a"]},
        {"tokens": ["a"], "bos": "b"},
        {"tokens": ["a"], "eos": 0},
        {"tokens": ["a"], "eos": ["a"]},
        {"tokens": ["a"], "bos": {"a": 1}},
        {"tokens": "abc"},
        {"tokens": {"a": 0}},
        {"bos": None},
        [],
        None,
        "tokens",
    ],
)
def test_malformed_vocabulary_is_refused_in_one_line(values: Any) -> None:
    with pytest.raises(InputError, match=r"^vocabulary.*: expected") as info:
        Vocabulary.from_dict(values)
    assert len(str(info.value).splitlines()) == 1


def test_dict_round_trip() -> None:
    assert Vocabulary.from_dict(VOCABULARY.to_dict()) == VOCABULARY


def test_numbered_tokens() -> None:
    assert Vocabulary.numbered(3).tokens == ("t0", "t1", "t2")


def test_error_about_a_long_token_is_short() -> None:
    with pytest.raises(InputError) as info:
        VOCABULARY.encode(["Q" * 10_000])
    assert len(str(info.value)) < 150


@pytest.mark.parametrize("token_ids", [[1.5], ["A"], [None], [[1]]])
def test_id_that_is_no_integer_is_refused(token_ids: Any) -> None:
    with pytest.raises(InputError, match="token id: expected an integer, found"):
        VOCABULARY.decode(token_ids)


@pytest.mark.parametrize("tokens", [["A", "B"], "AB", {"A": 0}, None])
def test_tokens_that_could_change_later_are_refused(tokens: Any) -> None:
    with pytest.raises(InputError, match="vocabulary: expected a tuple of tokens, found"):
        Vocabulary(tokens)


def test_ids_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        VOCABULARY._ids["A"] = 0  # type: ignore[index]
