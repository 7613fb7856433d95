"""The log of recalls: a contract of every store; and the schema that it came with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows, recall_rows, tombstone_rows, turn_rows
from mcp_memory.store.sql.recall_rows import KEPT
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import RecallEntry

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ENTRY = RecallEntry(at=NOON, how="recall", session="s", ids=("a1", "t1"), tokens=90, query="Where is the boat?")


def tell(store: Store, content: str = "The boat is in Bergen.", *, space: str = "me") -> None:
    store.write(space, turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content=content)]), now=NOON)


def test_recalls_come_back_newest_first_each_in_its_space(store: Store) -> None:
    tell(store)
    tell(store, space="other")
    later = replace(ENTRY, at=NOON + timedelta(minutes=1), how="prompt", ids=(), query=None)
    store.write_home(recall_rows.note_recalls, [("me", ENTRY)])
    store.write_home(recall_rows.note_recalls, [("other", replace(ENTRY, how="start"))])
    store.write_home(recall_rows.note_recalls, [("me", later)])
    assert store.read("me", recall_rows.list_recalls) == [later, ENTRY]
    assert store.read("me", recall_rows.list_recalls, limit=1) == [later]
    assert [one.how for one in store.read("other", recall_rows.list_recalls)] == ["start"]


def test_recalls_of_several_spaces_are_no_changes_and_make_no_space(store: Store) -> None:
    tell(store)
    tell(store, space="other")
    before = store.read("me", home_rows.last_change)
    store.write_home(recall_rows.note_recalls, [("me", ENTRY), ("nobody", ENTRY), ("other", ENTRY), ("me", ENTRY)])
    assert store.read("me", home_rows.changes, before) == []
    assert [len(store.read(space, recall_rows.list_recalls)) for space in ("me", "other")] == [2, 1]
    assert (store.read_home(home_rows.spaces), store.read("nobody", recall_rows.list_recalls)) == (["me", "other"], [])


@pytest.mark.slow
def test_the_log_keeps_the_last_recalls_of_a_space(store: Store) -> None:
    tell(store)
    for number in range(KEPT + 5):
        store.write_home(recall_rows.note_recalls, [("me", replace(ENTRY, tokens=number))])
    assert [one.tokens for one in store.read("me", recall_rows.list_recalls, limit=10_000)] == [*range(KEPT + 4, 4, -1)]


def test_a_purge_erases_what_was_asked_for(store: Store) -> None:
    for space in ("me", "other"):
        tell(store, space=space)
        store.write_home(recall_rows.note_recalls, [(space, ENTRY)])
    tombstone = store.write("me", tombstone_rows.forget, ["t1"], reason="wrong", now=NOON)
    store.purge("me", Purge(tombstones=[tombstone.id], personas={}), now=NOON)
    assert store.read("me", recall_rows.list_recalls) == [replace(ENTRY, query=None)]
    assert store.read("other", recall_rows.list_recalls) == [ENTRY]


def test_a_home_of_the_first_schema_gets_the_log(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:1])
    old = open_store(home)
    tell(old)
    told = old.read("me", turn_rows.by_ids, ["t1"])
    old.close()
    monkeypatch.undo()
    opened = open_store(home)
    assert (opened.read("me", turn_rows.by_ids, ["t1"]), opened.schema(), opened.problems()) == (
        told,
        SCHEMA[-1][0],
        [],
    )
    opened.write_home(recall_rows.note_recalls, [("me", ENTRY)])
    assert opened.read("me", recall_rows.list_recalls) == [ENTRY]
    opened.close()
