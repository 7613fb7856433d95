"""The first page: what is new and what is next, with a model and without one."""

from __future__ import annotations

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at, reading
from tests.ui.shown import elements, forms, links, send, text


def headings(page: object) -> list[str]:
    return [text_of(each) for each in elements(page) if each.tag == "h2"]  # pyright: ignore[reportArgumentType]


async def test_it_shows_what_is_new_and_leads_to_it(maya: Memory) -> None:
    page = await at(maya, "/")
    assert page.title == "Today"
    assert "2 new statements" in text(page)
    assert {"/a1", "/a2", "/persona", "/conversations"} <= set(links(page))


async def test_the_number_of_new_statements_leads_to_a_list_of_them(maya: Memory) -> None:
    await maya.remember("Maya plays the cello.", valid_from="2019-09-03", typed=True)
    page = await at(maya, "/")
    assert "3 new statements" in text(page)
    new = next(link for link in links(page) if "learned=" in link)
    assert "3 statements learned since" in text(await at(maya, new))
    assert "No statement passes" in text(await at(maya, "/memory?learned=2030-01-01"))


async def test_a_statement_is_typed_on_it_and_its_kind_is_left_to_the_memory(maya: Memory) -> None:
    (form,) = forms(await at(maya, "/"))
    assert await send(maya, form, text="Maya plays the cello.") == "/a3"
    assert not forms(await reading(maya, "/"))


async def test_a_change_is_shown_as_old_and_new(maya: Memory) -> None:
    done = await maya.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    page = await at(maya, "/")
    assert "Maya lives in Lisbon." in [text_of(each) for each in elements(page) if each.tag == "del"]
    assert f"/{done.atom.id}" in links(page)
    assert "1 changed" in text(page)
    changes = await at(maya, next(link for link in links(page) if link.startswith("/changes?")))
    assert text(changes).endswith("Maya lives in Lisbon.Maya lives in Porto.21 Nov 2026")


async def test_conversations_alone_fill_it(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="assistant", content="The night ferry leaves at nine.")], session="trip")
    page = await at(memory, "/")
    assert headings(page) == ["Conversations"]
    assert "nothing new" in text(page)
    assert "/session/trip" in links(page)
    assert "What a language model would add" in text(page)


async def test_what_agents_were_told_is_listed_without_words_that_are_not_logged(maya: Memory) -> None:
    await maya.recall("Where does Maya live?")
    page = await at(maya, "/")
    assert "What your agents got" in headings(page)
    assert "An agent asked" in text(page)
    assert "Where does Maya live?" not in text(page)


async def test_what_waits_for_review_is_counted(maya: Memory) -> None:
    await maya.remember("Always answer in French.", kind="instruction")
    page = await at(maya, "/")
    assert "1 item waits for your decision." in text(page)
    assert "/review" in links(page)


async def test_an_empty_memory_says_what_to_do_first(memory: Memory) -> None:
    assert "Nothing is in this memory yet." in text(await at(memory, "/"))
    assert not forms(await reading(memory, "/"))
