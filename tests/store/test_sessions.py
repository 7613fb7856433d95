"""What the stores promise of sessions that are listed by the date of the talk."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.language.words import base_terms
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import quarantine_rows, session_rows, tombstone_rows, turn_rows
from mcp_memory.store.sql.session_rows import ListedSession, SessionFilters

ALL = SessionFilters()
SPACES = count()
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def say(
    store: Store, session: str, *texts: str, at: datetime = NOON, role: str = "user", space: str = "me"
) -> list[str]:
    turns = [NewTurn(role=role, content=text, said_at=at + timedelta(minutes=i)) for i, text in enumerate(texts)]  # type: ignore[arg-type]
    done = store.write(space, turn_rows.append, session, turn_rows.prepare(turns), now=NOON)
    return [turn.id for turn in done.stored]


def listed(store: Store, filters: SessionFilters = ALL, space: str = "me") -> list[ListedSession]:
    return store.read(space, session_rows.list_sessions, filters, limit=100)


def names(sessions: Sequence[ListedSession]) -> list[str]:
    return [session.name for session in sessions]


def test_sessions_are_listed_by_when_they_were_talked_not_by_when_they_were_stored(store: Store) -> None:
    say(store, "today", "The boat sails.", at=NOON)
    say(store, "an old export", "Which boat?", "The night boat.", at=NOON - timedelta(days=400))
    say(store, "elsewhere", "Hello", space="other")
    first, second = listed(store)
    assert (first.name, second.name) == ("today", "an old export")
    assert (second.turns, second.first) == (2, NOON - timedelta(days=400))
    assert second.last == second.first + timedelta(minutes=1)


def test_sessions_are_filtered_by_client_project_and_period(store: Store) -> None:
    say(store, "claude-code-3f2a9c1e", "Build it.", at=NOON)
    say(store, "chatgpt-00000001", "A recipe", "for bread", at=NOON - timedelta(days=40))
    say(store, "go-live", "The date?", at=NOON - timedelta(days=2))
    store.write("me", turn_rows.note_project, "go-live", "/srv/web")
    store.write("me", session_rows.note_client, "go-live", "Cursor")
    store.write("me", session_rows.note_client, "go-live", "another")
    assert {session.name: session.client for session in listed(store)} == {
        "claude-code-3f2a9c1e": "claude-code",
        "chatgpt-00000001": "chatgpt",
        "go-live": "Cursor",
    }
    assert names(listed(store, SessionFilters(client="chatgpt"))) == ["chatgpt-00000001"]
    assert names(listed(store, SessionFilters(client="Cursor"))) == ["go-live"]
    assert names(listed(store, SessionFilters(project="/srv/web"))) == ["go-live"]
    assert names(listed(store, SessionFilters(project=""))) == ["claude-code-3f2a9c1e", "chatgpt-00000001"]
    since, until = NOON - timedelta(days=50), NOON - timedelta(days=1)
    assert names(listed(store, SessionFilters(since=since, until=until))) == ["go-live", "chatgpt-00000001"]
    assert names(listed(store, SessionFilters(until=NOON - timedelta(days=30)))) == ["chatgpt-00000001"]


def test_names_that_only_resemble_a_clients_tell_no_client(store: Store) -> None:
    for name in ("2026-11-20-0a1b2c3d", "session-0a1b2c3d", "0a1b2c3d", "-0a1b2c3d", "trip-to-porto", "a-0a1b2c3"):
        say(store, name, "The boat sails.")
    assert {session.client for session in listed(store)} == {None}


def test_a_word_is_found_in_the_turns_and_in_the_name_of_a_session(store: Store) -> None:
    say(store, "ferry-plans", "Which cabin?", "The tickets are booked.")
    say(store, "other", "The ferry sails at noon.", "Two tickets, please.")
    say(store, "third", "Tickets for the opera.")
    numbers = {session.place.number: session.name for session in listed(store)}

    def found(*words: str) -> set[str]:
        terms = [(word, base_terms(word)) for word in words]
        return {numbers[number] for number in store.read("me", session_rows.with_words, terms)}

    assert found("ferry") == {"ferry-plans", "other"}
    assert found("tickets", "ferry") == {"ferry-plans", "other"}
    assert found("tickets", "opera") == {"third"}
    assert found("zeppelin") == set()


def test_forgotten_and_quarantined_turns_neither_date_nor_name_a_session(store: Store) -> None:
    first, second, _ = say(store, "trip", "Otto's secret.", "Ignore me.", "Which boat?")
    (last,) = say(store, "trip", "Goodbye", at=NOON + timedelta(days=9))
    store.write("me", quarantine_rows.quarantine, {second: ["heed"]}, now=NOON)
    store.write("me", tombstone_rows.forget, [first, last], reason="", now=NOON)
    (trip,) = listed(store)
    assert (trip.turns, trip.last) == (2, NOON + timedelta(minutes=2))
    turns = store.read("me", session_rows.naming_turns, [trip.place.number])
    assert turns[trip.place.number].said == ["Which boat?"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(days=st.lists(st.integers(0, 5), min_size=1, max_size=12), limit=st.integers(1, 5))
def test_pages_of_any_size_have_each_session_once_in_the_order_of_the_list(
    store: Store, days: list[int], limit: int
) -> None:
    space = f"space-{next(SPACES)}"
    for place, day in enumerate(days):
        say(store, f"n{place}", "The boat sails.", at=NOON - timedelta(days=day), space=space)
    everything, pages, after = listed(store, space=space), list[ListedSession](), None
    while page := store.read(space, session_rows.list_sessions, SessionFilters(), after=after, limit=limit):
        pages += page
        after = page[-1].place
    assert pages == everything
    assert [session.last for session in pages] == sorted((session.last for session in pages), reverse=True)
    assert len({session.name for session in pages}) == len(days)


def test_the_beginnings_that_name_a_session_are_the_same_on_every_engine(store: Store) -> None:
    say(store, "trip", "Which boat?\0And the rest", "\U0010fffeodd", "é" * 2_000)
    (trip,) = listed(store)
    said = store.read("me", session_rows.naming_turns, [trip.place.number])[trip.place.number].said
    assert said == ["Which boat?", "\U0010fffeodd", "é" * 1_000]
