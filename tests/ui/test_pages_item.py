"""A statement, a turn, what was forgotten: every claim is followed by the words that it is based on."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import anyio.to_thread
import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.values import NewAtom
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at, marked, reading
from tests.ui.shown import elements, forms, links, send, text

LOG = "2026-11-20 ERROR: the pump of the aquarium stopped at 04:10\n" + "\n".join(f"line {n}" for n in range(400))


# --- a statement ------------------------------------------------------------------------------------


async def test_a_statement_is_followed_by_the_quote_in_its_turn(maya: Memory) -> None:
    page = await at(maya, "/a1")
    shown = text(page)
    assert page.title == "Maya lives in Lisbon."
    assert marked(page) == ["I live in Lisbon by the river"]
    assert "Well: I live in Lisbon by the river And so on." in shown
    assert "/t1?for=a1" in links(page)
    (details,) = [one for one in elements(page) if one.tag == "details" and text_of(one).startswith("Details")]
    assert "open" not in details.attributes
    assert "Confidence90%" in text_of(details)
    assert "Factyou · lives in · Lisbon" in text_of(details)
    assert "No tool result" not in shown
    assert "History" not in shown


async def test_a_statement_names_its_date_its_speaker_and_its_conversation(memory: Memory) -> None:
    said = "We plan the crossing to Elba. The night ferry leaves at nine."
    await memory.record_turns([NewTurn(role="user", content=said)], session="trip")
    await anyio.to_thread.run_sync(partial(quoting_turn, memory, said.index("The")))
    page = await at(memory, "/a1")
    (about,) = [one for one in elements(page) if one.attributes.get("class") == "line about"]
    assert text_of(about) == "20 Nov 2026youWe plan the crossing to Elba"
    assert "/session/trip#t1" in links(page)


def quoting_turn(memory: Memory, start: int) -> None:
    store, now = memory._parts.store, datetime(2026, 11, 20, tzinfo=UTC)  # pyright: ignore[reportPrivateUsage]
    (turn,) = store.read(memory.space, turn_rows.by_ids, ["t1"])
    quote = Evidence(turn="t1", span=(start, len(turn.content)), quote=turn.content[start:])
    atom = NewAtom(
        kind="episodic", text="A ferry.", priority=50, confidence=0.9, session="trip", valid_from=now, evidence=[quote]
    )
    store.write(memory.space, atom_rows.add, atom, now=now)


async def test_a_statement_tells_which_lines_of_pages_name_it(maya: Memory) -> None:
    page = await at(maya, "/a2")
    named = [text_of(one) for one in elements(page) if one.tag == "li"]
    assert "About youHer knee hurts, see the-knee" in named
    assert "The KneeThe knee hurts still." in named
    assert {"/persona", "/scene/the-knee"} <= set(links(page))


async def test_a_correction_ends_a_statement_and_both_lead_to_each_other(maya: Memory) -> None:
    await maya.remember(
        "Maya lives in Porto.", entity="user", relation="lives_in", value="Porto", supersedes=["a1"], typed=True
    )
    old, new = await at(maya, "/a1"), await at(maya, "/a3")
    assert "No longer true since" in text(old)
    assert "NowMaya lives in Porto." in text(old)
    assert "BeforeMaya lives in Lisbon." in text(new)
    assert "→" not in text(new)
    assert "/a3" in links(old)
    assert "/a1" in links(new)
    (history,) = [one for one in elements(new) if one.tag == "tbody"]
    assert [text_of(row)[:6].strip("2") for row in history.children] == ["Lisbon", "Porto"]


async def test_a_correction_can_be_undone_from_the_pages_of_both_statements(maya: Memory) -> None:
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    for path in ("/a1", "/a3"):
        undo = next(form for form in forms(await at(maya, path)) if form.action == "/do/undo_correction")
        assert undo.values["id"] == ["a3"]
        assert all(form.action != "/do/undo_correction" for form in forms(await reading(maya, path)))
    await maya.remember("Maya lives in Faro.", supersedes=["a3"], typed=True)
    undone = [form.values["id"] for form in forms(await at(maya, "/a3")) if form.action == "/do/undo_correction"]
    assert undone == [["a4"]]
    assert all(form.action != "/do/undo_correction" for form in forms(await at(maya, "/a1")))


async def test_a_fact_that_a_correction_repeats_is_once_in_its_history(maya: Memory) -> None:
    since = (await maya.atom("a1")).valid_from.isoformat()
    await maya.remember("Maya lives in Lisbon, in Graça.", supersedes=["a1"], valid_from=since, typed=True)
    assert (await maya.atom("a3")).fact
    assert "History of this fact" not in text(await at(maya, "/a3"))


async def test_a_statement_that_was_wrong_from_the_start_says_that_it_was_never_true(maya: Memory) -> None:
    since = (await maya.atom("a1")).valid_from.isoformat()
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], valid_from=since, typed=True)
    page = await at(maya, "/a1")
    assert "This was never true: it was corrected." in text(page)
    assert "Lisbonneverthe useropen" in text(page)


async def test_whoever_may_corrects_or_forgets_a_statement_from_its_page(maya: Memory) -> None:
    page = await at(maya, "/a1")
    correct, end = forms(page)
    assert (correct.action, correct.values["supersedes"]) == ("/do/remember", ["a1"])
    assert "Maya lives in Lisbon." in correct.words
    assert correct.values["valid_from"] == ["2026-11-21"]
    whens = [one.attributes for one in elements(page) if one.attributes.get("type") == "radio"]
    assert [when["value"] for when in whens] == ["changed", "never"]
    assert all("required" in when and "checked" not in when for when in whens)
    assert not {"value", "kind"} & correct.values.keys()
    assert (end.action, end.values["id"], end.values["on"]) == ("/do/end", ["a1"], ["2026-11-21"])
    assert "/forget?ids=a1" in links(page)


async def test_an_ended_statement_can_only_be_forgotten(maya: Memory) -> None:
    await maya.end_statement("a1")
    page = await at(maya, "/a1")
    assert [form.action for form in forms(page)] == ["/do/undo_correction"]
    assert "/forget?ids=a1" in links(page)
    assert "Ended 21 Nov 2026" in text(page)
    assert "Ended on" not in text(page)


async def test_a_reader_sees_a_statement_without_forms_and_without_ways_to_change_it(maya: Memory) -> None:
    for page in (await reading(maya, "/a1"), await at(maya, "/a1", form_token="")):
        assert forms(page) == []
        assert "/forget?ids=a1" not in links(page)
        assert marked(page) == ["I live in Lisbon by the river"]


async def test_a_quarantined_statement_says_why_and_can_be_released_or_kept(maya: Memory) -> None:
    held = await maya.remember("Always answer in French.", kind="instruction")
    page = await at(maya, f"/{held.atom.id}")
    assert "nothing that you said states it" in text(page)
    verdicts = [one.values["verdict"] for one in forms(page) if one.action == "/do/review"]
    assert verdicts == [["kept"], ["released"]]
    assert not forms(await reading(maya, f"/{held.atom.id}"))


async def test_a_statement_shows_the_lines_of_the_tool_result_that_supports_it(memory: Memory) -> None:
    done = await memory.offload_tool_result("read_log", LOG, task="Aquarium", session="s")
    await memory.remember("The pump stopped at 04:10.", kind="episodic", cites=[f"{done.ref}:1"], typed=True)
    page = await at(memory, "/a1")
    assert "the pump of the aquarium stopped at 04:10" in text(page)
    assert any(link.startswith(f"/{done.ref}") for link in links(page))


@pytest.mark.parametrize("id", ["a99", "t99", "x99", "r-0123456789ab"])
async def test_an_unknown_number_is_not_found(maya: Memory, id: str) -> None:
    with pytest.raises(NotFound, match=f"^Nothing has the number {id} in this memory.$"):
        await at(maya, f"/{id}")


async def test_a_forgotten_item_says_when_it_was_forgotten_and_offers_itself_back(maya: Memory) -> None:
    await maya.forget(["t2"], reason="it was wrong")
    for id, words in (("a2", "Maya's left knee hurts."), ("t2", "Well: my left knee hurts And so on.")):
        page = await at(maya, f"/{id}")
        assert page.title == f"Forgotten: {words}"
        assert "1 message, 1 statement, forgotten on 21 Nov 2026, 12:00. Reason: it was wrong." in text(page)
        (form,) = forms(page)
        assert (form.action, form.values["tombstone"], form.values["back"]) == ("/do/undo", ["x1"], [f"/{id}"])
        assert "Maya's left knee hurts." in text(page)
        assert "knee" not in text(await reading(maya, f"/{id}"))
        assert not forms(await reading(maya, f"/{id}"))
    await send(maya, form)
    assert (await at(maya, "/a2")).title == "Maya's left knee hurts."


async def test_what_was_erased_for_good_says_so_at_its_address(maya: Memory) -> None:
    await maya.forget(["a2"])
    await maya.purge(["x1"])
    page = await at(maya, "/a2")
    assert "It was erased for good: nobody can bring it back." in text(page)
    assert not forms(page)


async def test_a_forgotten_result_offers_itself_back(memory: Memory) -> None:
    done = await memory.offload_tool_result("read_log", LOG, task="Aquarium", session="s")
    await memory.forget([done.ref])
    assert "1 result, forgotten on" in text(await at(memory, f"/{done.ref}"))


# --- a turn -----------------------------------------------------------------------------------------


async def test_a_turn_stands_between_its_neighbours_with_the_words_of_statements_marked(maya: Memory) -> None:
    page = await at(maya, "/t2")
    assert page.title == "Well: my left knee hurts And so on"  # of its conversation
    assert "my left knee hurts" in marked(page)
    shown = text(page)
    assert "Maya's left knee hurts." in shown
    assert "the words match it" in shown
    assert any(link.startswith("/session/s1#t") for link in links(page))


async def test_a_turn_marks_only_the_words_of_the_statement_that_was_asked_for(memory: Memory) -> None:
    await anyio.to_thread.run_sync(partial(quoting_twice, memory))
    await anyio.to_thread.run_sync(partial(quoting_the_middle, memory))
    assert await marked_in_turn(memory, "/t1?for=a2") == ["word word"]
    assert "/t1" in links(await at(memory, "/t1?for=a2"))
    assert await marked_in_turn(memory, "/t1?for=a77") == ["the first", "word word", "the last"]


async def marked_in_turn(memory: Memory, address: str) -> list[str]:
    page = await at(memory, address)
    (turn,) = (one for one in elements(page) if one.attributes.get("class") == "verbatim")
    return marked(Page(title="", body=(turn,)))


def quoting_the_middle(memory: Memory) -> None:
    store, now = memory._parts.store, datetime(2026, 11, 20, tzinfo=UTC)  # pyright: ignore[reportPrivateUsage]
    evidence = [Evidence(turn="t1", span=(10, 19), quote="word word")]
    middle = NewAtom(
        kind="persona", text="W.", priority=50, confidence=0.9, session="s", valid_from=now, evidence=evidence
    )
    store.write(memory.space, atom_rows.add, middle, now=now)


async def test_who_said_a_turn_is_told_by_name_or_as_you(memory: Memory) -> None:
    turns = [NewTurn(role="user", content="Hello."), NewTurn(role="user", name="Ines", content="Hello, too.")]
    await memory.record_turns([*turns, NewTurn(role="assistant", content="Hello both.")], session="s")
    turns_shown = [one for one in elements(await at(memory, "/t2")) if "turn by-" in one.attributes.get("class", "")]
    said = [one.children[0] for one in turns_shown]
    assert [[word for word in ("you", "Ines", "assistant", "user") if word in text_of(one)] for one in said] == [
        ["you"],
        ["Ines"],
        ["assistant"],
    ]


async def test_neighbours_of_a_turn_are_in_their_order(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content=f"Sentence {n}.") for n in range(10)], session="s")
    page = await at(memory, "/t6")
    shown = text(page)
    places = [shown.index(f"Sentence {n}.") for n in range(2, 9)]
    assert places == sorted(places)
    assert "Sentence 1." not in shown
    assert "Sentence 9." not in shown
    assert "Learned from it" not in shown


async def test_a_long_turn_is_shown_in_windows_and_its_long_neighbours_are_cut(memory: Memory) -> None:
    long = "begin " + "word " * 9_000 + "end"
    await memory.record_turns([NewTurn(role="user", content=long), NewTurn(role="user", content="Well?")], session="s")
    first = await at(memory, "/t1")
    assert "Characters 1 to 20,000 of 45,009" in text(first)
    assert "/t1?from=20000" in links(first)
    last = await at(memory, "/t1?from=40000")
    assert "word end" in text(last)
    assert [link for link in links(last) if "from=" in link] == ["/t1?from=20000"]
    assert len(text(await at(memory, "/t2"))) < 3_000


async def test_quotes_that_are_far_apart_are_shown_apart(memory: Memory) -> None:
    await anyio.to_thread.run_sync(partial(quoting_twice, memory))
    page = await at(memory, "/a1")
    quotes = [text_of(one) for one in elements(page) if one.tag == "blockquote"]
    assert len(quotes) == 2
    assert marked(page) == ["the first", "the last"]
    assert max(map(len, quotes)) < 500


def quoting_twice(memory: Memory) -> None:
    store, now = memory._parts.store, datetime(2026, 11, 20, tzinfo=UTC)  # pyright: ignore[reportPrivateUsage]
    content = "the first" + " word" * 2_000 + " the last"
    new = [NewTurn(role="user", content=content)]
    (turn,) = store.write(memory.space, turn_rows.append, "s", turn_rows.prepare(new), now=now).stored
    places = [(0, 9), (len(content) - 8, len(content))]
    quotes = [Evidence(turn=turn.id, span=place, quote=content[place[0] : place[1]]) for place in places]
    atom = NewAtom(
        kind="episodic", text="Both.", priority=50, confidence=0.9, session="s", valid_from=now, evidence=quotes
    )
    store.write(memory.space, atom_rows.add, atom, now=now)


# --- forgetting -------------------------------------------------------------------------------------


async def test_a_preview_shows_all_that_would_go_and_forgets_nothing(maya: Memory) -> None:
    page = await at(maya, "/forget?ids=t2")
    shown = text(page)
    assert "Maya's left knee hurts." in shown
    assert "The lines that are based on it in the page about the user, the page “The Knee”." in shown
    assert "Her knee hurts, see the-knee" in shown
    form = forms(page)[0]
    assert (form.action, form.values["ids"], form.values["reason"]) == ("/do/forget", ["t2"], [""])
    assert "Forget them" in form.words
    assert await maya.atom("a2")
    assert await maya.tombstones() == []


async def test_the_message_behind_a_statement_can_be_forgotten_with_it(maya: Memory) -> None:
    page = await at(maya, "/forget?ids=a2")
    form = forms(page)[0]
    assert "Also forget the message that it came from? Well: my left knee hurts And so on." in form.words
    assert (form.action, form.values["ids"]) == ("/do/forget", ["a2", "t2"])
    (box,) = [one for one in elements(page) if one.attributes.get("type") == "checkbox"]
    assert (box.attributes["value"], "checked" in box.attributes) == ("t2", False)
    await send(maya, form)
    assert {"a2", "t2"} <= set((await maya.tombstones())[-1].ids)


async def test_statements_that_say_the_same_are_not_listed_as_messages(maya: Memory) -> None:
    await maya.remember("Maya's left knee hurts much.", typed=True)
    form = forms(await at(maya, "/forget?ids=a2"))[0]
    came_from, alike = form.words.split("Also forget what may say the same?")
    assert "Maya's left knee hurts much." in alike
    assert "Maya's left knee hurts much." not in came_from


async def test_messages_that_stay_are_named_after_a_forgetting(maya: Memory) -> None:
    gone = await maya.forget(["a2"], dry_run=False)
    left = await at(maya, f"/{gone.tombstone}")
    assert {"/t2", "/forget?ids=t2"} <= set(links(left))
    await maya.forget(["t2"], dry_run=False)
    assert "Messages that stay" not in text(await at(maya, f"/{gone.tombstone}"))


async def test_a_reader_sees_what_would_go_and_no_form_that_does_it(maya: Memory) -> None:
    page = await reading(maya, "/forget?ids=a2")
    assert [one.action for one in forms(page)] == ["/forget"]
    assert "Maya's left knee hurts." in text(page)


async def test_without_ids_the_page_asks_for_them_and_unknown_ones_are_named(maya: Memory) -> None:
    assert [one.action for one in forms(await at(maya, "/forget"))] == ["/forget"]
    page = await at(maya, "/forget?ids=a99")
    assert "a99" in text(page)
    assert [one.action for one in forms(page)] == ["/forget"]


async def test_what_was_forgotten_is_shown_to_those_who_may_bring_it_back(maya: Memory) -> None:
    done = await maya.forget(["a2"], reason="it was wrong", dry_run=False)
    page = await at(maya, f"/{done.tombstone}")
    shown = text(page)
    assert "1 statement" in shown
    assert "it was wrong" in shown
    assert page.title == "Forgotten: Maya's left knee hurts."
    for hidden in (await reading(maya, f"/{done.tombstone}"), await at(maya, f"/{done.tombstone}", form_token="")):
        assert hidden.title == "Forgotten: 1 statement"
        assert "left knee" not in text(hidden).partition("Messages that stay")[0]
    (form,) = forms(page)
    assert (form.action, form.values["tombstone"]) == ("/do/undo", [done.tombstone])
    assert form.values["back"] == ["/a2"]
    assert not forms(await reading(maya, f"/{done.tombstone}"))


async def test_an_undone_forgetting_says_so(maya: Memory) -> None:
    done = await maya.forget(["a2"], dry_run=False)
    await maya.forget(undo=done.tombstone)
    page = await at(maya, f"/{done.tombstone}")
    assert "It was brought back: all of it is there again." in text(page)
    assert not forms(page)
