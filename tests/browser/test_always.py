"""The address of the pages stays: sign-ins and links outlast the program, and an open page says that it has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import Interface, program, with_memory
from tests.browser.test_live import NEWS, tell

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CLOSED = "The memory is closed: run mcp-memory ui to open it again."


def pages_of(address: str) -> str:
    return address.partition("#")[0].rstrip("/")


def test_an_open_page_says_that_the_program_has_ended_and_goes_on_when_it_runs_again(
    browser: Browser, own_home: Path
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        with program(own_home) as address:
            page.goto(address)
            page.wait_for_selector("header nav")
            page.goto(pages_of(address) + "/memory")
            page.wait_for_selector("main h1")
        page.get_by_role("status").get_by_text(CLOSED).wait_for()
        with_memory(own_home, tell)
        with program(own_home):
            page.get_by_text(CLOSED).wait_for(state="detached")
            page.locator("main").get_by_text(NEWS).first.wait_for(state="attached")


def test_a_link_waits_for_the_sign_in_of_another_tab(browser: Browser, own_home: Path) -> None:
    with browser.new_context() as context, program(own_home) as address:
        link = pages_of(address) + "/people"
        waiting = context.new_page()
        waiting.goto(link)
        waiting.wait_for_selector("#entry")
        context.new_page().goto(address)
        waiting.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        waiting.wait_for_selector("header nav")
        assert waiting.url == link


def test_no_key_stays_in_the_address(browser: Browser, own_home: Path) -> None:
    with browser.new_context() as context:
        for _ in range(2):  # the second finds the browser signed in
            with program(own_home) as address:
                page = context.new_page()
                page.goto(address)
                page.wait_for_selector("header nav")
                assert page.url == pages_of(address) + "/"


def test_an_export_says_how_far_it_is_and_is_downloaded(own_ui: Interface) -> None:
    with own_ui.page("/home") as page:
        page.get_by_role("button", name="Make an export").click()
        link = page.get_by_role("link", name="Download the export")
        link.wait_for()  # the page is not loaded again
        with page.expect_download() as download:
            link.click()
        assert download.value.suggested_filename.startswith("mcp-memory-default-")


def test_without_scripts_an_export_is_made_and_downloaded_too(own_ui: Interface) -> None:
    with own_ui.page("/home", javascript=False) as page:
        page.get_by_role("button", name="Make an export").click()
        while page.get_by_role("link", name="Show how far it is").is_visible():
            page.get_by_role("link", name="Show how far it is").click()
            page.reload()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the export").click()
        assert Path(download.value.path()).stat().st_size > 1000
