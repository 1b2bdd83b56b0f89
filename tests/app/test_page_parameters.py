"""Links with a page's own parameters: good ones are kept, junk is named and leaves the URL."""

from __future__ import annotations

import pytest

from tests.app.page_checks import html, open_page, sound
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.ui.page_domains import page_domains
from tinydec.ui.pages import PAGES
from tinydec.ui.show import MOST_NOTES
from tinydec.verification.faults import fault_by_id
from tinydec.verification.prefixes import controlled_prefixes

pytestmark = pytest.mark.filterwarnings("default")

CHECKPOINT = load_checkpoint(FROZEN_PATH)
RUNS = [case for case in controlled_prefixes(CHECKPOINT) if case.length == 4]
OWNED = [(info.url_path, name) for info in PAGES for name in info.parameters]


def noted(app) -> list[str]:
    return [e.proto.body for e in app.get("html") if 'class="td-notes"' in e.proto.body]


def test_every_parameter_of_every_page_has_a_domain() -> None:
    declared = {(i.url_path, n) for i in PAGES for n in page_domains(i.url_path, CHECKPOINT)}
    assert declared == set(OWNED)


@pytest.mark.parametrize("junk", ["junk", "", "-1", "1e400"])
@pytest.mark.parametrize(("page", "name"), OWNED)
def test_junk_in_any_page_parameter_is_read_as_such(page: str, name: str, junk: str) -> None:
    read = page_domains(page, CHECKPOINT)[name].read(junk)
    assert read is None or (junk == "" and name in ("faults", "second"))


@pytest.mark.parametrize(
    "page",
    ["kv_cache", "decode_step", "equivalence", "memory", "batches", "audit", "fault_lab", "review",
     "evidence"],
)  # fmt: skip
def test_junk_is_named_and_leaves_the_url(page: str) -> None:
    names = next(info.parameters for info in PAGES if info.url_path == page)
    app = open_page(page, dict.fromkeys(names, "junk") | {"seed": "7", "guards_off": "x"})
    sound(app)
    lines = "".join(noted(app))
    for name in names:
        assert f"{name}: expected" in lines
    assert "guards_off" in lines
    assert dict(app.query_params) == {"seed": ["7"]} or dict(app.query_params) == {"seed": "7"}


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("kv_cache", {"kv_amount": "0.1", "kv_layer": "1", "kv_head": "1"}),
        ("equivalence", {"eq_view": "Choices", "eq_fault": "positions reset"}),
        ("equivalence", {"eq_view": "Tensors", "eq_cache": "positions reset"}),
        ("equivalence", {"eq_view": "Tensors",
                         "eq_run": f"{RUNS[0].pattern}, T = 4: prefill 2 + decode 2"}),
        ("memory", {"mem_view": "Real models", "mem_model": "Gemma-2-2B", "mem_tokens": "64",
                    "mem_gib": "8", "mem_block": "16"}),
        ("memory", {"mem_batch": "4"}),
        ("memory", {"mem_view": "Work", "mem_prompt": "2", "mem_new": "2"}),
        ("batches", {"layout": "right", "neighbours": "2", "joins": "1", "leaves": "3",
                     "batch_step": "1"}),
        ("audit", {"stage": "3", "second": f"F21 {fault_by_id('F21').name}"}),
        ("fault_lab", {"lab": "Mystery", "case": "7"}),
        ("fault_lab", {"faults": f"F23 {fault_by_id('F23').name}", "reveal": "true"}),
        ("review", {"topic": "memory"}),
        ("evidence", {"ev_view": "Manifest"}),
    ],
)  # fmt: skip
def test_good_parameters_stay_without_a_note(page: str, query: dict[str, str]) -> None:
    app = open_page(page, query)
    sound(app)
    assert noted(app) == []
    kept = {n: v[-1] if isinstance(v, list) else v for n, v in dict(app.query_params).items()}
    assert kept == query


def test_short_id_of_a_fault_is_spelled_out_in_the_url() -> None:
    app = open_page("fault_lab", {"faults": "F19", "reveal": "true"})
    assert app.session_state["faults"] == "F19 wrong-layer"
    assert app.session_state["reveal"] is True
    assert "F19 wrong-layer" in str(dict(app.query_params)["faults"])
    both = open_page("audit", {"faults": "F19 F21"})
    assert both.session_state["faults"].startswith("F19 ")
    assert both.session_state["second"].startswith("F21 ")
    assert noted(both) == []


def test_parameter_of_another_page_is_named_and_dropped() -> None:
    app = open_page("home", {"stage": "3", "faults": "F19"})
    assert "stage belongs to 10 Audit" in html(app)
    assert "faults belongs to 9 Batches and stopping and 10 Audit and Fault lab" in html(app)
    assert dict(app.query_params) == {}


@pytest.mark.parametrize(
    ("page", "query", "note"),
    [
        ("kv_cache", {"kv_layer": ["1", "0"]}, "kv_layer: expected one value, found 2"),
        ("audit", {"faults": "F01 F02", "second": "F03"}, "second: faults names another one"),
        ("decoding_policy", {"policy": " sample"}, "policy: expected greedy or sample, found"),
        ("decoding_policy", {"dtype": "float64 "}, "dtype: expected float16 or float32 or"),
    ],
)
def test_value_that_cannot_be_taken_as_it_stands_is_noted(page, query, note: str) -> None:
    app = open_page(page, query)
    sound(app)
    assert note in "".join(noted(app))


def test_many_notes_are_counted_not_listed() -> None:
    app = open_page("kv_cache", {f"unknown{i}": "x" for i in range(40)})
    sound(app)
    (lines,) = noted(app)
    assert lines.count("<li>") == MOST_NOTES + 1
    assert "and 28 more like these" in lines


def test_run_that_only_begins_like_one_is_junk() -> None:
    read = page_domains("equivalence", CHECKPOINT)["eq_run"].read
    name = f"{RUNS[0].pattern}, T = 4: prefill 3 + decode 1"
    assert read(name) == {"eq_run": name}
    assert read(f"{RUNS[0].pattern}, T = 4: prefill 3 + decode 2") is None
    assert read(f"{RUNS[0].pattern}, T = 4: nonsense") is None
