"""Without JavaScript: the key is pasted, and every form does what it says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_memory.core.types import Fact
from mcp_memory.service.memory import Memory
from tests.browser.harness import Interface, program, with_memory

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_the_key_is_pasted_and_opens_the_memory_once(browser: Browser, demo_home: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_home, tmp_path / "home")
    with program(tmp_path / "home") as address:
        place, _, key = address.partition("#")
        for opens in (True, False):
            context = browser.new_context(java_script_enabled=False)
            page = context.new_page()
            page.goto(place)
            page.fill("input[name=key]", key)
            page.click("main form button")
            page.wait_for_load_state()
            assert (page.locator("header nav").count() > 0) is opens
            context.close()


def test_what_is_told_is_stored_corrected_and_forgotten(own_ui: Interface) -> None:
    with own_ui.page("/", javascript=False) as page:
        page.fill("main form[action$='/do/remember'] input[name=text]", "Tamsin keeps bees <on the roof>.")
        page.click("main form[action$='/do/remember'] button")
        assert page.locator("main h1").inner_text() == "Tamsin keeps bees <on the roof>."
        first = own_ui.address(page.url).partition("?")[0]
        page.click("#correct > summary")
        page.fill("#correct textarea", "Tamsin kept bees until May.")
        page.check("#correct input[value=changed]")
        page.click("#correct button")
        second = own_ui.address(page.url).partition("?")[0]
        assert second != first
        page.goto(own_ui.url(f"/forget?ids={second[1:]}"))
        page.fill("input[name=reason]", "a test")
        page.click("main button.danger")
        forgotten = with_memory(own_ui.home, Memory.tombstones)[-1]
        assert (forgotten.ids, forgotten.reason) == ([second[1:]], "a test")
        page.goto(own_ui.url("/home"))
        page.locator(f"main form[action$='/do/undo']:has(input[value={forgotten.id}]) button").click()
        page.goto(own_ui.url(second))
        assert page.locator("main h1").inner_text() == "Tamsin kept bees until May."


def test_a_value_is_asked_for_in_the_form_and_an_end_is_undone(own_ui: Interface) -> None:
    statement = with_memory(own_ui.home, _lives_in_oslo)
    with own_ui.page(f"/{statement}", javascript=False) as page:
        page.click("#correct > summary")
        page.fill("#correct textarea", "Tamsin moved to the north.")
        page.check("#correct input[value=changed]")
        page.click("#correct button")
        assert page.locator("#correct textarea").input_value() == "Tamsin moved to the north."
        page.fill("#correct input[name=value]", "Bergen")
        page.click("#correct button")
        assert page.locator("main h1").inner_text() == "Tamsin moved to the north."
        page.click("summary:has-text('It ended')")
        page.click("main form[action$='/do/end'] button")
        assert "Ended " in page.locator("main").inner_text()
        page.locator("main form[action$='/do/undo_correction'] button").first.click()
        page.wait_for_load_state()
    (fact,) = [one for one in with_memory(own_ui.home, _facts) if one.valid_to is None]
    assert (fact.relation, fact.value) == ("lives_in", "Bergen")


async def _lives_in_oslo(memory: Memory) -> str:
    fact: dict[str, Any] = {"entity": "Tove", "relation": "lives in", "value": "Oslo"}
    return (await memory.remember("Tove lives in Oslo.", **fact, typed=True)).atom.id


async def _facts(memory: Memory) -> list[Fact]:
    return await memory.facts_about("Tove")


def test_several_items_are_released_at_once(own_ui: Interface) -> None:
    with own_ui.page("/review", javascript=False) as page:
        for box in page.locator("main input[type=checkbox]").all():
            box.check()
        page.locator("main button[value=released]").last.click()
        page.wait_for_load_state()
    assert [one.verdict for one in with_memory(own_ui.home, Memory.decided)] == ["released", "released"]


def test_a_canvas_is_folded_and_unfolded(own_ui: Interface) -> None:
    with own_ui.page("/002", javascript=False) as page:
        for box in page.locator("main input[name=nodes]").all()[:2]:
            box.check()
        page.locator("main form[action$='/do/fold'] button").first.click()
        page.wait_for_load_state()
        assert with_memory(own_ui.home, _canvas).groups
        page.locator("main form:has(input[value=unfold]) button").first.click()
        page.wait_for_load_state()
        assert not with_memory(own_ui.home, _canvas).groups


async def _canvas(memory: Memory) -> object:
    return await memory.canvas(2)


def test_a_backup_and_a_token_are_made_and_the_token_revoked(own_ui: Interface) -> None:
    with own_ui.page("/home", javascript=False) as page:
        page.locator("main form[action$='/do/backup'] button").click()
        page.wait_for_load_state()
        page.fill("main form[action$='/do/create_token'] input[name=name]", "laptop")
        page.locator("main form[action$='/do/create_token'] button").click()
        page.wait_for_selector("main .secret")
        page.goto(own_ui.url("/home"))
        page.locator("main form[action$='/do/revoke_token'] button").first.click()
        page.wait_for_load_state()
    assert list((own_ui.home / "backups").iterdir())
    assert all(token.revoked_at for token in with_memory(own_ui.home, Memory.tokens))


def test_erasing_for_good_needs_the_word(own_ui: Interface) -> None:
    with own_ui.page("/home", javascript=False, refusals=1) as page:
        for word, gone in (("purge it", False), ("PURGE", True)):
            page.goto(own_ui.url("/home"))
            page.locator("main input[name=tombstones]").first.check()
            page.locator("main summary", has_text="Erase for good").click()
            page.fill("main input[name=word]", word)
            page.locator("main button.danger").last.click()
            page.wait_for_load_state()
            assert bool(with_memory(own_ui.home, Memory.tombstones)[-1].purged) is gone
