"""A memory whose every text is an attack, in a real browser: all of it is text, and nothing happens.

Dialogs, errors on the console and requests to other origins fail every test of this folder (`Interface.context`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from mcp_memory.core.text import remove_hidden
from mcp_memory.ui import elements
from tests.browser.harness import HEIGHT, UNDRAWN, Interface, ask, crawled, interface, kind_of, with_memory
from tests.ui.hostile import PAYLOADS, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

OF_EACH_KIND = 3
ALLOWED = {
    "tags": sorted(tag.lower() for tag in elements._TAGS),  # pyright: ignore[reportPrivateUsage]
    "attributes": sorted(name.lower() for name in elements._ATTRIBUTES),  # pyright: ignore[reportPrivateUsage]
}
ALIEN = """((allowed, root = "body") => [...document.querySelector(root).querySelectorAll("*")].flatMap(element => [
    ...(allowed.tags.includes(element.tagName.toLowerCase()) ? [] : [`<${element.tagName}>`]),
    ...[...element.attributes]
      .filter(({name}) => !allowed.attributes.includes(name.toLowerCase()) && !/^(aria|data)-/.test(name))
      .map(({name, value}) => `${name}="${value}"`)
      .filter(one => !/^style="([-a-z]+: [0-9.]+px;( |"))+$/.test(one)),
  ]))"""
"""Yields tags and attributes that no page has. `map.js` sets styles, which are lengths in pixels."""


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Interface, Any]]:
    """The interface on a hostile memory, and where its payloads are shown."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    found = with_memory(home, fill, log_contents=True)
    with interface(browser, home, MCP_MEMORY_LOG_CONTENTS="true") as running:
        yield running, found


def test_a_hostile_memory_is_text_on_every_page(hostile: tuple[Interface, Any]) -> None:
    ui, _ = hostile
    pages = crawled(ui, of_each=OF_EACH_KIND).pages
    found: dict[str, list[str]] = {}
    with ui.context() as context:
        page = context.new_page()
        for address in [*pages, "/search?q=%3Cscript%3Ealert(1)%3C/script%3E"]:
            page.goto(ui.url(address))
            page.wait_for_selector("main h1")
            page.wait_for_selector(UNDRAWN, state="detached")
            page.keyboard.press("j")
            if alien := ask(page, f"{ALIEN}({ALLOWED})"):
                found[address] = alien
    assert found == {}
    assert {kind_of(address) for address in pages} >= {"item:statement", "item:turn", "result:result", "canvas:canvas"}


@pytest.mark.parametrize("place", ["turn", "held", "statement", "result"])
def test_payloads_are_shown_word_for_word(hostile: tuple[Interface, Any], place: str) -> None:
    ui, found = hostile
    with ui.context() as context:
        page = context.new_page()
        for name, address in found[place].items():
            page.goto(ui.url(address))
            text = page.locator("main").evaluate("main => main.textContent")
            assert shown(PAYLOADS[name]) in text, (name, address)


def shown(payload: str) -> str:
    """Return a text as a page can show it: no hidden characters, none that cannot be written."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", remove_hidden(payload))


def test_a_page_that_a_script_builds_anew_is_text_too(hostile: tuple[Interface, Any]) -> None:
    ui, _ = hostile
    with ui.page("/") as page:
        page.set_viewport_size({"width": 900, "height": HEIGHT})

        async def tell(memory: Any) -> bool:
            await memory.remember("<img src=x onerror=alert(2)> came later", typed=True)
            return True

        with_memory(ui.home, tell)
        page.locator("main").get_by_text("<img src=x onerror=alert(2)> came later").first.wait_for(state="attached")
        assert ask(page, f"{ALIEN}({ALLOWED})") == []
