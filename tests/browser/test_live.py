"""What another process changes is on an open page, and an open page hinders no writer."""

from __future__ import annotations

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from tests.browser.harness import Interface, with_memory

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NEWS = "The lighthouse at Hellesund is painted red."
QUESTION = "What is the keeper of the lighthouse called?"


async def tell(memory: Memory) -> bool:
    await memory.remember(NEWS, typed=True)
    await memory.record_turns([NewTurn(role="user", content=QUESTION)], session="keeper")
    await memory.recall(QUESTION, session="keeper")
    return True


@pytest.mark.parametrize(
    ("address", "words"), [("/", NEWS), ("/activity", NEWS), ("/live", QUESTION), ("/conversations", "keeper")]
)
def test_a_change_by_another_process_is_on_the_page(own_ui: Interface, address: str, words: str) -> None:
    with own_ui.page(address) as page:
        page.wait_for_selector("main h1")
        assert words not in page.locator("main").inner_text()
        with_memory(own_ui.home, tell)
        page.locator("main").get_by_text(words, exact=False).first.wait_for(state="attached")


def test_what_a_reader_is_writing_stays_when_the_page_changes(own_ui: Interface) -> None:
    field = "main form[action$='/do/remember'] input[name=text]"
    with own_ui.context() as context:
        written, other = context.new_page(), context.new_page()
        written.goto(own_ui.url("/"))
        written.fill(field, "Half a sen")
        other.goto(own_ui.url("/"))
        with_memory(own_ui.home, tell)
        other.locator("main").get_by_text(NEWS).first.wait_for(state="attached")
        assert written.input_value(field) == "Half a sen"
        written.fill(field, "")
        written.locator("main h1").click()
        written.locator("main").get_by_text(NEWS).first.wait_for(state="attached")


def test_open_pages_hinder_no_writer(own_ui: Interface) -> None:
    with own_ui.context() as context:
        for address in ("/", "/live", "/savings", "/home", "/conversations"):
            context.new_page().goto(own_ui.url(address))

        async def write(memory: Memory) -> int:
            for number in range(50):
                await memory.record_turns([NewTurn(role="user", content=f"Turn {number}")], session="writer")
            return len(await memory.session_turns("writer"))

        assert with_memory(own_ui.home, write) == 50
