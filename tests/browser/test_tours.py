"""Tours through the pages: the shared controls stay in force and in the URL all the way."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.browser.harness import Server, Visit

pytestmark = pytest.mark.browser

STATE = {
    "prompt": "<bos> X",
    "policy": "sample",
    "temperature": "0.7",
    "top_k": "3",
    "top_p": "0.9",
    "seed": "7",
    "step": "1",
}
LINK = "prompt=%3Cbos%3E+X&policy=sample&temperature=0.7&top_k=3&top_p=0.9&seed=7&step=1"


def query(visit: Visit) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(visit.page.url).query))


@pytest.mark.parametrize(
    "tour",
    [
        ["decoding_policy", "3 Prefill and decode", "4 KV cache", "Home"],
        ["", "1 Generation loop", "2 Decoding policy", "3 Prefill and decode", "6 Positions"],
        ["memory", "2 Decoding policy", "7 Equivalence", "2 Decoding policy", "Fault lab"],
        ["evidence", "Review and exercises", "10 Audit", "9 Batches and stopping", "5 One decode"],
    ],
    ids=lambda tour: tour[0] or "home",
)
def test_every_page_of_a_tour_has_the_whole_state_in_its_url(
    server: Server, visitor: Callable[..., Visit], tour: list[str]
) -> None:
    visit = visitor(server)
    visit.open(f"{tour[0]}?{LINK}")
    for title in tour[1:]:
        visit.go_to(title)
        assert query(visit) == STATE, title
    visit.page.reload()
    visit.idle()
    assert query(visit) == STATE
    assert visit.notes() == []
    assert visit.watch.console == []


@pytest.mark.parametrize("start", ["", "generation_loop", "kv_cache", "decoding_policy"])
@pytest.mark.parametrize("wait", [0, 150, 400])
def test_click_on_a_page_before_the_first_has_loaded_keeps_the_links_state(
    server: Server, visitor: Callable[..., Visit], start: str, wait: int
) -> None:
    visit = visitor(server)
    visit.page.goto(f"{visit.url}/{start}?{LINK}")
    link = visit.page.get_by_test_id("stSidebarNavLink").filter(has_text="3 Prefill").first
    link.wait_for(state="visible")
    visit.page.wait_for_timeout(wait)
    link.click()
    visit.page.wait_for_url("**/prefill_decode**")
    visit.idle(800)
    assert query(visit) == STATE
    visit.go_to("6 Positions")
    assert query(visit) == STATE
    assert visit.exceptions() == []


def test_back_to_a_page_with_the_defaults_is_not_overruled(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(server)
    visit.open("generation_loop")
    visit.go_to("6 Positions")
    visit.page.get_by_text("sample", exact=True).click()
    visit.idle()
    assert query(visit) == {"policy": "sample"}
    visit.page.go_back()
    visit.idle()
    assert visit.page.locator("h1").inner_text() == "1 Generation loop"
    assert query(visit) == {}


def test_click_on_a_page_from_a_changed_field_keeps_the_change(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(server)
    visit.open("generation_loop?prompt=%3Cbos%3E+X&policy=sample", settle=800)
    link = visit.page.get_by_test_id("stSidebarNavLink").filter(has_text="6 Positions").first
    visit.page.get_by_label("Prompt", exact=True).fill("<bos>")
    link.click()  # leaving the field sends the change, the click overtakes its run
    visit.page.wait_for_url("**/positions**")
    visit.idle(800)
    assert visit.page.get_by_label("Prompt", exact=True).input_value() == "<bos>"
    assert query(visit) == {"policy": "sample"}
