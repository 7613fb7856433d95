"""The page of changes: old and new, by period and page by page, with and without a model."""

from __future__ import annotations

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.memory import Memory
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at
from tests.ui.shown import elements, links, text


async def test_without_a_change_it_says_so(memory: Memory) -> None:
    assert "Nothing changed in the last 14 days." in text(await at(memory, "/changes?days=14"))


async def test_many_changes_come_page_by_page_the_newest_first(memory: Memory) -> None:
    id = (await memory.remember("Maya owns 0 books.", typed=True)).atom.id
    for number in range(1, 62):
        id = (await memory.remember(f"Maya owns {number} books.", supersedes=[id], typed=True)).atom.id
    page, old = await at(memory, "/changes?days=7"), list[str]()
    while True:
        old += [text_of(each) for each in elements(page) if each.tag == "del"]
        following = [link for link in links(page) if "cursor=" in link]
        if not following:
            break
        assert "days=7" in following[0]
        page = await at(memory, following[0])
    assert old == [f"Maya owns {number} books." for number in reversed(range(61))]


async def test_what_was_forgotten_is_no_change(memory: Memory) -> None:
    old = (await memory.remember("Maya lives in Lisbon.", typed=True)).atom
    new = (await memory.remember("Maya lives in Porto.", supersedes=[old.id], typed=True)).atom
    assert {f"/{old.id}", f"/{new.id}"} <= set(links(await at(memory, "/changes")))
    await memory.forget([old.id])
    assert f"/{old.id}" not in links(await at(memory, "/changes"))


async def test_a_cursor_of_something_else_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await at(memory, "/changes?cursor=t1")
