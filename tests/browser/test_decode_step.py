"""The page on one decode step in a real browser: clicked cells, frames, the fold."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.harness import Server, Visit
from tinydec.figures.stages import STAGES
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.ui.lessons.decode_tasks import score_task

pytestmark = pytest.mark.browser
LINK = "decode_step?prompt=%3Cbos%3E+A&step=1"


def opened(visit: Visit) -> Visit:
    """The page by its link."""
    visit.open(LINK)
    return visit


def numbers(visit: Visit) -> str:
    """The formula of the chosen number, with its numbers."""
    return visit.page.locator(".td-numbers").first.inner_text()


def cell(page: Page, grid: str, row: int, column: int):
    return page.locator(f"table[data-grid='{grid}'] td[data-r='{row}'][data-c='{column}']").first


def clean(visit: Visit) -> None:
    assert visit.exceptions() == []
    assert visit.watch.console == []
    assert visit.watch.foreign == []


def to_stage(visit: Visit, key: str) -> None:
    visit.page.get_by_role("radio", name=key, exact=True).click()
    visit.idle()


def test_clicked_cell_is_explained_and_stays_marked(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = opened(visitor(server))
    to_stage(visit, "scores")
    assert numbers(visit).startswith("h.0.scores[0, 2, 0] = ")
    chosen = cell(visit.page, "h.0.scores@1@1", 0, 2)
    value = chosen.get_attribute("title") or ""
    chosen.click()
    visit.idle()
    assert numbers(visit).startswith("h.0.scores[1, 2, 2] = ")
    assert chosen.get_attribute("aria-selected") == "true"
    level = visit.page.locator(".st-key-level-1").inner_text()
    assert f"{float(value):.3f}"[:5].lstrip("-") in level
    assert "✓ float64 arithmetic" in level
    clean(visit)


def test_keyboard_walks_and_explains(server: Server, visitor: Callable[..., Visit]) -> None:
    visit = opened(visitor(server))
    cell(visit.page, "embedding@0@1", 0, 0).focus()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("Enter")
    visit.idle()
    assert numbers(visit).startswith("embedding[2, 1] = ")
    clean(visit)


def test_operand_opens_the_next_level(server: Server, visitor: Callable[..., Visit]) -> None:
    visit = opened(visitor(server))
    to_stage(visit, "norm")
    visit.page.locator(".st-key-level-1").get_by_role("radio").first.click()
    visit.idle()
    second = visit.page.locator(".st-key-level-2")
    assert "embedding[2, 0]" in second.inner_text()
    second.get_by_role("radio").last.click()
    visit.idle()
    assert "here the tree ends" in visit.page.locator(".st-key-level-3").inner_text()
    clean(visit)


def test_frames_step_without_the_server_and_their_cells_explain_too(
    server: Server, visitor: Callable[..., Visit]
) -> None:
    visit = visitor(server)
    sent: list[object] = []
    visit.page.on("websocket", lambda ws: ws.on("framesent", lambda data: sent.append(data)))  # noqa: PLW0108
    visit.open(LINK)
    to_stage(visit, "weights")
    before = len(sent)
    visit.page.locator("button.next").first.click()
    visit.page.wait_for_timeout(400)
    shown = visit.page.locator("output").first
    apart = "; the control above is at step 1 of 2"
    assert shown.inner_text() == f"step 2 of 2, decode: reads D{apart}"
    assert len(sent) == before
    cell(visit.page, "h.0.attention@0@2", 0, 3).click()
    visit.idle()
    assert len(sent) > before  # the same listener does see what goes to the server
    assert numbers(visit).startswith("h.0.attention[0, 3, 3] = ")
    assert shown.inner_text() == f"step 2 of 2, decode: reads D{apart}"
    clean(visit)


def test_every_stage_stands_above_the_fold(server: Server, visitor: Callable[..., Visit]) -> None:
    visit = opened(visitor(server))
    for stage in STAGES:
        to_stage(visit, stage.key)
        box = visit.page.locator(".grids").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, stage.key
    assert numbers(visit).startswith("logits[2, 0] = ")
    clean(visit)


def test_exercise_takes_the_core_s_answer(server: Server, visitor: Callable[..., Visit]) -> None:
    visit = opened(visitor(server, height=3000))
    answer = float(score_task(load_checkpoint(FROZEN_PATH), random.Random("decode.score/0")).answer)
    block = visit.page.locator(".st-key-exercise-decode-score")
    for given, verdict in ((answer + 1, "Not yet"), (answer, "Right.")):
        block.get_by_label("Your answer").fill(f"{given:.2f}")
        block.get_by_label("Your answer").press("Enter")
        visit.idle()
        block.get_by_role("button", name="Check").click()
        visit.idle()
        assert verdict in block.inner_text()
    clean(visit)
