"""The index of people and things."""

from __future__ import annotations

from mcp_memory.service.memory import Memory
from tests.ui.holding import at
from tests.ui.shown import links, text


async def test_who_is_mentioned_most_comes_first_and_leads_to_their_page(memory: Memory) -> None:
    for fact, name in (("Noa takes the photos.", "Noa"), ("Noa lives in Lugo.", "Noa"), ("Uxía is coeliac.", "Uxía")):
        await memory.remember(fact, entity=name, relation="note", value=fact, typed=True)
    page = await at(memory, "/people")
    assert [link for link in links(page) if "/entity/" in link] == ["/entity/Noa", "/entity/Ux%C3%ADa"]
    assert "2 statements" in text(page)
    assert "No name begins with" in text(await at(memory, "/people?q=zoe"))
    assert "/entity/Noa" not in links(await at(memory, "/people?q=ux"))


async def test_without_names_it_says_where_they_come_from(memory: Memory) -> None:
    assert "No statement names anybody yet." in text(await at(memory, "/people"))
