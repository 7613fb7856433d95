"""What agents got: the recalls with their questions, what each gave and left out, and what people say of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock, HashEmbedder
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at, reading
from tests.ui.shown import Form, elements, forms, links, send, text

FERRY = "When does the night ferry sail?"
TALK = "claude-code-0a1b2c3d"


@pytest.fixture
async def ferry(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(
        home=home, now=FixedClock(), embedder=HashEmbedder(), llm="none", read_sentences=False
    ) as memory:
        said = ("The night ferry sails at nine.", "The night ferry sails from pier four.", "Bees like clover.")
        await memory.record_turns([NewTurn(role="user", content=text) for text in said], session="before")
        yield memory


async def ask(memory: Memory, question: str = FERRY, *, record: bool = True, session: str = TALK) -> None:
    if record:
        await memory.record_turns([NewTurn(role="user", content=question)], session=session)
    await memory.recall_beyond(question, known="", session=session)


def of_action(page: Page, action: str, words: str = "") -> list[Form]:
    return [form for form in forms(page) if form.action == f"/do/{action}" and form.words.startswith(words)]


async def test_the_question_of_a_recorded_conversation_is_shown_though_the_log_keeps_none(ferry: Memory) -> None:
    await ask(ferry)
    assert [entry.query for entry in await ferry.recalls()] == [None]
    listed, one = await at(ferry, "/live"), await at(ferry, "/recall/1")
    assert FERRY in text(listed)
    assert "Claude Code" in text(listed)
    assert "/recall/1" in links(listed)
    assert one.title == FERRY
    assert {"/t1", "/t2", f"/session/{TALK}"} <= set(links(one))
    assert "The night ferry sails at nine." in text(one)


async def test_a_recall_is_listed_with_the_same_line_beside_whatever_others(ferry: Memory) -> None:
    await ask(ferry)
    assert "→ The night ferry sails at nine." in text(await at(ferry, "/live"))
    await ask(ferry, session="codex-0a1b2c3d")
    assert text(await at(ferry, "/live")).count("→ The night ferry sails at nine.") == 2


async def test_a_question_that_was_not_kept_is_explained_in_one_line(ferry: Memory) -> None:
    await ask(ferry, record=False)
    page = await at(ferry, "/recall/1")
    assert FERRY not in text(page)
    assert "The question is not here: its conversation is not recorded." in text(page)
    assert "Left out" not in text(page)
    assert of_action(page, "feedback")


async def test_an_agent_with_words_of_its_own_is_shown_with_its_conversation_and_what_was_said(ferry: Memory) -> None:
    await ferry.record_turns([NewTurn(role="user", content="Plan our trip to Elba, please.")], session=TALK)
    await ferry.recall(FERRY, session=TALK)
    title = "Asked by Claude Code in: Plan our trip to Elba, please"
    assert title in text(await at(ferry, "/live"))
    page = await at(ferry, "/recall/1")
    assert page.title == title
    assert "Plan our trip to Elba, please." in text(page)


async def test_the_words_of_a_recall_are_shown_where_they_are_logged(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm="none", log_contents=True) as memory:
        await memory.remember("The night boat sails at two", typed=True)
        await memory.recall("When does the night boat sail?")
        assert "When does the night boat sail?" in text(await at(memory, "/live"))


async def test_a_forgotten_question_and_a_forgotten_line_are_not_shown(ferry: Memory) -> None:
    await ask(ferry)
    asked = [turn.id for turn in await ferry.session_turns(TALK)]
    await ferry.forget([*asked, "t2"], dry_run=False)
    page = await at(ferry, "/recall/1")
    assert FERRY not in text(page)
    assert FERRY not in text(await at(ferry, "/live"))
    assert "The night ferry sails from pier four." not in text(page)
    assert "This was forgotten since." in text(page)
    assert "The night ferry sails at nine." in text(page)


async def test_recalls_are_found_by_words_of_their_questions_and_by_program_in_pages(ferry: Memory) -> None:
    for number in range(27):
        await ask(ferry, f"Does the night ferry number {number} sail?", record=False)
    await ask(ferry, "Which night has bees and a ferry?", record=False, session="codex-0a1b2c3d")
    first = await at(ferry, "/live")
    pages = [link for link in links(first) if "cursor" in link]
    assert {f"/recall/{number}" for number in range(4, 29)} <= set(links(first))
    second = set(links(await at(ferry, pages[0])))
    assert {"/recall/1", "/recall/2", "/recall/3"} <= second
    assert "/recall/4" not in second
    assert recalls(await at(ferry, "/live?q=bees+ferry")) == ["/recall/28"]
    assert recalls(await at(ferry, "/live?client=codex")) == ["/recall/28"]
    assert "No question had these words." in text(await at(ferry, "/live?q=zeppelin"))


def recalls(page: Page) -> list[str]:
    return [link for link in links(page) if link.startswith("/recall/")]


async def test_what_was_wrong_is_left_out_next_time_and_the_page_says_why_until_it_is_undone(ferry: Memory) -> None:
    await ask(ferry)
    page = await at(ferry, "/recall/1")
    (wrong,) = [form for form in of_action(page, "feedback", "Wrong here") if form.values["target"] == ["t2"]]
    assert await send(ferry, wrong) == "/recall/1#t2"
    marked = [each for each in elements(await at(ferry, "/recall/1")) if each.attributes.get("class") == "statement"]
    (row,) = [text_of(each) for each in marked if "agents that ask exactly this do not get it" in text_of(each)]
    assert row.startswith("The night ferry sails from pier four.")
    await ask(ferry, session="codex-0a1b2c3d")
    again = await at(ferry, "/recall/2")
    assert "It was marked as wrong for this question." in text(again)
    of_turn = await at(ferry, "/t2")
    for marked in (await at(ferry, "/recall/1"), of_turn):
        assert "Wrong here" in text(marked)
    assert "/recall/1" in links(of_turn)
    (undo,) = of_action(of_turn, "undo_feedback")
    assert await send(ferry, undo) == "/t2"
    assert "As an answer" not in text(await at(ferry, "/t2"))
    await ask(ferry, session="gemini-0a1b2c3d")
    assert "t2" in (await ferry.recall_entry(3)).ids


async def test_a_helpful_statement_is_marked_on_its_page(memory: Memory) -> None:
    told = (await memory.remember("The night ferry sails at nine.", typed=True)).atom
    await memory.record_turns([NewTurn(role="user", content=FERRY)], session=TALK)
    await memory.recall_beyond(FERRY, known="", session=TALK)
    await memory.give_feedback(1, told.id, "helpful")
    page = await at(memory, f"/{told.id}")
    assert "As an answer" in text(page)
    assert FERRY in text(page)
    outdated = [link for link in links(await at(memory, "/recall/1")) if link == f"/{told.id}#correct"]
    assert outdated


async def test_what_every_agent_gets_is_apart_and_has_no_feedback(ferry: Memory) -> None:
    await ferry.remember("Maya is a pilot.", kind="persona", typed=True)
    await ferry.recall_stable(session=TALK)
    page = await at(ferry, "/recall/1")
    assert page.title == "At the start of a conversation"
    assert "It got, as every agent does" in text(page)
    assert "/a1" in links(page)
    assert of_action(page, "feedback") == []


async def test_a_reader_sees_the_recalls_and_no_button(ferry: Memory) -> None:
    await ask(ferry)
    await ferry.give_feedback(1, "t1", "helpful")
    page = await reading(ferry, "/recall/1")
    assert "Helpful" in text(page)
    assert forms(page) == []


async def test_a_recall_that_is_not_in_the_log_has_no_page(ferry: Memory) -> None:
    with pytest.raises(NotFound, match="keeps the last 500"):
        await at(ferry, "/recall/7")


async def test_a_memory_that_was_never_asked_says_so_without_a_form(ferry: Memory) -> None:
    page = await at(ferry, "/live")
    assert "No agent has asked this memory for anything yet." in text(page)
    assert not [one for one in elements(page) if one.tag == "form"]


async def test_the_owner_sees_who_is_connected_and_others_do_not(ferry: Memory) -> None:
    assert "Connected now" not in text(await reading(ferry, "/live"))
