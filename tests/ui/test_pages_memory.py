"""The memory, the persona and a scene as pages: what they show leads to its proof."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import anyio.to_thread
import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.service.memory import Memory
from mcp_memory.service.verbs.administration import StatementToImport
from mcp_memory.store.sql import stage_outputs
from mcp_memory.store.values import NewAtom, SceneChanges, SceneEdit
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at, reading
from tests.ui.shown import elements, forms, links, text


def book(number: int) -> StatementToImport:
    text, now = f"Maya owns book number {number}.", datetime(2026, 11, 20, tzinfo=UTC)
    return StatementToImport(
        atom=NewAtom(kind="episodic", text=text, priority=50, confidence=1.0, session="books", valid_from=now)
    )


# --- the overview -----------------------------------------------------------------------------------


async def test_the_memory_shows_persona_scenes_and_statements(maya: Memory) -> None:
    page = await at(maya, "/memory")
    assert page.title == "Memory"
    shown = text(page)
    assert "Lives in Lisbon" in shown
    assert "The Knee" in shown
    assert not {"heat", "scene", "persona"} & set(shown.lower().split())
    assert "2 statements" in shown
    assert "Maya's left knee hurts." in shown
    assert {"/persona", "/scene/the-knee", "/a1", "/a2"} <= set(links(page))


async def test_a_reader_without_rights_sees_the_same_and_no_form_that_changes_anything(maya: Memory) -> None:
    page = await reading(maya, "/memory")
    assert [one.action for one in forms(page)] == ["/memory#statements"]
    assert "Maya's left knee hurts." in text(page)


async def test_statements_are_filtered_by_kind_entity_and_time(maya: Memory) -> None:
    assert "No statement passes" in text(await at(maya, "/memory?kind=instruction"))
    about = text(await at(maya, "/memory?entity=user"))
    assert "1 statement" in about
    assert "1 statements" not in about
    assert "No statement passes" in text(await at(maya, "/memory?until=2020"))
    assert "2 statements" in text(await at(maya, "/memory?kind=anything"))


async def test_what_is_wrong_with_a_filter_stands_under_it(maya: Memory) -> None:
    page = await at(maya, "/memory?since=whenever")
    assert "whenever" in text(page)
    assert any(one.attributes.get("class") == "note bad" for one in elements(page))


async def test_an_ended_statement_is_listed_where_it_is_asked_for(maya: Memory) -> None:
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    assert "/a1" not in [link for link in links(await at(maya, "/memory?kind=persona")) if link == "/a1"][1:]
    ended = await at(maya, "/memory?ended=1")
    row = next(one for one in elements(ended) if one.attributes.get("class") == "statement ended")
    assert "Maya lives in Lisbon." in text_of(row)
    assert "1 statement" in (only := await listed_in(maya, "/memory?ended=only"))
    assert "Maya lives in Porto." not in only


async def test_many_statements_come_page_by_page(memory: Memory) -> None:
    await memory.tell([book(number) for number in range(35)])
    first = await at(memory, "/memory?kind=episodic")
    (more,) = [link for link in links(first) if "cursor=" in link]
    assert "35 statements" in text(first)
    assert "kind=episodic" in more
    second = await at(memory, more)
    listed = {link for page in (first, second) for link in links(page) if link.startswith("/a")}
    assert {f"/a{number}" for number in range(1, 36)} <= listed
    assert not [link for link in links(second) if "cursor=" in link]


async def listed_in(memory: Memory, address: str) -> str:
    (listed,) = [one for one in elements(await at(memory, address)) if one.attributes.get("id") == "statements"]
    return text_of(listed)


async def test_weeks_and_before_them_months_are_links_with_their_numbers(memory: Memory) -> None:
    await memory.remember("Maya plays the oboe.", typed=True)
    assert not [link for link in links(await at(memory, "/memory")) if "since=" in link]
    for day in ("2026-11-12", "2026-11-03", "2026-09-03"):
        await memory.remember(f"Maya plays the cello since {day}.", valid_from=day, typed=True)
    page = await at(memory, "/memory")
    assert "AllThis week 1Last week 1Week of 2 Nov 1Sep 2026 1" in text(page)
    september = await listed_in(memory, next(link for link in links(page) if "2026-09" in link))
    assert "cello since 2026-09-03" in september
    assert "oboe" not in september


async def test_the_list_of_a_week_has_what_has_ended_since(memory: Memory) -> None:
    await memory.remember("Maya plays the oboe.", valid_from="2026-11-12", typed=True)
    await memory.remember("Maya plays the cello.", supersedes=["a1"], typed=True)
    assert "oboe" not in await listed_in(memory, "/memory")
    week = next(link for link in links(await at(memory, "/memory")) if "since=2026-11-09" in link)
    assert "Maya plays the oboe." in await listed_in(memory, week)


async def test_statements_are_sorted_by_their_time_or_by_what_matters(memory: Memory) -> None:
    await memory.remember("Maya plays the cello.", valid_from="2026-09-03", typed=True)
    await memory.remember("Maya plays the oboe.", valid_from="2019-09-03", typed=True)
    await memory.remember("Maya plays the harp.", valid_from="2026-10-03", typed=True)

    async def listed(address: str) -> list[str]:
        return [link for link in links(await at(memory, address)) if link in ("/a1", "/a2", "/a3")][-3:]

    assert await listed("/memory") == ["/a3", "/a1", "/a2"]
    assert await listed("/memory?order=important") == ["/a1", "/a2", "/a3"]


async def test_the_list_says_of_which_period_it_is(memory: Memory) -> None:
    await memory.remember("Maya plays the cello.", valid_from="2026-09-03", typed=True)
    assert "1 statement from 1 Sep 2026 to Oct 2026" in text(await at(memory, "/memory?since=2026-09-01&until=2026-10"))
    assert "1 statement of Sep 2026" in text(await at(memory, "/memory?since=2026-09&until=2026-09"))


async def test_an_empty_memory_says_what_to_do_next(memory: Memory) -> None:
    page = await at(memory, "/memory")
    shown = text(page)
    assert "Nothing is in this memory yet." in shown
    assert {"mcp-memory install", "mcp-memory import", "mcp-memory demo"} <= {
        text_of(one) for one in elements(page) if one.tag == "code"
    }
    (form,) = forms(page)
    assert form.action == "/do/remember"
    assert form.values["supersedes"] == [""]
    assert not forms(await reading(memory, "/memory"))


# --- the persona ------------------------------------------------------------------------------------


async def test_every_line_of_the_persona_leads_to_the_statements_that_it_names(maya: Memory) -> None:
    page = await at(maya, "/persona")
    proofs = {text_of(one): one.attributes["href"] for one in elements(page) if one.attributes.get("class") == "cite"}
    assert proofs == {"Lives in Lisbon": "/a1", "Her knee hurts": "/a2"}
    assert "(a" not in text(page)
    assert "Lines that name no statementIs kind." in text(page)
    assert "/scene/the-knee" in links(page)
    assert "Lines that name no statement" not in text(await at(maya, "/persona?old=1&new=2"))


async def test_two_versions_of_the_persona_are_compared(maya: Memory) -> None:
    page = await at(maya, "/persona?old=1&new=2")
    added = [text_of(one) for one in elements(page) if one.tag == "ins"]
    assert added == ["+ - Her knee hurts, see the-knee", "+ - Is kind."]
    back = await at(maya, "/persona?old=2&new=1")
    assert [text_of(one) for one in elements(back) if one.tag == "del"][1] == "− - Is kind."
    assert "The two versions say the same." in text(await at(maya, "/persona?old=2&new=2"))
    assert "no version 9" in text(await at(maya, "/persona?old=9&new=2"))


async def test_an_old_version_of_the_persona_says_that_it_is_one(maya: Memory) -> None:
    page = await at(maya, "/persona?version=1")
    assert "This is version 1." in text(page)
    assert "Her knee hurts" not in text(page)


async def test_without_a_model_the_persona_is_a_list(memory: Memory) -> None:
    assert "Nothing is known about you yet." in text(await at(memory, "/persona"))
    await memory.remember("Maya plays the cello.", typed=True)
    page = await at(memory, "/persona")
    assert "in your own words" in text(page)
    assert "/a1" in links(page)


# --- a scene ----------------------------------------------------------------------------------------


async def test_a_scene_shows_its_page_and_what_it_is_based_on(maya: Memory) -> None:
    page = await at(maya, "/scene/the-knee")
    assert page.title == "The Knee"
    assert "The knee hurts still." in text(page)
    assert "Maya's left knee hurts." in text(page)
    assert {"/a1", "/a2"} <= set(links(page))


async def test_an_old_version_of_a_scene_can_be_restored_by_who_may(maya: Memory) -> None:
    page = await at(maya, "/scene/the-knee?version=1")
    assert "This is an old version." in text(page)
    (form,) = forms(page)
    assert (form.action, form.values["slug"], form.values["version"]) == ("/do/restore_scene", ["the-knee"], ["1"])
    assert not forms(await reading(maya, "/scene/the-knee"))


async def test_what_was_forgotten_can_be_reached_from_the_overview(maya: Memory) -> None:
    assert "/home#forgotten" not in links(await at(maya, "/memory"))
    await maya.forget(["a2"])
    for address in ("/memory", "/review"):
        page = await at(maya, address)
        assert "1 thing was forgotten: look at it, or bring it back" in text(page)
        assert "/home#forgotten" in links(page)


async def test_what_ended_since_a_scene_was_written_is_on_its_page(maya: Memory) -> None:
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    assert "no longer: Maya lives in Lisbon." in text(await at(maya, "/scene/the-knee"))


@pytest.mark.parametrize("address", ["/scene/the-knee", "/scene/the-knee?version=2", "/persona?version=1"])
async def test_a_sentence_whose_statement_has_ended_is_marked_as_such(maya: Memory, address: str) -> None:
    assert "no longer true" not in text(await at(maya, address))
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    page = await at(maya, address)
    assert "ives in Lisbon no longer true, what is true now" in text(page)
    assert "/a3" in links(page)
    assert next(text_of(one)[1:] for one in elements(page) if one.tag == "del") == "ives in Lisbon"


async def test_a_deleted_scene_says_why_and_can_be_restored(maya: Memory) -> None:
    await anyio.to_thread.run_sync(partial(deleting, maya))
    page = await at(maya, "/scene/the-knee")
    assert "This topic was removed: it healed" in text(page)
    assert [form.values["version"] for form in forms(page)] == [["2"], ["1"]]


def deleting(memory: Memory) -> None:
    edit = SceneEdit(action="delete", slug="the-knee", reason="it healed")
    store, now = memory._parts.store, datetime(2026, 11, 21, tzinfo=UTC)  # pyright: ignore[reportPrivateUsage]
    store.write(memory.space, stage_outputs.commit, None, SceneChanges(edits=[edit], upto=0), outcome={}, now=now)


async def test_an_unknown_scene_is_not_found(maya: Memory) -> None:
    with pytest.raises(NotFound, match="no topic nowhere"):
        await at(maya, "/scene/nowhere")
