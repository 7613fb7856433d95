"""The page of changes: old and new, by period and page by page, with and without a model."""

from __future__ import annotations

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.memory import Memory
from mcp_memory.ui.elements import text_of
from mcp_memory.ui.times import day_of, day_text
from tests.ui.holding import at, reading
from tests.ui.shown import elements, forms, links, send, text


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


async def test_a_statement_that_ended_is_listed_though_nothing_is_in_its_place_until_that_is_undone(
    maya: Memory,
) -> None:
    await maya.end_statement("a2")
    page, today = await at(maya, "/changes"), await at(maya, "/")
    assert "Maya's left knee hurts.Ended, nothing in its place." in text(page)
    assert "Maya's left knee hurts.Ended, nothing in its place." in text(today)
    assert "1 changed" in text(today)
    (undo,) = [form for form in forms(page) if form.action == "/do/undo_correction"]
    await send(maya, undo)
    assert "Nothing changed" in text(await at(maya, "/changes"))
    assert "changed" not in text(await at(maya, "/"))


async def test_a_change_is_listed_under_the_day_on_which_it_became_known(memory: Memory) -> None:
    old = (await memory.remember("Maya lives in Lisbon.", typed=True, valid_from="2019-03-01")).atom
    new = await memory.remember("Maya lives in Porto.", supersedes=[old.id], typed=True, valid_from="2020-05-17")
    page = await at(memory, "/changes")
    assert [text_of(each) for each in elements(page) if each.tag == "h2"] == [day_text(day_of(new.atom.learned_at))]
    assert "Maya lives in Porto.since 17 May 2020" in text(page)
    await memory.remember("Maya lives in Faro.", supersedes=[new.atom.id], typed=True)
    assert text(await at(memory, "/changes")).count("Undo") == 1  # only what nothing has replaced


async def test_a_correction_of_what_was_never_true_says_so_and_is_not_dated(memory: Memory) -> None:
    old = (await memory.remember("Maya lives in Lisbon.", typed=True, valid_from="2019-03-01")).atom
    await memory.remember("Maya lives in Porto.", supersedes=[old.id], typed=True, valid_from="2019-03-01")
    page = text(await at(memory, "/changes"))
    assert "was wrong all along" in page
    assert "2019" not in page


async def test_only_what_was_stated_is_undone_here_and_only_by_those_who_may(maya: Memory) -> None:
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    assert [form.action for form in forms(await at(maya, "/changes"))] == ["/do/undo_correction"]
    assert not forms(await reading(maya, "/changes"))


async def test_what_was_forgotten_is_no_change(memory: Memory) -> None:
    old = (await memory.remember("Maya lives in Lisbon.", typed=True)).atom
    new = (await memory.remember("Maya lives in Porto.", supersedes=[old.id], typed=True)).atom
    assert {f"/{old.id}", f"/{new.id}"} <= set(links(await at(memory, "/changes")))
    await memory.forget([old.id])
    assert f"/{old.id}" not in links(await at(memory, "/changes"))


async def test_a_cursor_of_something_else_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await at(memory, "/changes?cursor=t1")
