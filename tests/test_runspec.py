import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.refusals import refusal
from tinydec.errors import InputError
from tinydec.runspec import Policy, RunSpec

WORDS = st.text(min_size=1, max_size=6).filter(lambda word: word.split() == [word])
POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)
POLICIES = st.builds(
    Policy,
    kind=st.sampled_from(("greedy", "sample")),
    temperature=POSITIVE | st.integers(1, 2**70),
    top_k=st.none() | st.integers(1, 2**70),
    top_p=st.none() | st.floats(0, 1, exclude_min=True) | st.just(1),
)
SPECS = st.builds(
    RunSpec,
    checkpoint=st.text(max_size=8),
    prompt=st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    policy=POLICIES,
    seed=st.integers(0, 2**200),
    max_new_tokens=st.none() | st.integers(1, 2**70),
    stop_tokens=st.lists(WORDS, max_size=3).map(tuple),
    cache=st.booleans(),
    dtype=st.sampled_from(("float16", "float32", "float64")),
    tolerance=st.none() | POSITIVE,
    faults=st.lists(WORDS, max_size=3).map(tuple),
    guards_off=st.lists(WORDS, max_size=3).map(tuple),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from((10**400, 10**4200, -(10**4200), "greedy", "sample", "float32", "\n")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
PARAMETERS = (
    *(field.name for field in fields(RunSpec)),
    *("temperature", "top_k", "top_p"),
)


# One value, four spellings ------------------------------------------------------------------------


def test_defaults_are_spelled_out() -> None:
    assert RunSpec().to_query() == {}
    assert RunSpec().to_dict() == {
        "checkpoint": "frozen",
        "prompt": ["<bos>"],
        "policy": {"kind": "greedy", "temperature": 1.0, "top_k": None, "top_p": None},
        "seed": 41,
        "max_new_tokens": None,
        "stop_tokens": [],
        "cache": True,
        "dtype": "float32",
        "tolerance": None,
        "faults": [],
        "guards_off": [],
    }


def test_a_query_says_what_differs_from_the_defaults() -> None:
    spec = RunSpec(
        prompt=("<bos>", "A"),
        policy=Policy("sample", 0.1, 3),
        cache=False,
        stop_tokens=("X", "é"),
        tolerance=1e-5,
    )
    assert spec.to_query() == {
        "prompt": "<bos> A",
        "policy": "sample",
        "temperature": "0.1",
        "top_k": "3",
        "cache": "false",
        "stop_tokens": "X é",
        "tolerance": "1e-05",
    }


@given(SPECS)
@example(RunSpec(policy=Policy("sample", 5e-324, 1, 0.1 + 0.2), tolerance=1.7976931348623157e308))
def test_dict_and_query_round_trip(spec: RunSpec) -> None:
    as_json = json.loads(json.dumps(spec.to_dict()))
    for again in (
        RunSpec.from_dict(spec.to_dict()),
        RunSpec.from_dict(as_json),
        RunSpec.from_query(spec.to_query()),
    ):
        assert again == spec
        assert hash(again) == hash(spec)
        assert json.dumps(again.to_dict()) == json.dumps(spec.to_dict())


@given(SPECS)
def test_one_changed_value_changes_every_spelling(spec: RunSpec) -> None:
    other = replace(spec, seed=spec.seed + 1)
    assert other != spec
    assert other.to_dict() != spec.to_dict()
    assert other.to_query() != spec.to_query()


def test_equal_numbers_are_spelled_alike() -> None:
    one = RunSpec(policy=Policy("sample", 2, None, 1), tolerance=1)
    other = RunSpec(policy=Policy("sample", 2.0, None, 1.0), tolerance=1.0)
    assert one == other
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert one.to_query() == other.to_query()


@given(SPECS)
def test_a_spec_is_frozen_and_can_be_a_key(spec: RunSpec) -> None:
    assert {spec: 1}[RunSpec.from_dict(spec.to_dict())] == 1
    for name in spec.__dataclass_fields__:
        with pytest.raises(FrozenInstanceError):
            setattr(spec, name, getattr(spec, name))
    with pytest.raises(FrozenInstanceError):
        spec.policy.temperature = 2.0  # type: ignore[misc]


def test_changing_the_dict_of_a_spec_leaves_the_spec_alone() -> None:
    spec = RunSpec()
    values = spec.to_dict()
    values["prompt"].append("A")
    values["policy"]["kind"] = "sample"
    assert spec == RunSpec()


def test_absent_fields_take_the_defaults() -> None:
    assert RunSpec.from_dict({}) == RunSpec.from_query({}) == RunSpec()
    assert RunSpec.from_dict({"policy": {"kind": "sample"}}).policy == Policy("sample")


# Anything at all ----------------------------------------------------------------------------------


def spec_or_refusal(call, values: Any) -> None:
    """Whatever comes in, either a spec comes out that round-trips or one line says why not."""
    try:
        spec = call(values)
    except InputError:
        assert len(refusal(call, values)) < 400
    else:
        assert RunSpec.from_dict(spec.to_dict()) == spec
        assert RunSpec.from_query(spec.to_query()) == spec


@given(
    JSON
    | st.dictionaries(st.sampled_from(PARAMETERS), JSON, max_size=4)
    | st.fixed_dictionaries(
        {"policy": st.dictionaries(st.sampled_from(("kind", *PARAMETERS[-3:])), JSON, max_size=3)}
    )
)
def test_any_json_gives_a_spec_or_one_line(values: Any) -> None:
    spec_or_refusal(RunSpec.from_dict, values)


AWKWARD = (
    *("", " ", "0", "-0", " 5 ", "+5", "1_000", "١٢", "9" * 5000, "1e999", "nan", "inf", "-inf"),
    *("1e-400", "0x10", "5.0", "true", "True", "None", "A\x00B", "\ud800", "a\nb", "\u2028"),
)


@given(
    st.dictionaries(
        st.sampled_from(PARAMETERS) | st.text(max_size=5),
        st.sampled_from(AWKWARD) | st.text(max_size=8) | st.floats().map(repr),
        max_size=4,
    )
)
def test_any_query_gives_a_spec_or_one_line(query: dict[str, str]) -> None:
    spec_or_refusal(RunSpec.from_query, query)


@pytest.mark.parametrize("text", AWKWARD, ids=ascii)
@pytest.mark.parametrize("name", PARAMETERS)
def test_each_awkward_text_in_each_parameter_gives_a_spec_or_one_line(name: str, text: str) -> None:
    spec_or_refusal(RunSpec.from_query, {name: text})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"seed": "x"}, "seed: expected an integer, found 'x'"),
        ({"seed": "-1"}, "seed: expected an integer >= 0, found -1"),
        ({"seed": "4.0"}, "seed: expected an integer, found '4.0'"),
        ({"top_k": ""}, "top_k: expected an integer, found ''"),
        ({"temperature": "warm"}, "temperature: expected a number, found 'warm'"),
        ({"temperature": "nan"}, "temperature: expected a finite number above 0, found nan"),
        ({"top_p": "1.5"}, "top_p: expected a number above 0 and at most 1, found 1.5"),
        ({"cache": "no"}, "cache: expected true or false, found 'no'"),
        ({"policy": "beam"}, "policy: expected one of greedy, sample, found 'beam'"),
        ({"prompt": " "}, "prompt: expected at least one token, found none"),
    ],
)
def test_a_wrong_query_is_named(query: dict[str, str], message: str) -> None:
    assert refusal(RunSpec.from_query, query) == message


def test_unknown_fields_are_named() -> None:
    assert refusal(RunSpec.from_query, {"kind": "sample"}).endswith(", found 'kind'")
    assert refusal(RunSpec.from_dict, {"temperature": 1}).endswith(", found 'temperature'")
    assert refusal(RunSpec.from_dict, {"policy": {"seed": 1}}).endswith(", found 'seed'")
    wrong: tuple[Any, ...] = (None, [], "greedy", 3)
    for values in wrong:
        assert refusal(RunSpec.from_dict, values).startswith("run: expected a JSON object, found ")
        message = refusal(RunSpec.from_dict, {"policy": values})
        assert message.startswith("policy: expected a JSON object, found ")


@pytest.mark.parametrize("query", [None, "seed=1", [("seed", "1")], 3])
def test_query_that_is_no_mapping_is_refused(query: Any) -> None:
    with pytest.raises(InputError, match="URL: expected parameters by name, found"):
        RunSpec.from_query(query)
