"""Every page that links lead to, light and dark, wide and narrow: readable by all, nothing cut off, no heavier than said.

That no page opens a dialog, writes an error to the console or asks another origin is looked at by each test of this
folder: `Interface.context` says so when it ends.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from mcp_memory.ui.pages import ADDRESSES
from tests.browser.harness import THEMES, UNDRAWN, WIDTHS, Crawl, Interface, crooked, kind_of, violations

if TYPE_CHECKING:
    from playwright.sync_api import Response

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

KB = 1000
OF_EACH_KIND = 3  # pages of one kind that are looked at; they differ by what the memory holds
MOST_OF_A_PAGE = 80 * KB
MOST_OF_RAW_RESULTS = 140 * KB  # a window of a result has up to 100 kB of its lines


def some(pages: dict[str, str]) -> list[str]:
    """Return a few addresses of each kind: of the smallest pages and of the largest."""
    chosen: list[str] = []
    for kind in {kind_of(address) for address in pages}:
        same = sorted((address for address in pages if kind_of(address) == kind), key=lambda one: len(pages[one]))
        chosen += dict.fromkeys([same[0], *same[-OF_EACH_KIND + 1 :]])
    return sorted(chosen)


def test_links_lead_to_every_kind_of_page_and_nowhere_else(crawl: Crawl) -> None:
    assert crawl.dead == {}
    assert set(ADDRESSES.values()) - set(crawl.kinds) == set()


@pytest.mark.parametrize(("theme", "width"), list(product(THEMES, WIDTHS)))
def test_no_page_breaks_wcag_or_is_out_of_shape(ui: Interface, pages: dict[str, str], theme: str, width: int) -> None:
    found: dict[str, list[str]] = {}
    with ui.context(theme=theme, width=width) as context:
        page = context.new_page()
        for address in some(pages):
            page.goto(ui.url(address))
            page.wait_for_selector("main h1")
            page.wait_for_selector(UNDRAWN, state="detached")
            if wrong := [*crooked(page), *violations(page)]:
                found[address] = wrong
    assert found == {}


def test_no_page_is_heavier_than_promised(pages: dict[str, str]) -> None:
    heavy = {
        address: size
        for address, html in pages.items()
        if (size := len(html.encode()))
        > (MOST_OF_RAW_RESULTS if kind_of(address) == "result:result" else MOST_OF_A_PAGE)
    }
    assert heavy == {}


def test_styles_and_scripts_are_as_light_as_promised(ui: Interface) -> None:
    sizes = {"stylesheet": 0, "script": 0}
    answers: list[Response] = []
    with ui.context() as context:
        page = context.new_page()
        page.on("response", lambda answer: answers.append(answer))
        page.goto(ui.url("/"))
        page.wait_for_load_state("load")
        for answer in answers:
            kind = answer.request.resource_type
            sizes[kind] = sizes.get(kind, 0) + (len(answer.body()) if kind in sizes else 0)
    assert 0 < sizes["stylesheet"] <= 27 * KB
    assert 0 < sizes["script"] <= 27 * KB


def test_every_page_reads_the_same_without_javascript(ui: Interface, pages: dict[str, str]) -> None:
    words: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for javascript in words:
        with ui.context(javascript=javascript) as context:
            page = context.new_page()
            for address in some(pages):
                page.goto(ui.url(address))
                words[javascript][address] = page.locator("main").inner_text() if javascript else ""
                if not javascript:
                    words[javascript][address] = page.locator("main").inner_text()
    assert words[False].keys() == words[True].keys()
    assert all(words[False].values())


def test_pictures_and_words_stand_still_for_readers_who_ask_for_it(ui: Interface, pages: dict[str, str]) -> None:
    moving: dict[str, int] = {}
    with ui.context(still=True) as context:
        page = context.new_page()
        for address in some(pages):
            page.goto(ui.url(address))
            if count := page.evaluate("document.getAnimations().length"):
                moving[address] = count
    assert moving == {}
