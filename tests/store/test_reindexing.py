"""Rows with the terms of an earlier version: found meanwhile, and indexed anew whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index import terms as term_ranges
from mcp_memory.store.sqlite.index.rowids import rowid
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters, NewAtom

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SAID = [NewTurn(role="user", content=f"Remark {i}: das Haus {i}") for i in range(20)]


def found(store: Store, term: str) -> set[int]:
    """The turns whose index entry holds a term."""
    return {int(row) for one in store.postings("me", "turn", [term], filters=Filters()) for row in one.rows}


def write_as_version_1(home: Path, content: str, terms: str) -> None:
    """Store a turn as the first release did: its terms, and no range."""
    con = apsw.Connection(str(home / "memory.db"))
    number = con.execute("UPDATE number SET last = last + 1 WHERE kind = 'turn' RETURNING last").get
    con.execute(
        "INSERT INTO turn (space, id, session, position, role, content, said_at, dated, learned_at, sha256)"
        " VALUES (1, ?, 1, (SELECT max(position) + 1 FROM turn), 'user', ?, 0, 0, 0, x'00')",
        (number, content),
    )
    con.execute("INSERT INTO turn_terms (rowid, terms) VALUES (?, ?)", (rowid(1, number), terms))
    con.close()


def aged(home: Path, turns: list[NewTurn]) -> None:
    """Make a store of turns whose only term is `old`, as some earlier version might have indexed them."""
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW)
    store.close()
    database = Database(home)

    def age(con: apsw.Connection) -> None:
        con.execute("DELETE FROM term_range")
        con.execute("DELETE FROM turn_terms")
        con.execute("INSERT INTO turn_terms (rowid, terms) SELECT space << 40 | id, 'old' FROM turn")

    database.write(age)
    database.close()


@pytest.fixture
def old(home: Path) -> Iterator[Store]:
    aged(home, SAID)
    store = open_store(home)
    yield store
    store.close()


def renew(store: Store) -> None:
    while store.maintain_indexes(limit=7):
        pass


def test_what_is_stored_now_never_waits(store: Store) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare(SAID), now=NOW)
    told = NewAtom(kind="persona", text="Likes tea", priority=50, confidence=1.0, session="s", valid_from=NOW)
    store.write("me", atom_rows.add, told, now=NOW)
    store.write("you", turn_rows.append, "s", turn_rows.prepare(SAID[:3]), now=NOW)
    assert store.index_progress().stale_terms == 0
    assert store.maintain_indexes(limit=10) is False


def test_rows_are_found_by_their_old_terms_until_they_are_indexed_anew(old: Store) -> None:
    everything = set(range(1, 21))
    assert (old.index_progress().stale_terms, found(old, "old"), found(old, "haus")) == (20, everything, set())
    assert old.maintain_indexes(limit=7)
    newest = set(range(14, 21))
    assert (old.index_progress().stale_terms, found(old, "old"), found(old, "haus")) == (
        13,
        everything - newest,
        newest,
    )
    renew(old)
    assert (old.index_progress().stale_terms, found(old, "old"), found(old, "haus")) == (0, set(), everything)


def test_rows_of_an_older_program_that_is_still_running_are_renewed_too(home: Path) -> None:
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare(SAID), now=NOW)
    write_as_version_1(home, "Die Krankenversicherung", "die krankenversicherung")
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="And on")]), now=NOW)
    assert store.index_progress().stale_terms == 1
    renew(store)
    assert (store.index_progress().stale_terms, found(store, "krankenversicher")) == (
        0,
        found(store, "krankenversicherung"),
    )
    store.close()


def test_a_batch_that_fails_leaves_every_row_as_it_was(old: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(term_ranges, "cover", full)
    with pytest.raises(KeyboardInterrupt):
        old.maintain_indexes(limit=7)
    assert (old.index_progress().stale_terms, found(old, "old")) == (20, set(range(1, 21)))
    monkeypatch.undo()
    renew(old)
    assert (old.index_progress().stale_terms, found(old, "haus")) == (0, set(range(1, 21)))


def test_two_processes_may_renew_the_same_rows(home: Path) -> None:
    aged(home, SAID)
    one, other = Database(home), open_store(home)
    batch = one.read(lambda con: term_ranges.next_batch(con, limit=7))
    assert batch is not None
    other.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Das Haus am See")]), now=NOW
    )
    renew(other)
    one.write(lambda con: term_ranges.commit_batch(con, batch, term_ranges.terms_of_batch(batch)))
    one.close()
    renew(other)
    assert (other.index_progress().stale_terms, found(other, "old"), found(other, "haus")) == (
        0,
        set(),
        set(range(1, 22)),
    )
    other.close()


def test_what_is_forgotten_meanwhile_stays_out_and_what_is_brought_back_comes_in(home: Path) -> None:
    aged(home, SAID)
    one, other = Database(home), open_store(home)
    gone = other.write("me", tombstone_rows.forget, ["t3"], reason="", now=NOW)
    batch = one.read(lambda con: term_ranges.next_batch(con, limit=50))
    assert batch is not None
    other.write("me", tombstone_rows.forget, ["t5"], reason="", now=NOW)
    other.write("me", tombstone_rows.undo, gone.id, now=NOW)
    one.write(lambda con: term_ranges.commit_batch(con, batch, term_ranges.terms_of_batch(batch)))
    one.close()
    renew(other)
    assert (other.index_progress().stale_terms, found(other, "old"), found(other, "haus")) == (
        0,
        set(),
        set(range(1, 21)) - {5},
    )
    other.close()


def test_the_word_index_is_whole_and_has_its_own_settings_again_afterwards(old: Store, home: Path) -> None:
    renew(old)
    database = Database(home)
    settings = database.read(lambda con: dict(con.execute("SELECT k, v FROM turn_terms_config")))
    database.write(lambda con: con.execute("INSERT INTO turn_terms (turn_terms) VALUES ('integrity-check')").fetchall())
    database.close()
    assert (settings["automerge"], settings["crisismerge"]) == (4, 16)
    assert old.problems() == []


def test_a_kill_while_the_index_was_not_merging_is_made_good_by_the_next_to_open(home: Path) -> None:
    aged(home, SAID)
    store = open_store(home)
    while store.index_progress().stale_terms:
        store.maintain_indexes(limit=7)
    store.close()
    later = open_store(home)
    renew(later)
    later.close()
    database = Database(home)
    assert database.read(term_ranges.unsettled_layers) == []
    database.close()


# --- ranges -----------------------------------------------------------------------------------------

ROWS = 30


@given(
    notes=st.sets(st.integers(1, ROWS)),
    covered=st.lists(st.tuples(st.integers(1, ROWS), st.integers(0, 8)), max_size=12),
)
def test_every_row_is_in_a_gap_or_was_covered(notes: set[int], covered: list[tuple[int, int]]) -> None:
    con = apsw.Connection(":memory:")
    con.execute("CREATE TABLE turn (space INTEGER, id INTEGER, role TEXT, tombstone INTEGER, PRIMARY KEY (space, id))")
    con.execute("CREATE TABLE number (space INTEGER, kind TEXT, last INTEGER)")
    con.execute(
        "CREATE TABLE term_range (space INTEGER, layer TEXT, version INTEGER, first INTEGER, last INTEGER,"
        " PRIMARY KEY (space, layer, version, first)) WITHOUT ROWID"
    )
    con.executemany(
        "INSERT INTO turn (space, id, role) VALUES (?, ?, ?)",
        [(s, n, "note" if n in notes else "user") for s in (1, 2) for n in range(1, ROWS + 1)],
    )
    con.executemany("INSERT INTO number VALUES (?, 'turn', ?)", [(1, ROWS), (2, ROWS)])
    done: set[int] = set()
    for first, more in covered:
        last = min(first + more, ROWS)
        term_ranges.cover(con, "turn", 2, first, last)
        done |= set(range(first, last + 1))
    found = list(term_ranges.gaps(con, "turn"))
    assert (1, 1, ROWS) in found
    waiting = {n for space, first, last in found if space == 2 for n in range(first, last + 1)}
    assert waiting - notes == set(range(1, ROWS + 1)) - done - notes
    con.close()
