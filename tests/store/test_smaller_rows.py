"""Homes of earlier versions, whose rows repeat quotes and folded texts, and whose word indexes have positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.postgres.database import migrate
from mcp_memory.store.postgres.migrations import STEPS
from mcp_memory.store.postgres.store import open_store as open_postgres
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index import positions
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from mcp_memory.store.values import Filters, NewAtom
from tests.postgres.notes import as_administrator, sql
from tests.postgres_server import PostgresServer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SAID = [NewTurn(role="user", content=f"Number {i}: I play the cello no. {i}.") for i in range(1, 451)]
OLD_ATOM = {
    **{"space": 1, "kind": "persona", "priority": 50, "confidence": 0.9, "source": "user", "reader": None},
    **{"valid_from": 0, "learned_at": 0},
}


def old_rows(count: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield a statement on each of the first turns and its evidence, as the version before wrote them."""
    for number in range(1, count + 1):
        text = f"I play the cello no. {number}"
        start = len(f"Number {number}: ")
        span = {"span_start": start, "span_end": start + len(text)}
        atom = {**OLD_ATOM, **span, "id": number, "text": text, "folded": text.lower(), "evidence": number}
        yield atom, {"space": 1, "atom": number, "turn": number, **span, "quote": text}


def insert(con: Any, table: str, row: dict[str, Any], mark: str) -> None:
    marks = ", ".join([mark] * len(row))
    con.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


@pytest.fixture
def old_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with monkeypatch.context() as before:
        before.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:12])
        with closing(open_store(home)) as old:
            old.write("me", turn_rows.append, "s", turn_rows.prepare(SAID), now=NOW)
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        for atom, evidence in old_rows(3):
            insert(con, "atom", atom, "?")
            insert(con, "evidence", evidence, "?")
            con.execute("INSERT INTO atom_terms (rowid, terms) VALUES (?, ?)", (1 << 40 | atom["id"], "play cello"))
        con.execute("INSERT INTO number VALUES (1, 'atom', 3); INSERT INTO term_range VALUES (1, 'atom', 99, 1, 3)")
    return home


def cello(number: int) -> NewAtom:
    text = f"I PLAY the cello no. {number}."
    return NewAtom(kind="persona", text=text, priority=50, confidence=1.0, session="s", valid_from=NOW)


def quotes(store: Store, id: str) -> list[str]:
    return [evidence.quote for evidence in store.read("me", atom_rows.evidence, id)]


def found(store: Store, term: str = "cello") -> list[int]:
    return sorted(int(row) for one in store.postings("me", "turn", [term], filters=Filters()) for row in one.rows)


def tables_of_terms(home: Path) -> dict[str, bool]:
    """Map each table of terms to whether it has positions."""
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        rows: Any = con.execute(
            "SELECT name, instr(sql, 'detail=full') > 0 FROM sqlite_schema WHERE name GLOB '*_terms' ORDER BY name"
        ).fetchall()
    return {name: bool(has_positions) for name, has_positions in rows}


WITHOUT_POSITIONS = {"atom_terms": False, "chunk_terms": False, "turn_terms": False}


def test_a_new_home_has_no_positions(embedded: SQLiteStore, home: Path) -> None:
    assert tables_of_terms(home) == WITHOUT_POSITIONS
    assert embedded.maintain_indexes(limit=9) is False


def test_statements_of_an_earlier_version_keep_their_quotes_and_are_recognised(old_home: Path) -> None:
    for _ in range(2):
        with closing(open_store(old_home)) as store:
            assert [quotes(store, f"a{number}") for number in (1, 2, 3)] == [
                [f"I play the cello no. {number}"] for number in (1, 2, 3)
            ]
            assert store.write("me", atom_rows.add, cello(2), now=NOW).atom.id == "a2"
            assert store.problems() == []


def test_a_purged_turn_leaves_no_quote(old_home: Path) -> None:
    with closing(open_store(old_home)) as store:
        forgotten = store.write("me", tombstone_rows.forget, ["t2"], reason="", now=NOW)
        store.purge("me", Purge(tombstones=[forgotten.id]), now=NOW)
        assert store.secure_delete()
        while store.maintain_indexes(limit=100):
            pass
        assert (found(store), store.problems()) == ([1, *range(3, 451)], [])
    assert b"cello no. 2." not in (old_home / "memory.db").read_bytes()


def test_word_indexes_are_replaced_while_they_are_used(old_home: Path) -> None:
    """After each step the process ends; meanwhile turns are stored, forgotten and restored."""
    expected, steps = list(range(1, 451)), 0
    more = True
    while more:
        with closing(open_store(old_home)) as store:
            assert found(store) == expected
            match steps:
                case 1:
                    store.write("me", tombstone_rows.forget, ["t7", "t440"], reason="", now=NOW)
                    expected = [number for number in expected if number not in (7, 440)]
                case 2:
                    store.write("me", tombstone_rows.undo, "x1", now=NOW)
                    expected = list(range(1, 451))
                case 3:
                    store.write(
                        "me",
                        turn_rows.append,
                        "s",
                        turn_rows.prepare([NewTurn(role="user", content="A cello")]),
                        now=NOW,
                    )
                    store.write("me", tombstone_rows.forget, ["t3"], reason="", now=NOW)
                    expected = [*range(1, 3), *range(4, 452)]
                case _:
                    pass
            assert found(store) == expected
            more = store.maintain_indexes(limit=100)
            steps += 1
    with closing(open_store(old_home)) as store:
        assert (found(store), store.problems()) == (expected, [])
    assert (steps > 4, tables_of_terms(old_home)) == (True, WITHOUT_POSITIONS)


def test_two_processes_may_replace_the_same_word_index(old_home: Path) -> None:
    with closing(open_store(old_home)) as store, closing(Database(old_home)) as other:
        batches = list[Any]()
        while (batch := other.read(positions.next_rows)) is not None:
            batches.append(batch)
            store.maintain_indexes(limit=9)
            other.write(positions.add, *batch)
        for batch in batches:
            other.write(positions.add, *batch)
        assert (found(store), store.problems()) == (list(range(1, 451)), [])
    assert tables_of_terms(old_home) == WITHOUT_POSITIONS


def test_words_of_any_characters_are_found_without_positions(embedded: SQLiteStore) -> None:
    """The tokenizer of earlier versions cut words of scripts that are newer than its tables."""
    words = ["naïve", "o'neill", "c++", "PR#56612", "𞤀𞤣𞤤𞤢𞤥", "日本語", "🫠", "a\u00a0b", 'say"so"']
    embedded.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content=word) for word in words]), now=NOW
    )
    for number, word in enumerate(words, start=1):
        terms = turn_rows.IncomingTurn(NewTurn(role="user", content=word)).terms or []
        postings = embedded.postings("me", "turn", terms, filters=Filters())
        assert {posting.term for posting in postings if number in posting.rows.tolist()} == set(terms), word


# --- PostgreSQL -------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_servers_of_the_version_before_read_quotes_until_they_are_refused(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create_database()
    sql(url, "CREATE EXTENSION vector")
    with monkeypatch.context() as before:
        before.setattr("mcp_memory.store.postgres.migrations.STEPS", STEPS[:10])
        with closing(open_postgres(url)) as old:
            old.write("me", turn_rows.append, "s", turn_rows.prepare(SAID[:9]), now=NOW)
    with psycopg.connect(as_administrator(url), autocommit=True) as con:
        for atom, evidence in old_rows(3):
            insert(con, "atom", atom, "%s")
            insert(con, "evidence", evidence, "%s")
        con.execute("INSERT INTO number VALUES (1, 'atom', 3)")
        with closing(open_postgres(url)) as store:
            assert quotes(store, "a2") == ["I play the cello no. 2"]
            assert store.write("me", atom_rows.add, cello(2), now=NOW).atom.id == "a2"
            store.write("me", atom_rows.add, cello(4), now=NOW)
            stored = con.execute("SELECT quote FROM evidence WHERE atom = 4").fetchall()
            assert stored == [("I PLAY the cello no. 4.",)]
            forgotten = store.write("me", tombstone_rows.forget, ["t2", "a3"], reason="", now=NOW)
            store.purge("me", Purge(tombstones=[forgotten.id]), now=NOW)
            assert con.execute("SELECT quote FROM evidence WHERE atom IN (2, 3) AND quote <> ''").fetchall() == []
        assert [step for step in migrate(url, contract=True) if step[0] == STEPS[10].name] == [
            (STEPS[10].name, "backfill"),
            (STEPS[10].name, "contract"),
        ]
        with closing(open_postgres(url)) as store:
            assert quotes(store, "a4") == ["I PLAY the cello no. 4."]
            assert store.write("me", atom_rows.add, cello(1), now=NOW).atom.id == "a1"
    postgres.drop_database(url)
