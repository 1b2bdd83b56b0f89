"""Any query string gives a working page, on every page."""

from __future__ import annotations

import random
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.page_checks import ROOT, sound
from tests.ui.test_parameters import random_query
from tinydec.ui.pages import CATALOGUE, PageInfo

pytestmark = pytest.mark.filterwarnings("default")

PAGES = CATALOGUE.existing()
QUERIES_PER_PAGE = -(-200 // len(PAGES))
JUNK = (
    "",
    "nonsense",
    "-1",
    "0",
    "1e400",
    "nan",
    "999999999999",
    "true",
    "💥",
    "<b>",
    "a,b",
    "F16",
)


def own_query(info: PageInfo, rng: random.Random) -> dict[str, list[str]]:
    """Junk and near-misses for the parameters that pages bind for themselves."""
    names = [n for n in (*info.parameters, "faults", "guards_off") if rng.random() < 0.5]
    return {name: [rng.choice(JUNK) for _ in range(rng.choice((1, 1, 2)))] for name in names}


def opened(info: PageInfo, query: dict[str, list[str]]) -> AppTest:
    """The page as a cold server opens it: its script first, and app.py by its guard."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params.update(query)
    if info is not PAGES[0]:
        app.switch_page(info.path)
    return app.run()


@pytest.mark.parametrize("info", PAGES, ids=lambda info: info.url_path)
def test_random_queries_each_give_the_page(info: PageInfo) -> None:
    rng = random.Random(info.url_path)
    noted = 0
    for _ in range(QUERIES_PER_PAGE):
        query = parse_qs(random_query(rng), keep_blank_values=True) | own_query(info, rng)
        app = opened(info, query)
        sound(app)
        assert app.title[0].value == info.title, query
        noted += any('class="td-notes"' in h.proto.body for h in app.get("html"))
    assert noted  # some of it was junk
