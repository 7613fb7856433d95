"""The first page: what is new and what is next, with a model and without one."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.testing import FixedClock
from mcp_memory.ui.elements import text_of
from mcp_memory.ui.times import day_text
from tests.ui.holding import at, reading, stated
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
    assert text(changes).endswith("21 Nov 2026Maya lives in Lisbon.Maya lives in Porto.Undo")


async def test_conversations_alone_fill_it(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="assistant", content="The night ferry leaves at nine.")], session="trip")
    page = await at(memory, "/")
    assert headings(page) == []
    (talks,) = [each for each in elements(page) if each.tag == "details" and "open" in each.attributes]
    assert text_of(talks).startswith("Last conversations")
    assert "nothing new" in text(page)
    assert "/session/trip" in links(page)
    assert "What a language model would add" in text(page)


async def test_a_few_questions_of_agents_are_listed_without_what_they_got(maya: Memory) -> None:
    async def ask(question: str) -> None:
        session = f"claude-code-{len(question):08x}"
        await maya.record_turns([NewTurn(role="user", content=question)], session=session)
        await maya.recall_beyond(question, known="", session=session)

    await ask("Where in Lisbon does Maya live?")
    await ask("Maya, Lisbon: write her address into the letter.")
    await ask("Why does her left knee hurt?")
    await ask("Does her left knee hurt still?")
    await ask("Her left knee hurts, mention it.")
    page = await at(maya, "/")
    assert "What your agents got" in headings(page)
    asked = [text_of(each) for each in elements(page) if str(each.attributes.get("href", "")).startswith("/recall/")]
    assert asked == [
        "Does her left knee hurt still?",
        "Why does her left knee hurt?",
        "Where in Lisbon does Maya live?",
    ]


async def test_a_question_of_an_agent_has_the_title_of_its_conversation_or_is_not_shown(maya: Memory) -> None:
    await maya.recall("Where does Maya live?")
    assert "What your agents got" not in headings(await at(maya, "/"))
    await maya.record_turns([NewTurn(role="user", content="Plan our trip to Elba, please.")], session="codex-0a1b2c3d")
    await maya.recall("Where does Maya live?", session="codex-0a1b2c3d")
    page = text(await at(maya, "/"))
    assert "Asked by Codex in: Plan our trip to Elba, please" in page
    assert "Where does Maya live?" not in page


async def test_new_statements_are_listed_newest_first_whenever_they_became_true(maya: Memory) -> None:
    clock = maya._parts.now  # pyright: ignore[reportPrivateUsage]
    assert isinstance(clock, FixedClock)
    for number, since in enumerate(("2019", "2026", "2003"), 3):
        clock.moment += timedelta(days=1)
        await maya.remember(f"Maya has owned house {number} for long.", valid_from=since, typed=True)
    shown = [link for link in links(await at(maya, "/")) if link in ("/a3", "/a4", "/a5")]
    assert shown == ["/a5", "/a4", "/a3"]


async def test_coming_days_are_listed_in_order_and_all_are_one_link_away(maya: Memory) -> None:
    for number in range(60, 0, -1):
        day = day_text(date(2026, 12, 1) + timedelta(days=number))
        await maya.remember(f"Maya gives concert number {number} on {day}", kind="episodic", typed=True)
    page = await at(maya, "/")
    assert [int(number) for number in re.findall(r"concert number (\d+)", text(page))[:4]] == [1, 2, 3, 4]
    assert "/coming" in links(page)
    first = await at(maya, "/coming")
    assert headings(first) == ["December 2026", "January 2027"]
    (later,) = [link for link in links(first) if "start=" in link]
    listed = text(first) + text(await at(maya, later))
    assert [int(number) for number in re.findall(r"concert number (\d+)", listed)] == list(range(1, 61))


async def test_a_sentence_that_points_back_is_shown_with_its_conversation(maya: Memory) -> None:
    noon = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    for words in ("She brings the cello on 3 December 2026", "Nkechi brings the score on 4 December 2026"):
        await stated(maya, words, session=words[:3], said_at=noon)
    page = await at(maya, "/coming")
    assert "/session/She#t3" in links(page)
    assert not any(link.startswith("/session/Nke") for link in links(page))


async def test_what_waits_for_review_is_counted(maya: Memory) -> None:
    await maya.remember("Always answer in French.", kind="instruction")
    page = await at(maya, "/")
    assert "1 item waits for your decision." in text(page)
    assert "/review" in links(page)


async def test_an_empty_memory_says_what_to_do_first(memory: Memory) -> None:
    assert "Nothing is in this memory yet." in text(await at(memory, "/"))
    assert not forms(await reading(memory, "/"))
