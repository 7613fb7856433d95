"""What is forgotten stays so, whichever way it comes again; what is said anew is new."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import InvalidInput, Refused
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, job_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.values import Extraction, Merge, Merging, NewAtom
from mcp_memory.testing import FixedClock

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LONG = "My insurance number is the year of the fire, backwards."


def user(content: str, said_at: datetime | None = None, client_id: str | None = None) -> NewTurn:
    return NewTurn(role="user", content=content, said_at=said_at, client_id=client_id)


def forget(store: Store, *ids: str) -> str:
    return store.write("me", tombstone_rows.forget, ids, reason="", now=NOON + timedelta(hours=1)).id


def leave(store: Store, tombstone: str) -> None:
    pass


def purge(store: Store, tombstone: str) -> None:
    store.purge("me", Purge(tombstones=[tombstone]), now=NOON + timedelta(hours=2))


@pytest.fixture(params=[leave, purge], ids=["forgotten", "purged"])
def then(request: pytest.FixtureRequest) -> Callable[[Store, str], None]:
    return request.param


def test_a_turn_does_not_come_back_with_its_history(store: Store, then: Callable[[Store, str], None]) -> None:
    history = [user("Hello there, how are you?"), user(LONG), user("Anyway, thank you and goodbye.")]
    store.write("me", turn_rows.append, "s", turn_rows.prepare(history), now=NOON)
    then(store, forget(store, "t2"))
    again = store.write("me", turn_rows.append, "s", turn_rows.prepare(history), now=NOON + timedelta(days=1))
    assert (again.stored, again.duplicates, again.forgotten) == ([], 2, 1)
    lone = store.write("me", turn_rows.append, "s", turn_rows.prepare([history[1]]), now=NOON + timedelta(days=1))
    assert (lone.stored, lone.forgotten) == ([], 1)


def test_a_turn_does_not_come_back_under_another_name(store: Store, then: Callable[[Store, str], None]) -> None:
    said = NOON - timedelta(days=3)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user(LONG, said), user("yes", said)]), now=NOON)
    then(store, forget(store, "t1", "t2"))
    history = [
        user(f" {LONG.upper()}  ", said),
        user("yes", said),
        user("yes", said - timedelta(days=1)),
        user("no", said),
    ]
    brought = store.write("me", turn_rows.append, "imported", turn_rows.prepare(history), now=NOON + timedelta(days=1))
    # Everybody says yes: only the one of that moment was forgotten.
    assert ([turn.content for turn in brought.stored], brought.forgotten) == (["yes", "no"], 2)


def test_what_is_said_anew_is_no_longer_what_was_forgotten(store: Store, then: Callable[[Store, str], None]) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user(LONG)]), now=NOON)
    then(store, forget(store, "t1"))
    later = NOON + timedelta(days=1)
    assert len(store.write("me", turn_rows.append, "s", turn_rows.prepare([user(LONG, later)]), now=later).stored) == 1
    assert len(store.write("me", turn_rows.append, "other", turn_rows.prepare([user(LONG)]), now=later).stored) == 1
    assert len(store.write("you", turn_rows.append, "s", turn_rows.prepare([user(LONG, NOON)]), now=later).stored) == 1


def test_a_clients_own_id_keeps_a_turn_out(store: Store, then: Callable[[Store, str], None]) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user("ok then", client_id="m1")]), now=NOON)
    then(store, forget(store, "t1"))
    assert store.read("me", turn_rows.known_client_ids, ["m1", "m2"]) == {"m1": True}
    assert (
        store.write("me", turn_rows.append, "s", turn_rows.prepare([user("ok then", client_id="m1")]), now=NOON).stored
        == []
    )


def draft(text: str, turn: str, span: tuple[int, int], quote: str) -> NewAtom:
    words = [Evidence(turn=turn, span=span, quote=quote)]
    return NewAtom(kind="persona", text=text, priority=50, confidence=0.9, session="s", valid_from=NOON, evidence=words)


def drawn(store: Store, session: str, *drafts: NewAtom) -> list[str]:
    """Extract and merge, as the pipeline does; return the texts of what came of it."""
    work = store.write("me", job_rows.lease, "extract", session, "{}", holder="me", lease=timedelta(hours=1), now=NOON)
    assert work
    now = NOON + timedelta(days=1)
    store.write(
        "me",
        stage_outputs.commit,
        work.id,
        Extraction(upto={session: 1}, drafts=drafts, aliases={}),
        outcome={},
        now=now,
    )
    work = store.write("me", job_rows.lease, "merge", None, "{}", holder="me", lease=timedelta(hours=1), now=NOON)
    assert work
    merged = [Merging(draft=one.id, atom=one.atom) for one in store.read("me", stage_outputs.drafts)]
    return [
        made.atom.text
        for made in store.write("me", stage_outputs.commit, work.id, Merge(merged=merged), outcome={}, now=now).atoms
    ]


def test_a_statement_is_not_drawn_again_from_its_words_alone(store: Store, then: Callable[[Store, str], None]) -> None:
    said = "I have a rare illness, and I like tea."
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user(said)]), now=NOON)
    first = drawn(store, "s", draft("Has a rare illness", "t1", (0, 21), said[:21]))
    assert first == ["Has a rare illness"]
    then(store, forget(store, "a1"))
    store.write("me", turn_rows.append, "again", turn_rows.prepare([user("Please read all of that anew.")]), now=NOON)
    both = [Evidence(turn="t1", span=span, quote=said[slice(*span)]) for span in ((7, 21), (26, 37))]
    found = drawn(
        store,
        "again",
        draft("Suffers from something rare", "t1", (7, 21), said[7:21]),
        draft("Likes tea", "t1", (26, 37), said[26:37]),
        draft("has a rare illness.", "t1", (0, len(said)), said),
        replace(draft("Tea against an illness", "t1", (0, 1), "I"), evidence=both),
    )
    assert found == ["Likes tea", "Tea against an illness"]


async def test_what_the_user_tells_again_is_a_new_telling(memory: Memory, clock: FixedClock) -> None:
    told = await memory.remember("Allergic to peanuts", typed=True)
    done = await memory.forget([told.atom.id])
    clock.advance(minutes=1)
    await memory.purge([done.tombstone or ""])
    again = await memory.remember("Allergic to peanuts", typed=True)
    assert (again.duplicate, again.atom.id) == (False, "a2")


def test_what_was_told_before_that_and_comes_late_is_refused(store: Store) -> None:
    told = NewAtom(kind="persona", text="Allergic to nuts", priority=80, confidence=1, session="s", valid_from=NOON)
    store.write("me", atom_rows.add, told, now=NOON)
    forget(store, "a1")
    with pytest.raises(Refused, match="x1"):
        store.write("me", atom_rows.add, told, now=NOON)


async def test_a_forgotten_result_is_not_kept_again_and_the_agent_is_told(memory: Memory, clock: FixedClock) -> None:
    result = "the same output\n" * 50
    done = await memory.offload_tool_result("shell", result, session="s")
    gone = await memory.forget([done.ref])
    with pytest.raises(Refused, match=f"undo='{gone.tombstone}'"):
        await memory.offload_tool_result("shell", result, session="other")
    await memory.purge([gone.tombstone or ""])
    with pytest.raises(Refused, match="purged"):
        await memory.offload_tool_result("shell", result, session="other")
    assert await memory.keep_tool_result("shell", result, arguments=None, tool_call_id="c9", session="s", at=clock())
    assert (await memory.status())["counts"]["refs"] == 0


async def test_a_reason_that_is_too_long_to_be_kept_is_refused_and_nothing_is_forgotten(memory: Memory) -> None:
    done = await memory.record_turns([NewTurn(role="user", content="The kettle leaks")], session="s")
    with pytest.raises(InvalidInput, match="reason has 5,000 characters; it can have 200"):
        await memory.forget(done.stored, reason="r" * 5_000)
    assert (await memory.conversation_search("kettle")).hits


@pytest.mark.parametrize("words", [LONG, "The tin."])
@pytest.mark.parametrize("was_dated", [True, False])
def test_a_history_without_times_brings_nothing_back_whenever_it_was_written(
    store: Store, then: Callable[[Store, str], None], words: str, was_dated: bool
) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([user(words, NOON if was_dated else None, "m1"), user("Hello", None, "m2")]),
        now=NOON,
    )
    then(store, forget(store, "t1"))
    later = NOON + timedelta(days=9)
    guessed = [replace(user(words, later, "import-1"), guessed=True), replace(user("No", later, "i-2"), guessed=True)]
    again = store.write("me", turn_rows.append, "s", turn_rows.prepare(guessed), now=later)
    assert ([turn.content for turn in again.stored], again.forgotten) == (["No"], 1)
    dated = store.write("me", turn_rows.append, "s", turn_rows.prepare([user(words, NOON, "import-3")]), now=later)
    assert (dated.stored, dated.forgotten) == ([], 1)
    assert (
        len(
            store.write(
                "me", turn_rows.append, "s", turn_rows.prepare([user(words, later, "said anew")]), now=later
            ).stored
        )
        == 1
    )
