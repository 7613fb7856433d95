"""What a store does for its own keep: a copy at one moment, what is made of rows made again, space given back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite import open_store
from mcp_memory.store.values import Filters, Vectors

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def say(store: Store, text: str) -> None:
    store.append_turns("me", "s", [NewTurn(role="user", content=text)], now=NOW)


def test_a_snapshot_holds_what_was_stored_before_it_and_nothing_after(store: Store, tmp_path: Path) -> None:
    say(store, "before")
    (tmp_path / "copy").mkdir()
    store.snapshot(tmp_path / "copy/memory.db")
    say(store, "after")
    copy = open_store(tmp_path / "copy")
    assert [turn.content for turn in copy.session_turns("me", "s")] == ["before"]
    copy.close()


def test_mending_writes_missing_files_again_and_hands_over_what_it_replaces(store: Store) -> None:
    for number in range(3):
        say(store, f"turn {number}")
    path = store.folder("me") / "conversations/2026-03-01.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    torn: list[tuple[Path, bytes]] = []

    def keep(path: Path) -> None:
        torn.append((path, path.read_bytes()))

    assert len(store.repair(keep)) == 1
    assert torn == [(path, whole[:20])]
    assert (path.read_bytes(), store.problems()) == (whole, [])
    path.unlink()
    assert len(store.repair(keep)) == 1
    assert path.read_bytes() == whole
    assert (store.repair(keep), len(torn)) == ([], 1)


def test_compacting_changes_no_answer(store: Store) -> None:
    for number in range(30):
        say(store, f"the ferry sails at {number}")
    store.put_vectors([("me", "t1")], Vectors(identity="old", data=np.ones((1, 8), np.float32)))
    store.drop_vector_index("old")

    def answers() -> list[object]:
        found = store.postings("me", "turn", ["ferry", "7"], filters=Filters())
        return [sorted(map(repr, found)), store.session_turns("me", "s")]

    before = answers()
    for vacuum in (False, True):
        store.compact(vacuum=vacuum)
        assert answers() == before
    free, size = store.free_bytes()
    assert (free, size > 0, store.problems()) == (0, True, [])
