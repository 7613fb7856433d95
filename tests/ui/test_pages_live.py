"""The live page: what happened last, with links, and who recalled what."""

from __future__ import annotations

from pathlib import Path

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.ui.components import Page
from tests.ui.holding import at, reading
from tests.ui.shown import elements, links, text


async def test_what_happened_is_a_list_that_the_script_refreshes(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="<b>The boiler</b> leaks")], session="the talk")
    await memory.remember("The boiler leaks oil", session="the talk", typed=True)
    stored = await memory.offload_tool_result("Bash", "line\n" * 400, session="the talk")
    gone = (await memory.remember("A mistake", typed=True)).atom
    forgotten = await memory.forget([gone.id], reason="wrong", dry_run=False)
    page = await at(memory, "/live")
    (live,) = [one for one in elements(page) if "data-live" in one.attributes]
    shown = Page(title="", body=(live,))
    assert {"/t1", "/a1", f"/{stored.ref}", f"/{forgotten.tombstone}", "/session/the%20talk"} <= set(links(shown))
    assert "<b>The boiler</b> leaks" in text(shown)
    for what in ("turn stored", "statement stored", "result kept", "forgotten"):
        assert what in text(shown)


async def test_recalls_name_their_rows_session_and_tokens(memory: Memory) -> None:
    told = (await memory.remember("The night boat sails at two", typed=True)).atom
    bundle = await memory.recall("When does the night boat sail?", session="s")
    page = await at(memory, "/live")
    assert links(page).count(f"/{told.id}") >= 3  # the statement, the recall in the list, the recall in the table
    assert f"{bundle.tokens}" in text(page)
    assert "When does the night boat sail?" not in text(page)


async def test_the_words_of_a_recall_are_shown_where_they_are_logged(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm="none", log_contents=True) as memory:
        await memory.remember("The night boat sails at two", typed=True)
        await memory.recall("When does the night boat sail?")
        assert "When does the night boat sail?" in text(await at(memory, "/live"))


async def test_the_owner_sees_who_is_connected_and_others_do_not(memory: Memory) -> None:
    assert "Connected" in text(await at(memory, "/live", is_owner=True))
    assert "Connected" not in text(await reading(memory, "/live"))
