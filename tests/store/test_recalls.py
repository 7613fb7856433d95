"""The log of recalls: a contract of every store; and the schema that it came with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql.recall_rows import KEPT
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import RECALLS, RecallEntry

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ENTRY = RecallEntry(at=NOON, how="recall", session="s", ids=("a1", "t1"), tokens=90, query="Where is the boat?")


def tell(store: Store, content: str = "The boat is in Bergen.", *, space: str = "me") -> None:
    store.append_turns(space, "s", [NewTurn(role="user", content=content)], now=NOON)


def test_recalls_come_back_newest_first_each_in_its_space(store: Store) -> None:
    tell(store)
    tell(store, space="other")
    later = replace(ENTRY, at=NOON + timedelta(minutes=1), how="prompt", ids=(), query=None)
    store.note_recall("me", ENTRY)
    store.note_recall("other", replace(ENTRY, how="start"))
    store.note_recall("me", later)
    assert store.recalls("me") == [later, ENTRY]
    assert store.recalls("me", limit=1) == [later]
    assert [one.how for one in store.recalls("other")] == ["start"]


def test_a_recall_is_in_the_change_feed_and_makes_no_space(store: Store) -> None:
    tell(store)
    before = store.last_change("me")
    store.note_recall("me", ENTRY)
    store.note_recall("nobody", ENTRY)
    assert [change.topic for change in store.changes("me", before)] == [RECALLS]
    assert (store.spaces(), store.recalls("nobody")) == (["me"], [])


@pytest.mark.slow
def test_the_log_keeps_the_last_recalls_of_a_space(store: Store) -> None:
    tell(store)
    for number in range(KEPT + 5):
        store.note_recall("me", replace(ENTRY, tokens=number))
    assert [one.tokens for one in store.recalls("me", limit=10_000)] == [*range(KEPT + 4, 4, -1)]


def test_a_purge_erases_what_was_asked_for(store: Store) -> None:
    for space in ("me", "other"):
        tell(store, space=space)
        store.note_recall(space, ENTRY)
    tombstone = store.forget("me", ["t1"], reason="wrong", now=NOON)
    store.purge("me", Purge(tombstones=[tombstone.id], personas={}), now=NOON)
    assert store.recalls("me") == [replace(ENTRY, query=None)]
    assert store.recalls("other") == [ENTRY]


def test_a_home_of_the_first_schema_gets_the_log(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:1])
    old = open_store(home)
    tell(old)
    told = old.turns("me", ["t1"])
    old.close()
    monkeypatch.undo()
    opened = open_store(home)
    assert (opened.turns("me", ["t1"]), opened.schema(), opened.problems()) == (told, SCHEMA[-1][0], [])
    opened.note_recall("me", ENTRY)
    assert opened.recalls("me") == [ENTRY]
    opened.close()
