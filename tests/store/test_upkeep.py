"""What a store does for its own keep: a copy at one moment, what is made of rows made again, space given back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sql import atom_rows, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters, NewAtom, Vectors

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def say(store: Store, text: str) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content=text)]), now=NOW)


def test_a_snapshot_holds_what_was_stored_before_it_and_nothing_after(embedded: EmbeddedStore, tmp_path: Path) -> None:
    say(embedded, "before")
    (tmp_path / "copy").mkdir()
    embedded.snapshot(tmp_path / "copy/memory.db")
    say(embedded, "after")
    copy = open_store(tmp_path / "copy")
    assert [turn.content for turn in copy.read("me", turn_rows.session_turns, "s")] == ["before"]
    copy.close()


def test_mending_writes_missing_files_again_and_hands_over_what_it_replaces(embedded: EmbeddedStore) -> None:
    for number in range(3):
        say(embedded, f"turn {number}")
    path = embedded.folder("me") / "conversations/2026-03-01.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    torn: list[tuple[Path, bytes]] = []

    def keep(path: Path) -> None:
        torn.append((path, path.read_bytes()))

    assert len(embedded.repair(keep)) == 1
    assert torn == [(path, whole[:20])]
    assert (path.read_bytes(), embedded.problems()) == (whole, [])
    path.unlink()
    assert len(embedded.repair(keep)) == 1
    assert path.read_bytes() == whole
    assert (embedded.repair(keep), len(torn)) == ([], 1)


def test_compacting_changes_no_answer(embedded: EmbeddedStore) -> None:
    for number in range(30):
        say(embedded, f"the ferry sails at {number}")
    embedded.put_vectors([("me", "t1")], Vectors(identity="old", data=np.ones((1, 8), np.float32)))
    embedded.drop_vector_index("old")

    def answers() -> list[object]:
        found = embedded.postings("me", "turn", ["ferry", "7"], filters=Filters())
        return [sorted(map(repr, found)), embedded.read("me", turn_rows.session_turns, "s")]

    before = answers()
    for vacuum in (False, True):
        embedded.compact(vacuum=vacuum)
        assert answers() == before
    free, size = embedded.free_bytes()
    assert (free, size > 0, embedded.problems()) == (0, True, [])


def test_a_correction_and_its_undoing_that_the_database_lost_come_back_with_their_files(home: Path) -> None:
    def told(text: str, **more: Any) -> str:
        new = NewAtom(kind="persona", text=text, priority=80, confidence=1.0, session="s", valid_from=NOW, **more)
        return store.write("me", atom_rows.add, new, now=NOW).atom.id

    store = open_store(home)
    wrong = told("Lives in Bergen", entity="user", relation="lives_in", value="Bergen", single_valued=True)
    store.snapshot(home / "before.db")
    fixed = told("Lives in Oslo", entity="user", relation="lives_in", value="Oslo", supersedes=(wrong,))
    store.write("me", tombstone_rows.forget, [fixed], reason="", how="correction", now=NOW)
    store.close()
    for path in home.glob("memory.db*"):
        path.unlink()
    (home / "before.db").rename(home / "memory.db")
    rebuild(home, now=NOW)
    store = open_store(home)
    assert [(atom.id, atom.valid_to) for atom in store.read("me", atom_rows.by_ids, [wrong, fixed])] == [(wrong, None)]
    assert [(one.value, one.valid_to) for one in store.read("me", atom_rows.facts, filters=Filters(ended=True))] == [
        ("Bergen", None)
    ]
    assert [(one.ids, one.how) for one in store.read("me", tombstone_rows.tombstones)] == [([fixed], "correction")]
    store.close()
