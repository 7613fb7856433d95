"""The page of an entity: facts over time, as of a day, its neighbours and statements, also without scripts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import anyio.to_thread
import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import NewAtom
from mcp_memory.testing import FixedClock
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import text_of
from mcp_memory.ui.pages import page_at
from tests.ui.holding import at, stated
from tests.ui.shown import elements, forms, links, text


@pytest.fixture
async def memory(memory: Memory) -> Memory:
    old = await lives_in(memory, "Oslo", valid_from="2026-01-02")
    await lives_in(memory, "Bergen", valid_from="2026-03-04", supersedes=[old])
    return memory


async def lives_in(memory: Memory, city: str, **more: Any) -> str:
    return (
        await memory.remember(
            f"Maya lives in {city}.", entity="Maya", relation="lives_in", value=city, **more, typed=True
        )
    ).atom.id


async def entity(memory: Memory, query: str = "", name: str = "Maya") -> Page:
    return await at(memory, f"/entity/{name}{query}")


def said(page: Page) -> list[str]:
    """Return the statements that are listed."""
    shown = [one for one in elements(page) if "said" in one.attributes.get("class", "").split()]
    return [text(Page(title="", body=(one,))) for one in shown]


async def test_facts_are_told_over_time_and_statements_as_they_hold_now(memory: Memory) -> None:
    page = await entity(memory)
    assert page.title == "Maya"
    assert {"/a1", "/a2"} <= set(links(page))
    assert "Oslo" in text(page)
    assert said(page) == ["Maya lives in Bergen."]


async def test_a_date_shows_what_held_then(memory: Memory) -> None:
    page = await entity(memory, "?as_of=2026-02-01")
    assert said(page) == ["Maya lives in Oslo."]
    assert "What was known for 1 Feb 2026" in text(page)
    assert "/entity/Maya" in links(page)


async def test_the_slider_counts_days_from_the_first_fact(memory: Memory) -> None:
    slider = next(one for one in elements(await entity(memory)) if one.attributes.get("type") == "range")
    assert slider.attributes["min"] == "0"
    assert slider.attributes["max"] == slider.attributes["value"]
    page = await entity(memory, "?day=30")
    assert said(page) == ["Maya lives in Oslo."]
    moved = next(one for one in elements(page) if one.attributes.get("type") == "range")
    assert moved.attributes["value"] == "30"
    assert said(await entity(memory, f"?day={slider.attributes['max']}")) == ["Maya lives in Bergen."]


async def test_the_slider_ends_today_by_the_clock_of_the_memory(memory: Memory) -> None:
    slider = next(one for one in elements(await entity(memory)) if one.attributes.get("type") == "range")
    assert slider.attributes["max"] == str((memory.now().date() - date(2026, 1, 2)).days)
    assert "From 2 Jan 2026 to 20 Nov 2026" in text(await entity(memory))


async def test_the_days_of_changes_are_links_and_forms_load_the_page(memory: Memory) -> None:
    page = await entity(memory)
    assert {"/entity/Maya?as_of=2026-01-02", "/entity/Maya?as_of=2026-03-04"} <= set(links(page))
    assert [(form.action, [*form.values]) for form in forms(page)] == [
        ("/entity/Maya", ["day"]),
        ("/entity/Maya", ["as_of"]),
    ]


async def test_neighbours_are_a_picture_and_a_table_with_links(memory: Memory) -> None:
    both = NewAtom(kind="episodic", text="Maya sails with Bo/A", priority=50, confidence=1.0, session="s",
                   valid_from=FixedClock()(), entities=("Maya", "Bo/A"))  # fmt: skip
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    told = await anyio.to_thread.run_sync(
        lambda: store.write(memory.space, atom_rows.add, both, now=FixedClock()()).atom
    )
    page = await entity(memory)
    assert links(page).count("/entity/Bo%2FA") == 3  # of the statement, the picture and the table
    assert "Bo/A1" in text(page)
    other = await entity(memory, name="Bo%2FA")
    assert other.title == "Bo/A"
    assert {f"/{told.id}", "/entity/Maya"} <= set(links(other))


async def test_who_stands_alone_has_no_picture_and_no_empty_parts(memory: Memory) -> None:
    await memory.remember("Zoe sings.", entity="Zoe", relation="does", value="sings", typed=True)
    page = await entity(memory, name="Zoe")
    assert [text_of(each) for each in elements(page) if each.tag == "h2"] == ["Facts over time"]
    assert not any("picture" in one.attributes.get("class", "").split() for one in elements(page))


async def test_it_opens_with_the_statement_that_introduces_it_and_lists_its_conversations(maya: Memory) -> None:
    designer = "Wouter Coussement"
    first, second = (datetime(2026, 11, day, 12, tzinfo=UTC) for day in (10, 12))
    await stated(maya, "Our designer is Wouter Coussement.", designer, "Ghent", session="a", said_at=first)
    await stated(maya, "Wouter lives on a boat.", designer, session="b", said_at=second)
    (turn,) = (turn.id for turn in await maya.session_turns("a"))
    page = await entity(maya, name="wouter")
    assert page.title == designer
    assert said(page)[0] == "Our designer is Wouter Coussement."
    where = [link for link in links(page) if "/session/" in link]
    assert where == [f"/session/a#{turn}", "/session/b", "/session/a"]
    assert links(page).count("/entity/Ghent") == 2  # the picture and the table


async def test_of_an_unknown_name_the_page_says_so(memory: Memory) -> None:
    page = await entity(memory, name="nobody")
    assert "No entity 'nobody'" in text(page)
    assert "/search?q=nobody" in links(page)


async def test_another_spelling_of_a_name_opens_the_page_of_the_entity(memory: Memory) -> None:
    assert "Maya lives in" in text(await entity(memory, name="máya"))


async def test_the_page_of_a_misspelled_name_says_which_names_are_near(memory: Memory) -> None:
    assert "No entity 'Mayra'. Near: Maya." in text(await entity(memory, name="Mayra"))


async def test_what_is_no_date_is_refused_in_a_sentence(memory: Memory) -> None:
    for query in ("?as_of=soon", "?day=x", "?day=99999999999"):
        with pytest.raises(InvalidInput, match="is not a date"):
            await page_at(f"/entity/Maya{query}", View(memory=memory))


async def test_of_what_has_ended_altogether_the_page_says_so_and_lists_it(memory: Memory) -> None:
    await memory.remember("Ben moved in.", entity="Ben", relation="moved", value="in", supersedes=["a2"], typed=True)
    page = await entity(memory)
    assert "Nothing about it is true now; 2 statements are past." in text(page)
    assert {"Maya lives in Oslo.", "Maya lives in Bergen."} == set(said(page))
    assert "No statement mentions it" not in text(page)
    assert "No facts of it are known" not in text(page)


async def test_a_correction_stays_with_what_it_is_about(memory: Memory) -> None:
    await memory.remember("Maya lives in Voss.", supersedes=["a2"], typed=True)
    assert said(await entity(memory)) == ["Maya lives in Voss."]


async def test_a_person_has_a_role_what_is_planned_with_them_and_the_messages_that_name_them(maya: Memory) -> None:
    name = "Nkechi Obi"
    now = maya.now()
    await stated(maya, "What next? – my customer Nkechi Obi is head of costumes", name, session="a", said_at=now)
    await maya.remember("customer", entity="user", relation="customer", value=name, typed=True)
    day = now + timedelta(days=4)
    await stated(maya, f"Nkechi comes on {day:%-d %B %Y}", name, session="b", said_at=now)
    await maya.record_turns([NewTurn(role="user", content="ask Nkechi who pays")], session="c")
    await maya.record_turns([NewTurn(role="user", content="ask the others")], session="c")
    page = await entity(maya, name="Nkechi%20Obi")
    shown = text(page)
    assert "Your customer" in shown
    assert [text_of(each) for each in elements(page) if each.tag == "h2"][:1] == ["Coming up"]
    assert f"Nkechi comes on {day:%-d %B %Y}" in said(page)
    assert "ask Nkechi who pays" in said(page)
    assert "ask the others" not in shown
    assert "What next?" not in said(page)[0]
