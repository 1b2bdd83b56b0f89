import math
from typing import Any

import pytest

from tests.refusals import refusal
from tinydec.runspec import Policy, RunSpec, shown

TOO_LARGE = 10**400  # no float holds it
TOO_LONG = 10**5000  # Python does not even print it

NOT_POSITIVE = (0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, True, None, "1", [1], TOO_LARGE)
NOT_COUNTING = (0, -1, 1.5, 2.0, True, "3", [3], -TOO_LONG, math.nan)


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=shown)
def test_temperature_outside_its_domain_is_refused(value: Any) -> None:
    message = refusal(Policy, "sample", temperature=value)
    assert message.startswith("temperature: expected a finite number above 0, found ")
    assert shown(value) in message


@pytest.mark.parametrize("value", NOT_COUNTING, ids=shown)
def test_top_k_outside_its_domain_is_refused(value: Any) -> None:
    message = refusal(Policy, "sample", top_k=value)
    assert message.startswith("top_k: expected an integer >= 1, found ")
    assert shown(value) in message


@pytest.mark.parametrize(
    "value", [v for v in NOT_POSITIVE if v is not None] + [1.0000000001, 2], ids=shown
)
def test_top_p_outside_its_domain_is_refused(value: Any) -> None:
    message = refusal(Policy, "sample", top_p=value)
    assert message.startswith("top_p: expected a number above 0 and at most 1, found ")
    assert shown(value) in message


@pytest.mark.parametrize(
    "value", ["", "Greedy", "beam", None, 3, ["greedy"], True, "x" * 999], ids=shown
)
def test_an_unknown_policy_is_refused(value: Any) -> None:
    assert refusal(Policy, value) == (
        f"policy: expected one of greedy, sample, found {shown(value)}"
    )


@pytest.mark.parametrize("value", [v for v in NOT_COUNTING if v != 0] + [None], ids=shown)
def test_seed_outside_its_domain_is_refused(value: Any) -> None:
    assert refusal(RunSpec, seed=value).startswith("seed: expected an integer >= 0, found ")


@pytest.mark.parametrize("value", NOT_COUNTING, ids=shown)
def test_max_new_tokens_outside_its_domain_is_refused(value: Any) -> None:
    message = refusal(RunSpec, max_new_tokens=value)
    assert message.startswith("max_new_tokens: expected an integer >= 1, found ")


@pytest.mark.parametrize("value", [v for v in NOT_POSITIVE if v is not None], ids=shown)
def test_tolerance_outside_its_domain_is_refused(value: Any) -> None:
    message = refusal(RunSpec, tolerance=value)
    assert message.startswith("tolerance: expected a finite number above 0, found ")


@pytest.mark.parametrize("value", ["float8", "", None, 32, ["float32"]], ids=shown)
def test_an_unknown_dtype_is_refused(value: Any) -> None:
    message = refusal(RunSpec, dtype=value)
    assert message.startswith("dtype: expected one of float16, float32, float64, found ")


@pytest.mark.parametrize(
    ("name", "value"), [("checkpoint", None), ("policy", "greedy"), ("policy", {}), ("cache", 1)]
)
def test_a_value_of_another_type_is_refused(name: str, value: Any) -> None:
    assert refusal(RunSpec, **{name: value}).startswith(f"{name}: expected a ")


@pytest.mark.parametrize("name", ["prompt", "stop_tokens", "faults", "guards_off"])
@pytest.mark.parametrize(
    "value", ["A", ["A"], None, ("A", 1), ("A B",), ("",), ("A\u3000",)], ids=shown
)
def test_words_that_no_query_could_spell_are_refused(name: str, value: Any) -> None:
    assert refusal(RunSpec, **{name: value}).startswith(f"{name}: expected ")


@pytest.mark.parametrize("name", ["seed", "max_new_tokens"])
def test_an_integer_that_cannot_be_written_down_is_refused(name: str) -> None:
    assert refusal(RunSpec, **{name: TOO_LONG}).startswith(f"{name}: expected at most 3900 digits")


def test_an_empty_prompt_is_refused() -> None:
    assert refusal(RunSpec, prompt=()) == "prompt: expected at least one token, found none"
    assert RunSpec(stop_tokens=()).stop_tokens == ()


def test_the_ends_of_the_domains_are_accepted() -> None:
    policy = Policy("sample", 5e-324, 1, 5e-324)
    assert (policy.temperature, policy.top_k, policy.top_p) == (5e-324, 1, 5e-324)
    assert Policy("sample", 1.7976931348623157e308, 10**30, 1).top_p == 1
    assert RunSpec(seed=0, max_new_tokens=1).seed == 0
    assert RunSpec.from_query(RunSpec(seed=2**12999).to_query()).seed == 2**12999


def test_a_top_k_above_the_vocabulary_is_refused() -> None:
    Policy(top_k=7).check_vocabulary(7)
    Policy().check_vocabulary(1)
    message = refusal(Policy(top_k=8).check_vocabulary, 7)
    assert message == "top_k: expected 1 to 7 (the vocabulary), found 8"
    refusal(Policy(top_k=TOO_LARGE).check_vocabulary, 7)


def test_only_sample_samples() -> None:
    assert Policy("sample").samples
    assert not Policy("greedy").samples


def test_long_values_are_cut_in_an_error() -> None:
    assert shown("x" * 58) == repr("x" * 58)
    assert shown("x" * 59) == "'" + "x" * 58 + "…"
    assert shown(TOO_LONG) == "a very long int"
    nested: list[Any] = []
    for _ in range(10**5):
        nested = [nested]
    assert shown(nested) == "a very long list"
    while nested:  # take it apart, or freeing it would recurse as deeply
        nested = nested.pop()
