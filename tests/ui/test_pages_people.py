"""The index of people and things."""

from __future__ import annotations

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.memory import Memory
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at
from tests.ui.shown import elements, links, text


def entities(page: Page) -> list[str]:
    return [link for link in links(page) if "/entity/" in link]


async def test_who_is_mentioned_most_comes_first_and_leads_to_their_page(memory: Memory) -> None:
    for fact, name in (("Noa takes the photos.", "Noa"), ("Noa lives in Lugo.", "Noa"), ("Uxía is coeliac.", "Uxía")):
        await memory.remember(fact, entity=name, relation="note", value=fact, typed=True)
    page = await at(memory, "/people")
    assert entities(page) == ["/entity/Noa", "/entity/Lugo", "/entity/Ux%C3%ADa"]
    assert "2 statements" in text(page)
    assert "No name contains “zoe”." in text(await at(memory, "/people?q=zoe"))
    assert entities(await at(memory, "/people?q=XÍ")) == ["/entity/Ux%C3%ADa"]
    assert entities(await at(memory, "/people?q=%25")) == []


async def test_the_list_is_ordered_by_name_under_letters_or_by_the_last_mention(memory: Memory) -> None:
    await memory.remember("The photos are by Noa and Ben.", typed=True, valid_from="2026-01-02")
    await memory.remember("My daughter is Ben.", entity="user", relation="daughter", value="Ben", typed=True)
    by_name = await at(memory, "/people?order=name")
    assert [text_of(each) for each in elements(by_name) if each.tag == "h2"] == ["B", "N"]
    assert entities(by_name) == entities(await at(memory, "/people?order=last")) == ["/entity/Ben", "/entity/Noa"]
    assert "your daughter, 2 statements" in text(by_name)


async def test_people_that_are_known_as_such_come_before_what_is_also_mentioned(memory: Memory) -> None:
    told = (("My home is in Lugo.", "lives_in", "Lugo"), ("My best friend is Ben.", "best_friend", "Ben"))
    for statement, relation, value in (*told, ("My daughter is Uxía.", "daughter", "Uxía")):
        await memory.remember(statement, entity="user", relation=relation, value=value, typed=True)
    page = await at(memory, "/people?order=last")
    sections = {text_of(each)[:6]: each for each in elements(page) if each.tag == "section"}
    assert list(sections) == ["People", "Also m"]
    assert "your lives in" not in text(page)
    assert [link.rpartition("/")[2] for link in entities(page)] == ["Ben", "Ux%C3%ADa", "Lugo"]


async def test_a_long_list_has_pages(memory: Memory) -> None:
    names = [f"Lo{one}{two}o" for one in "abcdefghijk" for two in "abcdefghij"]
    for start in range(0, len(names), 10):
        await memory.remember(f"I met {', '.join(names[start : start + 10])} today.", typed=True)
    first = await at(memory, "/people?order=name")
    (more,) = (link for link in links(first) if "start=" in link)
    assert [*entities(first), *entities(await at(memory, more))] == [f"/entity/{name}" for name in names]
    with pytest.raises(InvalidInput):
        await at(memory, "/people?start=x")


async def test_without_names_it_says_where_they_come_from(memory: Memory) -> None:
    assert "No statement names anybody yet." in text(await at(memory, "/people"))
