"""The eight interactions, by keyboard alone: keys of the page, Tab, Enter, Space and typing; no pointer is used."""

from __future__ import annotations

import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_memory.service.memory import Memory
from tests.browser.harness import Interface, interface, with_memory
from tests.browser.homes import FORGOTTEN, HELD

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def press_until(page: Page, key: str, reached: str, *, most: int = 200) -> None:
    """Press a key until the element with the focus matches a selector."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement?.matches(selector)", reached):
            return
    pytest.fail(f"{most} times {key} did not reach {reached}")


def tab_to(page: Page, words: str, tag: str = "*") -> None:
    """Press Tab until the focus is on an element with these words."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate(
            "([words, tag]) => { const it = document.activeElement; return it?.matches(tag) && it.textContent.trim() === words; }",
            [words, tag],
        ):
            return
    pytest.fail(f"Tab did not reach {words!r}")


def follow(page: Page, key: str = "Enter") -> None:
    """Press a key that leads to another page, and wait for that page."""
    with page.expect_navigation():
        page.keyboard.press(key)
    page.wait_for_selector("main h1")


def test_slash_leads_to_the_field_of_the_page_of_a_search(ui: Interface) -> None:
    with ui.page("/search?q=boat", width=800) as page:
        page.keyboard.press("/")
        page.keyboard.type("why was the night boat lost")
        follow(page)
        assert "/search?q=why" in page.url


def test_slash_searches_and_j_k_and_enter_open_a_hit(ui: Interface) -> None:
    with ui.page("/conversations") as page:
        page.keyboard.press("/")
        page.keyboard.type("why was the night boat lost")
        follow(page)
        assert "/search?q=why" in page.url
        first = page.locator("[data-rows] > *").first
        assert first.evaluate("row => row === document.activeElement")
        for key in ("ArrowDown", "j", "k", "ArrowUp"):
            page.keyboard.press(key)
        assert first.evaluate("row => row === document.activeElement")
        target = first.locator("a[href]").first.get_attribute("href")
        follow(page)
        assert page.url.startswith(ui.origin + str(target))


def test_e_leads_from_a_statement_to_the_words_that_it_is_based_on(ui: Interface) -> None:
    async def proven(memory: Memory) -> tuple[str, str]:
        atom = next(one for one in await memory.atoms() if one.evidence and one.text.startswith("Tamsin has a runner"))
        return atom.id, str(atom.evidence)

    statement, turn = with_memory(ui.home, proven)
    with ui.page(f"/{statement}") as page:
        follow(page, "e")
        assert ui.address(page.url) == f"/{turn}?for={statement}"
        assert page.locator("mark").first.is_visible()


def test_e_and_c_lead_from_a_row_to_the_evidence_and_the_correction_and_the_row_is_kept(ui: Interface) -> None:
    with ui.page("/memory") as page:
        for _ in range(200):
            page.keyboard.press("j")
            if page.evaluate("document.activeElement.querySelector('a[href]')?.pathname.match(/\\/a\\d+$/)"):
                break
        row = page.evaluate("document.activeElement.innerText")
        for key, part in (("e", "#evidence"), ("c", "#correct")):
            follow(page, key)
            assert page.url.endswith(part)
            page.go_back()
            page.wait_for_function("text => document.activeElement.innerText === text", arg=row)


def test_e_on_a_message_that_was_found_leads_to_it(ui: Interface) -> None:
    with ui.page("/search?q=night+boat&in=turn") as page:
        page.keyboard.press("j")
        follow(page, "e")
        assert re.search(r"/t\d+#evidence$", page.url)


def test_j_begins_with_the_first_line_of_a_page(ui: Interface) -> None:
    with ui.page("/memory") as page:
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement === document.querySelector('main .prose li')")
        follow(page)
        assert re.search(r"/a\d+$", page.url)


def test_after_g_every_page_of_the_navigation_shows_its_letter(ui: Interface) -> None:
    letters = "link => getComputedStyle(link, '::after').content.replaceAll('\"', '')"
    with ui.page("/") as page:
        shown = f"[...document.querySelectorAll('#menu nav a')].map({letters})"
        assert set(page.evaluate(shown)) == {"none"}
        page.keyboard.press("g")
        assert len(set(page.evaluate(shown)) - {"none"}) == page.locator("#menu nav a").count()
        follow(page, "o")
        assert ui.address(page.url) == "/map"
        page.keyboard.press("g")
        follow(page, "k")
        assert ui.address(page.url) == "/tasks"


def test_g_goes_to_the_pages_and_the_footer_opens_the_list_of_keys(ui: Interface) -> None:
    with ui.page("/") as page:
        for key, path in (("p", "/people"), ("2", "/memory"), ("r", "/review")):
            page.keyboard.press("g")
            follow(page, key)
            assert ui.address(page.url) == path
        tab_to(page, "Keys ?", "button")
        page.keyboard.press("Enter")
        assert page.locator("dialog#keys").is_visible()


def test_ctrl_enter_sends_the_form(ui: Interface) -> None:
    with ui.page("/people") as page:
        press_until(page, "Tab", "main [type=search]")
        page.keyboard.type("a")
        follow(page, "Control+Enter")
        assert "/people?q=a" in page.url


def test_a_wrong_statement_is_corrected(own_ui: Interface) -> None:
    with own_ui.page(f"/{with_memory(own_ui.home, current('Tamsin swims'))}") as page:
        old = page.locator("main h1").inner_text()
        press_until(page, "Tab", "#correct > summary")
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.matches('#correct textarea')")
        page.keyboard.press("Control+a")
        page.keyboard.type("Tamsin drinks coffee again.")
        press_until(page, "Tab", "#correct [type=radio]")
        page.keyboard.press("Space")
        tab_to(page, "Save", "button")
        follow(page)
        assert page.locator("main h1").inner_text() == "Tamsin drinks coffee again."
        assert old in page.locator("main").inner_text()


def current(text: str) -> Callable[[Memory], Awaitable[str]]:
    """Return what finds the id of a statement by the begin of its text."""

    async def find(memory: Memory) -> str:
        return next(atom.id for atom in await memory.atoms() if atom.text.startswith(text))

    return find


def test_a_correction_is_sent_and_undone_without_leaving_the_letters(own_ui: Interface) -> None:
    with own_ui.page(f"/{with_memory(own_ui.home, current('Tamsin swims'))}") as page:
        old = page.locator("main h1").inner_text()
        page.keyboard.press("c")
        page.wait_for_function("document.activeElement.matches('#correct textarea')")
        page.keyboard.press("Control+a")
        page.keyboard.type("Tamsin drinks coffee again.")
        press_until(page, "Tab", "#correct [type=radio]")
        page.keyboard.press("Space")
        follow(page, "Control+Enter")
        assert old in page.locator("main .note.ok").inner_text()
        follow(page, "u")
        assert page.locator("main h1").inner_text() == old
        assert "Undone" in page.locator("main .note.ok").inner_text()


def test_escape_closes_the_form_of_a_correction_and_cancel_follows_save(ui: Interface) -> None:
    with ui.page(f"/{with_memory(ui.home, current('Tamsin has a runner'))}") as page:
        for key, field in (("c", "#correct textarea"), ("x", "#ended input[type=date]")):
            page.keyboard.press(key)
            page.wait_for_function("field => document.activeElement.matches(field)", arg=field)
            tab_to(page, "Save", "button")
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.textContent") == "Cancel"
            page.keyboard.press("Escape")
            assert page.locator(".acts > [open]").count() == 0
            assert page.evaluate("document.activeElement.matches('.acts summary')")


def test_f_leads_to_forgetting_where_ctrl_enter_forgets_and_u_brings_back(own_ui: Interface) -> None:
    with own_ui.page("/a7") as page:
        said = page.locator("main h1").inner_text()
        follow(page, "f")
        follow(page, "Control+Enter")
        assert with_memory(own_ui.home, Memory.tombstones)[-1].ids == ["a7"]
        follow(page, "u")
        assert page.locator("main h1").inner_text() == said


def test_what_an_agent_got_is_said_to_be_wrong_and_that_is_undone(own_ui: Interface) -> None:
    async def recalled(memory: Memory) -> int:
        return next(entry.id for entry in await memory.recalls() if entry.words and entry.ids[0][0] in "at")

    with own_ui.page(f"/recall/{with_memory(own_ui.home, recalled)}") as page:
        press_until(page, "j", ":has([data-key=w])")
        for key, is_wrong in (("w", True), ("u", False)):
            follow(page, key)
            assert ("It comes later for questions" in page.locator("main").inner_text()) is is_wrong


def test_forgetting_shows_what_goes_and_is_undone(own_ui: Interface) -> None:
    with own_ui.page("/a7") as page:
        said = page.locator("main h1").inner_text()
        tab_to(page, "Forget …", "a")
        follow(page)
        assert said in page.locator("main").inner_text()
        tab_to(page, page.locator("main button.danger").inner_text(), "button")
        follow(page)
        tombstones = with_memory(own_ui.home, Memory.tombstones)
        assert tombstones[-1].ids == ["a7"]
        page.goto(own_ui.url(f"/{tombstones[-1].id}"))
        tab_to(page, "Bring it back", "button")
        follow(page)
        page.goto(own_ui.url("/a7"))
        assert page.locator("main h1").inner_text() == said


def test_a_held_item_is_released_and_another_kept(own_ui: Interface) -> None:
    with own_ui.page("/review") as page:
        page.keyboard.press("j")
        follow(page, "r")
        page.keyboard.press("j")
        follow(page, "q")
        decided = {one.id: one.verdict for one in with_memory(own_ui.home, Memory.decided)}
        assert sorted(decided.values()) == ["kept", "released"]
        assert HELD in page.locator("main").inner_text()


def test_an_entity_is_seen_as_of_an_earlier_day(ui: Interface) -> None:
    with ui.page("/entity/user") as page:
        press_until(page, "Tab", "input[type=range]")
        page.keyboard.press("Home")
        press_until(page, "Tab", "button")
        follow(page)
        assert "day=0" in page.url
        assert "12 Oct 2026" in page.locator("main").inner_text()


def test_a_step_leads_to_its_result_and_to_a_line_of_it(ui: Interface) -> None:
    with ui.page("/001") as page:
        page.keyboard.press("j")
        follow(page)
        assert re.search(r"/001-[NF]", page.url)
        for _ in range(3):
            if "/r-" in page.url:
                break
            press_until(page, "Tab", "a[href*='/r-']")
            follow(page)
        assert "/r-" in page.url
        press_until(page, "Tab", "main pre a[href], main ol a[href], main .lines a[href]")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"(at|lines|from)=\d|#"))


def test_the_extractor_is_paused_and_resumed(browser: Browser, demo_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo_home, home)
    model = {"MCP_MEMORY_LLM": "openai/none", "MCP_MEMORY_LLM_BASE_URL": "http://127.0.0.1:9/v1"}
    with interface(browser, home, **model) as ui, ui.page("/savings") as page:
        for words, is_paused in (("Pause models", True), ("Resume", False)):
            tab_to(page, words, "button")
            follow(page)
            status = with_memory(ui.home, Memory.status)
            assert bool(status["pyramid"]["paused"]) is is_paused


def test_what_was_forgotten_is_told_at_home(ui: Interface) -> None:
    with ui.page("/home") as page:
        text = page.locator("main").inner_text()
        assert "it was moved" in text
        assert FORGOTTEN in text
