"""Home, search, an item and a form in a real browser, on a small memory: the part of `make ui` that each change runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from tests.browser.harness import interface, with_memory

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.smoke, pytest.mark.timeout(120)]


async def fill(memory: Memory) -> None:
    said = [
        NewTurn(role="user", content="Why was the night boat late?"),
        NewTurn(role="assistant", content="The night boat was late because of fog."),
    ]
    await memory.record_turns(said, session="harbour")


def test_a_person_searches_opens_a_hit_and_adds_a_statement_at_home(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with_memory(home, fill)
    with interface(browser, home) as ui, ui.page("/") as page:
        page.keyboard.press("/")
        page.keyboard.type("fog")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        with page.expect_navigation():
            page.locator("[data-rows] a[href]").first.click()
        assert "The night boat was late because of fog." in page.locator("main").inner_text()
        page.goto(ui.url("/"))
        page.fill("main form[action$='/do/remember'] input[name=text]", "Tamsin keeps bees.")
        with page.expect_navigation():
            page.click("main form[action$='/do/remember'] button")
        assert "Tamsin keeps bees." in page.locator("main").inner_text()
