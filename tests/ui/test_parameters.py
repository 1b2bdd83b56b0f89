"""Any query string gives a run, with a note for everything that was replaced."""

from __future__ import annotations

import random
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.generation.generate import new_request
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy, RunSpec
from tinydec.ui.domains import NAMES, Limits
from tinydec.ui.page_domains import page_domains
from tinydec.ui.parameters import (
    Reading,
    default_prompts,
    defaults,
    read_query,
    settle,
)

CHECKPOINT = load_checkpoint()
LIMITS = Limits.of(CHECKPOINT)


def read(text: str) -> Reading:
    return read_query(parse_qs(text, keep_blank_values=True), LIMITS)


def spec_of(text: str) -> RunSpec:
    settled = settle(read(text).values, LIMITS)
    assert settled.notes == ()
    return settled.spec


def test_empty_query_is_the_default_run() -> None:
    assert spec_of("") == RunSpec()
    assert read("").values == defaults(LIMITS)


def test_every_control_is_read_from_the_url() -> None:
    text = (
        "prompt=%3Cbos%3E+A&policy=sample&temperature=0.5&top_k=3&top_p=0.9&seed=7&step=2"
        "&max_new_tokens=2&stop_tokens=C+D&dtype=float64&tolerance=2e-6&cache=false"
    )
    reading = read(text)
    assert reading.notes == ()
    assert set(reading.clean) == set(NAMES)
    assert settle(reading.values, LIMITS).step == 2
    assert spec_of(text) == RunSpec(
        prompt=("<bos>", "A"),
        policy=Policy("sample", 0.5, 3, 0.9),
        seed=7,
        max_new_tokens=2,
        stop_tokens=("C", "D"),
        cache=False,
        dtype="float64",
        tolerance=2e-6,
    )


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(),
        RunSpec(prompt=("<bos>", "X"), policy=Policy("sample", 2.0, 3, 0.5), seed=0),
        RunSpec(stop_tokens=("A", "X"), cache=False, dtype="float16", tolerance=0.5),
    ],
)
def test_query_of_a_spec_gives_that_spec(spec: RunSpec) -> None:
    assert spec_of(urlencode(spec.to_query())) == spec


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "temperature=abc",
            "temperature: expected a number from 0.05 to 5.0, found 'abc'; ran with 1.0",
        ),
        ("temperature=nan", "temperature: expected a number from 0.05 to 5.0, found nan; "),
        ("temperature=0", "temperature: expected a number from 0.05 to 5.0, found 0.0; "),
        ("top_k=9", "top_k: expected an integer from 1 to 8, found 9; ran with 8"),
        ("top_k=", "top_k: expected an integer from 1 to 8, found nothing; ran with 8"),
        ("top_p=1.5", "top_p: expected a number from 0.05 to 1.0, found 1.5; ran with 1.0"),
        ("seed=1e400", "seed: expected an integer from 0 to 2^53 - 1, found '1e400'; ran with 41"),
        ("seed=-1", "seed: expected an integer from 0 to 2^53 - 1, found -1; ran with 41"),
        ("policy=", "policy: expected greedy or sample, found nothing; ran with greedy"),
        ("prompt=%3Cbos%3E+Q", "prompt: expected one of <bos> <eos> A B C D X Y, found 'Q'; ran "),
        ("prompt=A+A+A+A+A", "prompt: expected at most 4 tokens (the context), found 5; ran with"),
        ("prompt=", "prompt: expected at least one token, found none; ran with <bos>"),
        ("stop_tokens=Q", "stop_tokens: expected one of <bos> <eos> A B C D X Y, found 'Q'; "),
        ("max_new_tokens=0", "max_new_tokens: expected an integer from 1 to 4, found 0; ran with "),
        ("tolerance=inf", "tolerance: expected a number from 1e-16 to 1, found inf; ran with the"),
        ("dtype=int8", "dtype: expected float16 or float32 or float64, found 'int8'; ran with "),
        ("cache=0", "cache: expected true or false, found '0'; ran with True"),
        ("step=4", "step: expected an integer from 0 to 3, found 4; ran with 0"),
        ("top_k=2&top_k=3", "top_k: expected one value, found 2; ran with 3"),
        ("temprature=2", "URL: no control is called 'temprature' (did you mean temperature?);"),
        ("checkpoint=ab", "checkpoint: expected one uploaded in this visit, found 'ab'; ran with"),
    ],
)
def test_junk_gets_one_note_and_leaves_the_url(text: str, note: str) -> None:
    reading = read(text)
    assert len(reading.notes) == 1
    assert reading.notes[0].text.startswith(note)
    assert "\n" not in reading.notes[0].text
    assert read(urlencode(reading.clean)).notes == ()


def test_parameters_of_the_page_and_of_the_browser_pass_without_a_note() -> None:
    query = {"kv_layer": ["1"], "embed": ["true"], "utm_source": ["x"]}
    reading = read_query(query, LIMITS, domains=page_domains("kv_cache", CHECKPOINT))
    assert reading.notes == ()
    assert set(reading.clean) == set(query)
    assert len(read_query(query, LIMITS).notes) == 1


def test_parameter_of_another_page_is_named_and_dropped() -> None:
    reading = read_query({"stage": ["3"]}, LIMITS, elsewhere={"stage": "10 Audit"})
    assert reading.clean == {}
    assert reading.notes[0].text == "URL: stage belongs to 10 Audit, not to this page; ignored"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, "", "\x00", -1, 1e308, float("nan"), [], object(), True])
def test_whatever_a_control_holds_a_run_comes_out(name: str, value: object) -> None:
    settled = settle({name: value}, LIMITS)
    new_request(CHECKPOINT, settled.spec)
    assert len(settled.notes) <= 1


def random_query(rng: random.Random) -> str:
    """A query of known and unknown names with values of many kinds."""
    values = (
        "", "0", "1", "-1", "3", "1e400", "nan", "inf", "-0", "0x10", "१", "1_0", "9" * 400, "true",
        "False", "sample", "greedy", "float16", "<bos>", "<bos> A B", "A " * 50, "<script>", "%",
        "\x00", "\ud7ff", "💥" * 9, "1.5", "2.5e-7", "None", "[]", "A\nB", " ", "\u202e", "'\"`$",
    )  # fmt: skip
    names = (*NAMES, "checkpoint", "faults", "embed", "x", "", "Prompt", "🐟")
    count = rng.randint(0, 8)
    return urlencode([(rng.choice(names), rng.choice(values)) for _ in range(count)])


def test_five_thousand_random_queries_each_give_a_run() -> None:
    rng = random.Random(5)
    noted = 0
    for _ in range(5000):
        reading = read(random_query(rng))
        settled = settle(reading.values, LIMITS)
        assert settled.notes == ()
        new_request(CHECKPOINT, settled.spec)
        assert all("\n" not in note.text and len(note.text) < 200 for note in reading.notes)
        again = read(urlencode(reading.clean))
        assert (again.notes, again.values) == ((), reading.values)
        noted += bool(reading.notes)
    assert 3000 < noted < 5000


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.text(), max_size=3)))
def test_any_text_in_any_parameter_gives_a_run(query: dict[str, list[str]]) -> None:
    settled = settle(read_query(query, LIMITS).values, LIMITS)
    assert settled.notes == ()
    new_request(CHECKPOINT, settled.spec)


def test_default_prompts_can_all_run() -> None:
    prompts = default_prompts(LIMITS)
    assert len(prompts) == len(set(prompts)) == 12
    assert prompts[0] == "<bos>"
    for prompt in prompts:
        assert settle({"prompt": prompt}, LIMITS).notes == ()
