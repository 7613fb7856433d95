"""Conversations: sessions in pages, turns in windows with what was made of them, imports by whoever may see paths."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest

import pytest
from anyio import to_thread

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.values import FollowedLog, Imported
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at, stated
from tests.ui.shown import elements, links, text

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


async def said(memory: Memory, session: str, *texts: str) -> None:
    await memory.record_turns([NewTurn(role="user", content=one) for one in texts], session=session)


async def stored(memory: Memory, session: str, *texts: str, times: Sequence[datetime | None] = ()) -> None:
    """Store turns that nothing looks into first, said at these times."""
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    new = [NewTurn(role="user", content=one, said_at=at) for one, at in zip_longest(texts, times)]
    await to_thread.run_sync(lambda: store.write("default", turn_rows.append, session, turn_rows.prepare(new), now=NOW))


async def test_conversations_are_listed_by_the_date_of_the_talk_with_their_titles(memory: Memory) -> None:
    await said(memory, "first", "How do I keep bees through a wet winter?", "In Porto.")
    await said(memory, "second & third", "I keep hens.")
    shown = await at(memory, "/conversations")
    assert links(shown)[:2] == ["/session/second%20%26%20third", "/session/first"]
    assert "How do I keep bees through a wet winter?" in text(shown)
    assert "2 messages" in text(shown)


async def test_a_list_of_many_conversations_has_pages(memory: Memory) -> None:
    for number in range(33):
        await stored(memory, f"s{number}", "Hello.")
    first = await at(memory, "/conversations")
    (more,) = (link for link in links(first) if "cursor=" in link)
    assert ("/session/s3" in links(first), "/session/s2" in links(first)) == (True, False)
    assert [link for link in links(await at(memory, more)) if "/session/" in link] == [
        "/session/s2",
        "/session/s1",
        "/session/s0",
    ]


async def test_conversations_are_found_by_words_and_filters(memory: Memory) -> None:
    await said(memory, "claude-code-1a2b3c4d", "The kettle is red.")
    await said(memory, "codex-5e6f7a8b", "The boat is blue.")
    for query, found in (
        ("q=kettle", "claude-code-1a2b3c4d"),
        ("client=codex", "codex-5e6f7a8b"),
        ("month=2026-11&q=boat", "codex-5e6f7a8b"),
    ):
        page = await at(memory, f"/conversations?{query}")
        assert [link for link in links(page) if "/session/" in link] == [f"/session/{found}"]
    assert "No conversation passes" in text(await at(memory, "/conversations?project=other"))
    assert "whenever" in text(await at(memory, "/conversations?month=whenever"))


async def test_a_session_is_shown_as_it_was_said_with_what_was_made_of_it(memory: Memory) -> None:
    await said(memory, "s", "I keep bees\nin Porto.", "And *hens*.")
    told = await memory.remember("Keeps bees", session="s", typed=True)
    shown = await at(memory, "/session/s")
    assert "I keep bees\nin Porto." in text(shown)
    assert "And *hens*." in text(shown)
    assert f"/{told.atom.id}" in links(shown)
    assert {"/t1", "/t2"} <= set(links(shown))


async def test_a_session_is_named_by_its_title_with_its_client_and_date(memory: Memory) -> None:
    await said(memory, "codex-5e6f7a8b", "How do I keep bees through a wet winter?")
    shown = await at(memory, "/session/codex-5e6f7a8b")
    assert shown.title == "How do I keep bees through a wet winter?"
    assert "/conversations?client=codex" in links(shown)
    assert "1 message" in text(shown)


async def test_conversations_are_listed_under_months_and_by_whom_they_mention(maya: Memory) -> None:
    for month, name in ((9, "Ines"), (10, "Ben")):
        told = f"My sister {name} lives in Oslo."
        await stated(maya, told, name, session=name, said_at=NOW.replace(month=month))
    shown = await at(maya, "/conversations")
    months = [text_of(each) for each in elements(shown) if each.tag == "h2"]
    assert months[1:3] == ["October 2026", "September 2026"]
    shown = await at(maya, "/conversations?entity=ines")
    assert [link for link in links(shown) if "/session/" in link] == ["/session/Ines"]
    assert "No entity 'Zoe'" in text(await at(maya, "/conversations?entity=Zoe"))


async def test_a_session_that_fits_is_shown_whole_with_a_place_for_each_message(memory: Memory) -> None:
    await stored(memory, "s", *(f"Turn {number:03}." for number in range(100)))
    shown = await at(memory, "/session/s?start=97")
    assert ("Turn 000." in text(shown), "Turn 099." in text(shown)) == (True, True)
    assert not any("start=" in link for link in links(shown))
    assert "t98" in {one.attributes.get("id") for one in elements(shown)}
    assert "/session/s?start=94#t98" in links(await at(memory, "/t98"))


async def test_a_long_session_is_shown_in_windows_the_earlier_messages_above(memory: Memory) -> None:
    await stored(memory, "s", *(f"Turn {number:03}." for number in range(220)))
    first = await at(memory, "/session/s")
    assert ("Turn 099." in text(first), "Turn 100." in text(first)) == (True, False)
    assert links(first)[-1] == "/session/s?start=100"
    middle = await at(memory, "/session/s?start=100")
    assert ("Turn 100." in text(middle), "Turn 199." in text(middle)) == (True, True)
    assert (links(middle)[0], links(middle)[-1]) == ("/session/s", "/session/s?start=200")
    assert links(await at(memory, "/session/s?start=200"))[0] == "/session/s?start=100"


async def test_a_window_of_long_turns_ends_early_and_a_very_long_turn_is_cut_with_a_link_to_all_of_it(
    memory: Memory,
) -> None:
    await stored(memory, "s", *(f"{number} " + "word " * 820 for number in range(8)))
    shown = await at(memory, "/session/s")
    assert len(text(shown)) < 32_000
    assert links(shown)[-1] == "/session/s?start=7"
    assert text(shown).count("This message goes on: read all of it") == 7


async def test_a_session_that_is_not_there_and_a_start_that_is_no_number_are_refused(memory: Memory) -> None:
    await said(memory, "s", "Hello.")
    with pytest.raises(NotFound, match="'s'"):
        await at(memory, "/session/none")
    for start in ("-1", "x", "٣", "9" * 10):
        with pytest.raises(InvalidInput):
            await at(memory, f"/session/s?start={start}")
    await stored(memory, "long", *("Hello." for _ in range(101)))
    assert "no messages from here on" in text(await at(memory, "/session/long?start=101"))


async def test_a_session_of_which_only_results_were_kept_shows_these(memory: Memory) -> None:
    done = await memory.offload_tool_result("run", "a\n" * 900, task="Look", step="Read", session="tools")
    assert f"/{done.ref}" in links(await at(memory, "/session/tools"))


async def test_results_of_tools_stand_between_the_messages_at_their_time(memory: Memory) -> None:
    now, hour = memory.now(), timedelta(hours=1)
    await stored(memory, "s", "Look at it.", "It is fixed.", times=[now - hour, now + hour])
    kept = [
        await memory.offload_tool_result(f"run {name}", f"{name}\n" * 900, task="Look", step="Read", session="s")
        for name in ("first", "second", "third", "fourth", "fifth")
    ]
    shown = await at(memory, "/session/s")
    rows = [one for one in elements(shown) if one.tag == "li" and "tabindex" in one.attributes]
    of_tools = links(Page(title="", body=(rows[1],)))
    assert ["Look at it." in text_of(rows[0]), "It is fixed." in text_of(rows[2]), len(rows)] == [True, True, 3]
    assert [of_tools[:3], of_tools[3:]] == [[f"/{one.ref}" for one in kept[:3]], ["/001"]]
    assert "900 lines" in text_of(rows[1])
    assert "and 2 more results" in text_of(rows[1])


async def test_a_result_stands_in_the_window_of_the_messages_around_it(memory: Memory) -> None:
    times = [memory.now() + timedelta(hours=number - 120) for number in range(220)]
    await stored(memory, "s", *("Hello." for _ in times), times=times)
    done = await memory.offload_tool_result("run", "a\n" * 900, task="Look", step="Read", session="s")
    windows = [links(await at(memory, f"/session/s?start={start}")) for start in (0, 100, 200)]
    assert [f"/{done.ref}" in window for window in windows] == [False, True, False]


async def test_a_statement_in_the_words_of_a_message_is_a_link_in_it_and_another_is_below(maya: Memory) -> None:
    await stated(maya, "I keep bees in Porto.", session="bees", said_at=NOW)
    verbatim = await at(maya, "/session/bees")
    assert text(verbatim).count("I keep bees in Porto.") == 1
    assert links(verbatim)[-1] == "/a3"
    (first,) = await maya.turns(["t1"])
    reworded = await at(maya, f"/session/{first.session}")
    assert "I live in Lisbon by the river" in text(reworded)
    assert "made from it:Maya lives in Lisbon." in text(reworded)


async def test_imports_name_whole_paths_only_to_the_owner(memory: Memory) -> None:
    file = Imported(path="/home/me/chats.zip", sha256="0" * 64, modified=0, turns=1200, at=NOW)
    await memory.note_import(file)
    log = FollowedLog(
        path="/home/me/log.jsonl", client="codex", session="s", offset=5120, head="", tail="", state="{}", at=NOW
    )
    await memory.note_followed(log)
    for is_owner in (True, False):
        shown = text(await at(memory, "/conversations", is_owner=is_owner))
        assert "chats.zip1,20020 Nov 2026" in shown
        assert "log.jsonlCodexs5,120 bytes" in shown
        assert ("/home/me" in shown) is is_owner
