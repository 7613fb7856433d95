"""Statements with an end, statements that have yet to begin, and plans whose day has passed."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Kind, NewTurn
from mcp_memory.longterm.recall.lines import of_atom
from mcp_memory.longterm.validity import stated_end, with_end
from mcp_memory.service.memory import Memory
from mcp_memory.service.render import render
from mcp_memory.testing import FixedClock

SAID = datetime(2026, 10, 20, 12).astimezone()


def midnight(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day).astimezone()


@pytest.mark.parametrize(
    "text",
    [
        "The user parks in lot B until 10 November",
        "Ich bin bis zum 10. November im Urlaub",
        "Ich bin vom 3. bis 10. November weg",
        "Je suis à Lyon jusqu'au 10 novembre",
        "Estoy en Lima hasta el 10 de noviembre",
        "Sono a Roma fino al 10 novembre",
        "Estarei no Porto até 10 de novembro",
        "Я в Москве до 10 ноября",
        "我在北京住到11月10日",
        "11月10日まで大阪にいます",
        "11월 10일까지 서울에 있어요",
        "The user parks in lot B [until 2026-11-10]",
        "Until 10 November, write in British English",
        "Do not merge to main and ask before deleting files [until 2026-11-10]",
    ],
)
def test_an_end_that_the_words_name_for_certain_is_the_moment_after_that_day(text: str) -> None:
    assert stated_end(text, SAID) == midnight(2026, 11, 11)


@pytest.mark.parametrize(
    "text",
    [
        "The user worked in Porto until 10 November 2020",  # over when it was said: a memory, which stays true
        "We talk until late",
        "The user is away until 10 or 12 November",
        "The user meets Ines on 10 November",
        "Until she called, nobody knew",
        "Do not merge to main until 10 November 2026 and always ask before deleting files",
        "Bis zum 10. November wohnt Ines hier, danach nie Fleisch kochen",
        "The user is away until 10 November 2026. Never call the user at night",
        "合并要等到2026年11月10日，删除文件前先问我",
        "No deploys until 10 November 2026 - always ask before deleting",
        "배포는 2026년 11월 10일까지 하지 말고 항상 물어보세요",
    ],
)
def test_other_words_name_no_end(text: str) -> None:
    assert stated_end(text, SAID) is None


@given(st.dates(date(2026, 10, 21), date(2190, 1, 1)))
def test_an_end_that_was_added_is_read_again(day: date) -> None:
    end = stated_end(f"x [until {day:%Y-%m-%d}]", SAID)
    assert end is not None
    assert with_end("x", end, SAID) == f"x [until {day:%Y-%m-%d}]"
    assert with_end(with_end("x", end, SAID), end, SAID) == with_end("x", end, SAID)


async def told(memory: Memory, text: str, **given: Any) -> str:
    return (await memory.remember(text, typed=True, **given)).atom.id


async def known(memory: Memory, query: str = "", **filters: Any) -> list[str]:
    return [hit.atom.id for hit in (await memory.memory_search(query, **filters)).atoms]


async def everything(memory: Memory, query: str) -> str:
    """Return what an agent reads: recall, both kinds of memory search, and the page."""
    listed, found = await memory.memory_excerpts(), await memory.memory_excerpts(query)
    recalled, page = await memory.recall(query), await memory.read_persona()
    return "\n".join([recalled.stable, recalled.dynamic, render(listed), render(found), page.text])


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("The user parks in lot B", {"valid_until": "2026-12-10"}),
        ("The user parks in lot B until 10 December", {}),
    ],
)
async def test_after_its_last_day_a_statement_is_past_and_as_of_finds_it(
    memory: Memory, clock: FixedClock, text: str, given: dict[str, Any]
) -> None:
    id = await told(memory, text, **given)
    clock.moment = datetime(2026, 12, 10, 20).astimezone()
    assert await known(memory, "Where does the user park?") == await known(memory) == [id]
    assert "lot B" in await everything(memory, "Where does the user park?")
    clock.moment = datetime(2026, 12, 11, 1).astimezone()
    assert (await known(memory, "Where does the user park?"), await known(memory)) == ([], [])
    assert "lot B" not in await everything(memory, "Where does the user park?")
    assert await known(memory, "Where does the user park?", as_of="2026-12-09") == [id]
    assert await known(memory, as_of="2026-12-09") == [id]


async def test_a_fact_ends_with_its_statement(memory: Memory, clock: FixedClock) -> None:
    fact = {"entity": "user", "relation": "works as", "value": "lifeguard"}
    await told(memory, "The user works as a lifeguard", valid_until="2026-12-10", **fact)
    assert "User: works as: lifeguard" in (await memory.recall("hello")).stable
    clock.advance(days=60)
    assert "lifeguard" not in (await memory.recall("hello")).stable
    assert (await memory.memory_search("What does the user work as?")).facts == []


async def test_a_statement_that_begins_later_is_shown_with_its_beginning_and_not_as_current(
    memory: Memory, clock: FixedClock
) -> None:
    post = {"entity": "user", "relation": "is", "value": "engineer"}
    await told(memory, "The user is an engineer", **post)
    post["value"] = "head of department"
    later = await told(memory, "The user is head of department", valid_from="2027-03-01", **post)
    bundle = await memory.recall("What is the user's post?")
    assert "is: head of department" not in bundle.stable
    assert f"- from 1 March 2027: The user is head of department ({later})" in bundle.stable
    found = await memory.memory_search("head of department")
    assert [hit.when for hit in found.atoms if hit.atom.id == later] == ["from 1 March 2027"]
    assert "head of department" not in [fact.value for fact in found.facts]
    assert f"- from 1 March 2027: The user is head of department ({later})" in (await memory.read_persona()).text
    clock.moment = datetime(2027, 3, 2).astimezone()
    assert "is: head of department" in (await memory.recall("hello")).stable


async def test_until_then_the_value_that_it_will_replace_is_current(memory: Memory, clock: FixedClock) -> None:
    post = {"entity": "user", "relation": "works as", "value": "engineer"}
    first = await told(memory, "The user works as an engineer", **post)
    post["value"] = "head of department"
    await told(memory, "The user works as head of department", valid_from="2027-03-01", supersedes=[first], **post)
    assert "works as: engineer" in (await memory.recall("hello")).stable
    assert first in await known(memory, "What does the user work as?")
    clock.moment = datetime(2027, 3, 2).astimezone()
    assert "engineer" not in (await memory.recall("hello")).stable
    assert first not in await known(memory, "What does the user work as?")


async def test_a_plan_whose_day_has_passed_is_shown_as_planned(memory: Memory, clock: FixedClock) -> None:
    id = await told(memory, "The user flies to Rome on 5 December 2026", kind="episodic")
    assert "was planned" not in await everything(memory, "flight to Rome")
    clock.moment = datetime(2026, 12, 6, 1).astimezone()
    shown = await everything(memory, "flight to Rome")
    assert "(episodic, was planned for 5 December 2026; " in shown
    assert f"- was planned for 5 December 2026: The user flies to Rome on 5 December 2026 ({id})" in shown


async def test_a_line_of_recall_begins_with_what_is_to_be_known_of_its_time(memory: Memory, clock: FixedClock) -> None:
    plan = "The user flies to Rome on 5 December 2026"
    planned = (await memory.remember(plan, typed=True, kind="episodic")).atom
    ahead = (await memory.remember("The user heads the department", typed=True, valid_from="2027-03-01")).atom
    lines = [of_atom(atom, midnight(2026, 12, 6)).text for atom in (planned, ahead)]
    assert lines == [
        f"[{planned.id} was planned for 5 December 2026] The user flies to Rome on 5 December 2026",
        f"[{ahead.id} from 1 March 2027] The user heads the department",
    ]


async def test_an_end_before_the_beginning_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="valid_until is before valid_from"):
        await told(memory, "The user parks in lot B", valid_from="2026-12-01", valid_until="2026-11-10")


async def test_an_end_that_has_passed_already_closes_the_statement_at_once(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="Hello")])
    stored = await memory.remember(
        "The user parked in lot B", typed=True, valid_from="2026-10-01", valid_until="2026-10-31"
    )
    assert stored.atom.valid_to == midnight(2026, 11, 1)
    assert await known(memory) == []
    assert await known(memory, as_of="2026-10-15") == [stored.atom.id]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("From 5 December 2026 on, always write in British English", "instruction"),
        ("Never deploy after 5 December 2026", "instruction"),
        ("The user is vegan from 5 December 2026 on", "persona"),
    ],
)
async def test_a_rule_or_a_trait_that_names_a_day_is_no_plan_and_stays_in_recall(
    memory: Memory, clock: FixedClock, text: str, kind: Kind
) -> None:
    await told(memory, text, kind=kind)
    before = (await memory.recall("hello")).stable
    clock.moment = datetime(2026, 12, 20).astimezone()
    assert text in before
    assert (await memory.recall("hello")).stable == before
    assert "was planned" not in await everything(memory, text)


@pytest.mark.parametrize(
    "text",
    [
        "The office is closed from 5 December 2026",
        "Das Büro ist ab dem 5. Dezember 2026 geschlossen",
        "The report is due by 5 December 2026",
        "L'ufficio è chiuso dal 5 dicembre 2026",
        "从2026年12月5日起办公室关门",
    ],
)
async def test_a_day_after_a_word_such_as_from_or_by_is_not_the_day_of_a_plan(
    memory: Memory, clock: FixedClock, text: str
) -> None:
    await told(memory, text, kind="episodic")
    clock.moment = datetime(2026, 12, 20).astimezone()
    assert text in await everything(memory, text)
    assert "was planned" not in await everything(memory, text)


async def test_an_agent_gives_the_users_rule_no_end_that_the_user_did_not_give(
    memory: Memory, clock: FixedClock
) -> None:
    rule = "Always ask me before you delete a file"
    await memory.record_turns([NewTurn(role="user", content=rule)])
    first = (await memory.remember(rule, kind="instruction")).atom.id
    again = await memory.remember(rule, kind="instruction", supersedes=[first], valid_until="2026-12-10")
    assert again.note is not None
    assert "without valid_until: the user's words do not clearly give that end" in again.note
    clock.moment = datetime(2027, 1, 10).astimezone()
    assert rule in (await memory.recall("hello")).stable


async def test_an_end_in_the_users_own_words_is_kept(memory: Memory, clock: FixedClock) -> None:
    rule = "Always write the commit messages in German until 10 December 2026"
    await memory.record_turns([NewTurn(role="user", content=rule)])
    stored = await memory.remember(rule, kind="instruction", valid_until="2026-12-10")
    assert "valid_until" not in (stored.note or "")
    assert rule in (await memory.recall("hello")).stable
    clock.moment = datetime(2027, 1, 10).astimezone()
    assert rule not in (await memory.recall("hello")).stable


async def test_what_a_later_value_will_replace_is_in_every_list_until_then(memory: Memory, clock: FixedClock) -> None:
    first = await told(memory, "Always write in British English", kind="instruction")
    later = await told(
        memory, "Always write in French", kind="instruction", valid_from="2027-03-01", supersedes=[first]
    )
    hello = await memory.recall("hello")
    assert "Always:\n- Always write in British English" in hello.stable
    assert first in await known(memory)
    page = await memory.statements()
    assert ({atom.id for atom in page.atoms}, page.total) == ({first, later}, 2)
    assert "British English" in (await memory.read_persona()).text
    clock.moment = datetime(2027, 3, 2).astimezone()
    assert "British" not in (await memory.recall("hello")).stable
    assert await known(memory) == [later]
    page = await memory.statements()
    assert ([atom.id for atom in page.atoms], page.total) == ([later], 1)


async def test_a_page_of_a_list_is_full_though_past_statements_come_first(memory: Memory, clock: FixedClock) -> None:
    for lot in range(6):
        await told(memory, f"The user parks in lot {lot} until 10 December 2026", kind="instruction")
    lasting = [await told(memory, f"The user owns {animal}", kind="persona") for animal in ("a cat", "a dog", "a hen")]
    clock.moment = datetime(2027, 1, 10).astimezone()
    results = await memory.memory_search(limit=2)
    assert [hit.atom.id for hit in results.atoms] == lasting[:2]
    results = await memory.memory_search(limit=2, cursor=results.cursor)
    assert ([hit.atom.id for hit in results.atoms], results.cursor) == (lasting[2:], None)
    page = await memory.statements(limit=2)
    assert ([atom.id for atom in page.atoms], page.total) == (lasting[:2], 3)
    page = await memory.statements(limit=2, cursor=page.cursor)
    assert ([atom.id for atom in page.atoms], page.cursor) == (lasting[2:], None)
    assert (await memory.statements(ended=True)).total == 9


async def test_an_end_that_has_passed_needs_a_beginning(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="Give valid_from too"):
        await told(memory, "The user worked at Acme.", valid_until="2026-09-01")


async def test_a_fact_with_a_past_end_that_the_user_did_not_give_replaces_no_value(memory: Memory) -> None:
    lives: dict[str, Any] = {"entity": "user", "relation": "lives in"}
    await told(memory, "The user lives in Bergen", value="Bergen", **lives)
    await memory.record_turns([NewTurn(role="user", content="I live in Oslo")])
    stored = await memory.remember(
        "I live in Oslo", value="Oslo", valid_from="2020-01-01", valid_until="2021-12-31", **lives
    )
    assert stored.atom.fact is None
    assert stored.replaced == []
    assert "It states no fact and replaces nothing" in (stored.note or "")
