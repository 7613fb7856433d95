"""What PostgreSQL itself keeps apart: the role of a server sees the rows of the space that its transaction is on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.sql import atom_rows, ref_rows, schema, turn_rows
from mcp_memory.store.values import NewAtom, NewRef, Vectors
from mcp_memory.testing import HashEmbedder

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    opened = open_store(url)
    for space in ("anna", "ben"):
        opened.write(
            space,
            turn_rows.append,
            "s",
            turn_rows.prepare([NewTurn(role="user", content=f"{space} keeps bees")]),
            now=NOON,
        )
        opened.write(
            space,
            ref_rows.put,
            NewRef(
                data=space.encode(),
                tool="Bash",
                arguments={},
                tool_call_id=None,
                session="s",
                timestamp=NOON,
                content_type="text/plain",
            ),
        )
        opened.write(
            space,
            atom_rows.add,
            NewAtom(kind="persona", text="keeps bees", priority=50, confidence=1, session="s", valid_from=NOON),
            now=NOON,
        )
    yield opened
    opened.close()


def seen(url: str, space: str | None) -> set[object]:
    """Return the numbers of the spaces whose rows a transaction on one space sees, in all tables."""
    with psycopg.connect(url) as con:
        if space is not None:
            con.execute("SELECT set_config('mcp_memory.space', id::text, true) FROM space WHERE name = %s", (space,))
        return {
            number
            for table in (*schema.tables_of_spaces(), "object")
            for (number,) in con.execute(f"SELECT DISTINCT space FROM {table}".encode())
        }


def test_raw_sql_on_one_space_sees_no_row_of_another(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as con:
        numbers = {name: number for number, name in con.execute("SELECT id, name FROM space")}
    assert {space: seen(url, space) for space in ("anna", "ben")} == {
        space: {numbers[space]} for space in ("anna", "ben")
    }


def test_raw_sql_on_no_space_sees_and_changes_nothing(store: PostgresStore, url: str) -> None:
    assert seen(url, None) == set()
    with psycopg.connect(url) as con:
        assert con.execute("UPDATE session SET name = 'x'").rowcount == 0
        assert con.execute("DELETE FROM evidence").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            con.execute("INSERT INTO session (space, id, name) VALUES (1, 99, 'x')")


def test_every_table_of_a_space_is_guarded_those_of_vectors_too(store: PostgresStore, url: str) -> None:
    embedder = HashEmbedder()
    store.put_vectors([("anna", "t1")], Vectors(identity=embedder.identity, data=embedder.embed(["bees"])))
    with psycopg.connect(url) as con:
        unguarded = con.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space'"
            " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND NOT c.relforcerowsecurity"
        ).fetchall()
    assert sorted(name for (name,) in unguarded) == ["atom_terms", "chunk_terms", "turn_terms"]  # keys, and no words


def test_a_server_can_change_neither_tables_nor_who_sees_them(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as con:
        for statement in (
            "ALTER TABLE turn DISABLE ROW LEVEL SECURITY",
            "DROP POLICY of_space ON turn",
            "DROP TRIGGER turn_is_evidence ON turn",
            "DROP TABLE turn",
            "TRUNCATE turn",
            "CREATE TABLE mine (id INT)",
            "SET ROLE owner",
            "UPDATE migration SET min_reader = 99",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                con.execute(statement)


def test_words_are_found_by_the_index_of_their_keys(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as con:
        con.execute("SET LOCAL enable_seqscan = off")
        plan = con.execute("EXPLAIN SELECT id, space FROM turn_terms WHERE keys @> ARRAY[7::bigint]").fetchall()
    assert any("Bitmap Index Scan on turn_terms_keys" in line for (line,) in plan), plan
