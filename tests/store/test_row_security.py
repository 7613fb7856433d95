"""Raw SQL of a server's user reaches the rows of a space only with a proof for it, in every table and by every function."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from mcp_memory.core.errors import NewerHome, Refused, StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres import migrations, term_segments
from mcp_memory.store.postgres.access import (
    NOT_ENTERED,
    WRONG_PROOF,
    Access,
    enter,
    give_access,
    key_of,
)
from mcp_memory.store.postgres.database import give_key, migrate
from mcp_memory.store.postgres.migrations import STEPS
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.sql import atom_rows, home_rows, queues, ref_rows, turn_rows
from mcp_memory.store.values import NewAtom, NewRef, Token, Vectors
from mcp_memory.testing import HashEmbedder
from tests.postgres.notes import as_owner
from tests.postgres.notes import sql as as_administrator
from tests.postgres_server import KEY, as_server

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OPEN = {
    "commit_mark": "random numbers of transactions, needed before and after a space is entered",
    "migration": "versions of the schema, which servers may only read",
}
"""The tables without row security."""


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """A memory with rows of anna and ben in most tables, opened as the user `server`."""
    monkeypatch.setattr(term_segments, "SIZES", (2,))
    opened = open_store(as_server(url), key=KEY)
    embedder = HashEmbedder()
    for space in ("anna", "ben"):
        turns = turn_rows.prepare([NewTurn(role="user", content=f"{space} keeps bees")])
        opened.write(space, turn_rows.append, "s", turns, now=NOON)
        result = NewRef(
            data=space.encode(),
            tool="Bash",
            arguments={},
            tool_call_id=None,
            session="s",
            timestamp=NOON,
            content_type="text/plain",
        )
        opened.write(space, ref_rows.put, result)
        atom = NewAtom(kind="persona", text="keeps bees", priority=50, confidence=1, session="s", valid_from=NOON)
        opened.write(space, atom_rows.add, atom, now=NOON)
        opened.put_vectors([(space, "t1")], Vectors(identity=embedder.identity, data=embedder.embed(["bees"])))
        token = Token(id=space, name=space, hash=b"x", spaces=(space,), right="read", at=NOON)
        opened.write_home(home_rows.add_token, token)
    opened.write_home(home_rows.pause, "none of your business", now=NOON)
    opened.write_home(queues.open_queue, "distil")
    while opened.maintain_indexes(limit=9):
        pass
    yield opened
    opened.close()


@contextmanager
def raw(url: str, user: str = "server") -> Generator[Connection]:
    """A transaction of a user, which is rolled back."""
    with psycopg.connect(url.replace("//memory@", f"//{user}@")) as con:
        give_access(con, Access(key=key_of(KEY), version=STEPS[-1].number))
        yield con
        con.rollback()


def tables(con: Connection) -> list[str]:
    """Return all tables that are not of an extension."""
    return [
        name
        for (name,) in con.execute(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE relkind IN ('r', 'p', 'v', 'm') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
            " AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') ORDER BY 1"
        )
    ]


def rows(con: Connection, statement: str, *values: object) -> list[Any]:
    """Return the rows of a statement; none if it is refused. A row that another one needs is reached as well."""
    try:
        with con.transaction():
            if statement.startswith("COPY"):
                with con.cursor().copy(statement.encode()) as copy:
                    return [bytes(row) for row in copy]
            cursor = con.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else [None] * cursor.rowcount
    except errors.ForeignKeyViolation:
        return [None]
    except psycopg.Error as error:
        if error.sqlstate in (NOT_ENTERED, WRONG_PROOF) or isinstance(error, errors.InsufficientPrivilege):
            return []
        raise


def reached(con: Connection) -> dict[str, int]:
    """Return the tables of which a transaction sees, changes or deletes rows, with their number."""
    counts: dict[str, int] = {}
    for table in tables(con):
        column = con.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attgenerated = '' AND attidentity = '' ORDER BY attnum DESC LIMIT 1",
            (table,),
        ).fetchall()[0][0]
        for statement in (
            f"SELECT * FROM {table}",
            f'UPDATE {table} SET "{column}" = "{column}"',
            f"DELETE FROM {table}" if table != "commit_mark" else "SELECT WHERE false",
            f"COPY {table} TO STDOUT",
        ):
            with con.transaction(force_rollback=True):
                found = rows(con, statement)
            if found:
                counts[table] = max(counts.get(table, 0), len(found))
    return counts


def entered(con: Connection, space: str | None = "anna") -> str:
    """Enter a space with the right proof; return the setting."""
    next(enter(con, space, "write"))
    return con.execute("SELECT current_setting('mcp_memory.space')").fetchall()[0][0]


def numbers(url: str) -> dict[str, int]:
    return {name: number for number, name in as_administrator(url, "SELECT id, name FROM space")}


# --- tables -----------------------------------------------------------------------------------------


def test_every_table_has_row_security_but_those_that_are_named_here(store: PostgresStore, url: str) -> None:
    with raw(url, "postgres") as con:
        unguarded = {
            table
            for table in tables(con)
            if not con.execute("SELECT relrowsecurity FROM pg_class WHERE oid = %s::regclass", (table,)).fetchall()[0][
                0
            ]
        }
        policies = con.execute(
            "SELECT tablename, coalesce(qual, '') || coalesce(with_check, '') FROM pg_policies WHERE tablename <> 'server_key'"
        ).fetchall()
        own = con.execute(
            "SELECT relname FROM pg_class JOIN pg_attribute a ON attrelid = pg_class.oid AND attname = 'space'"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND NOT relforcerowsecurity"
        ).fetchall()
    assert unguarded == {*OPEN}
    assert [table for table, condition in policies if "current_space()" not in condition] == []
    assert own == []


def test_a_proof_for_a_space_reaches_the_rows_of_this_space_alone(store: PostgresStore, url: str) -> None:
    with raw(url) as con:
        entered(con)
        of_spaces = {
            number
            for table in tables(con)
            if rows(con, "SELECT FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'space'", table)
            for (number,) in rows(con, f"SELECT DISTINCT space FROM {table}")
        }
        assert of_spaces == {numbers(url)["anna"]}
        assert rows(con, "SELECT name FROM space") == [("anna",)]
        others = {"token", "pause", "spend", "request_rate", "object_folder", "server_key", "signing_key"}
        assert others & reached(con).keys() == set()
        assert rows(con, "UPDATE home SET uuid = uuid") == []
        assert rows(con, "DELETE FROM queue") == rows(con, "DELETE FROM vector_index") == []
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            con.execute("INSERT INTO session (space, id, name) VALUES (%s, 99, 'x')", (numbers(url)["ben"],))


def test_a_proof_for_all_spaces_reaches_all_rows_but_the_keys(store: PostgresStore, url: str) -> None:
    with raw(url) as con:
        entered(con, None)
        assert rows(con, "SELECT name FROM space ORDER BY id") == [("anna",), ("ben",)]
        assert {"turn", "object", "token", "pause", "turn_terms", "term_segment", "turn_vec_1", "home"} < reached(
            con
        ).keys()
        assert {"server_key", "signing_key"} & reached(con).keys() == set()


@pytest.mark.parametrize(
    "setting",
    [None, "", "every", "0", "1", "2", "-1", "1.", "-1.", f"2.{'a' * 64}", f"-1.{'0' * 64}", "1 OR true", "."],
)
def test_without_a_proof_raw_sql_reaches_nothing(store: PostgresStore, url: str, setting: str | None) -> None:
    with raw(url) as con:
        if setting is not None:
            con.execute("SELECT set_config('mcp_memory.space', %s, false)", (setting,))
        assert reached(con).keys() <= {*OPEN}
        for table in ("session", "token", "space", "turn_terms", "term_segment", "signing_key", "server_key"):
            assert rows(con, f"INSERT INTO {table} SELECT * FROM {table}") == []


def test_a_signature_is_of_no_use_for_another_space_or_transaction_or_connection(
    store: PostgresStore, url: str
) -> None:
    with raw(url) as con, raw(url) as other:
        own, every = entered(con), entered(con, None)
        signature = own.partition(".")[2]
        forged = [f"{number}.{signature}" for number in ("2", "-1", "01", "1 ", "+1")]
        con.execute("SET LOCAL mcp_memory.space = ''")
        for value in [*forged, own.upper(), own[:-1], own + " "]:
            con.execute("SELECT set_config('mcp_memory.space', %s, true)", (value,))
            assert reached(con).keys() <= {*OPEN}, value
        con.execute("SELECT set_config('mcp_memory.space', %s, true)", (own,))
        assert rows(con, "SELECT name FROM space") == [("anna",)]  # here it is valid
        for value in (own, every):
            other.execute("SELECT set_config('mcp_memory.space', %s, true)", (value,))
            assert reached(other).keys() <= {*OPEN}
        con.rollback()
        for value in (own, every):
            con.execute("SELECT set_config('mcp_memory.space', %s, true)", (value,))
            assert reached(con).keys() <= {*OPEN}
        con.rollback()
        assert con.info.transaction_status == TransactionStatus.IDLE
        con.execute("SELECT set_config('mcp_memory.space', %s, false)", (every,))  # of the session
        con.commit()
        assert reached(con).keys() <= {*OPEN}


@pytest.mark.parametrize(
    "proof",
    [
        lambda: None,
        lambda: b"",
        lambda: bytes(32),
        lambda: KEY.encode(),
        lambda: Access(key=key_of(KEY), version=1).proof("anna"),
        lambda: Access(key=key_of(KEY), version=1).proof(None),
        lambda: Access(key=key_of("another key of more than 32 characters"), version=1).proof("ben"),
        lambda: Access(key=b"", version=1).proof("ben"),
        lambda: hmac.digest(key_of(KEY), b"ben", "sha256"),
    ],
)
@pytest.mark.parametrize("purpose", ["read", "write", "create", "", None])
def test_a_wrong_proof_enters_no_space(
    store: PostgresStore, url: str, proof: Callable[[], bytes | None], purpose: str | None
) -> None:
    with raw(url) as con:
        assert rows(con, "SELECT enter_space('ben', %s::bytea, 99, %s)", proof(), purpose) == []
        assert rows(con, "SELECT enter_space(NULL, %s::bytea, 99, 'write')", None) == []
        assert reached(con).keys() <= {*OPEN}


def test_a_key_belongs_to_its_user(store: PostgresStore, url: str) -> None:
    as_administrator(url, "CREATE ROLE stranger LOGIN")
    try:
        migrate(as_owner(url), role="stranger")
        give_key(as_owner(url), "stranger", "the key of the stranger is a different one")
        with raw(url, "stranger") as con:
            assert rows(con, "SELECT enter_space('ben', %s, 99, 'read')", _proof("ben")) == []
            own = Access(key=key_of("the key of the stranger is a different one"), version=1).proof("ben")
            assert rows(con, "SELECT enter_space('ben', %s, 99, 'read')", own) == [(numbers(url)["ben"],)]
    finally:
        as_administrator(url, "DROP OWNED BY stranger")
        as_administrator(url, "DROP ROLE stranger")


def _proof(space: str | None) -> bytes | None:
    return Access(key=key_of(KEY), version=1).proof(space)


# --- functions --------------------------------------------------------------------------------------

VALUES: dict[str, list[object]] = {
    "bigint": [1, 2, -1, None],
    "integer": [256, -1, None],
    "text": ["ben", "turn_vec_1", "token", "server_key", "2", None],
    "bytea": [b"", None],
}


def test_no_function_of_ours_reaches_another_space_or_changes_a_table(store: PostgresStore, url: str) -> None:
    ours = as_administrator(
        url,
        "SELECT p.oid::regproc::text, proargtypes::regtype[]::text[] FROM pg_proc p WHERE prorettype <> 'trigger'::regtype"
        " AND pronamespace = 'public'::regnamespace AND prokind = 'f'"
        " AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')",
    )
    assert {"enter_space", "current_space", "drop_vector_tables"} <= {name for name, _ in ours}
    before = (
        as_administrator(url, "SELECT count(*) FROM pg_class"),
        as_administrator(url, "SELECT count(*) FROM pg_policy"),
    )
    for space in (None, "anna"):
        with raw(url) as con:
            if space:
                entered(con, space)
            visible = reached(con)
            for name, types in ours:
                longest = max((len(VALUES[kind]) for kind in types), default=1)
                for place in range(longest):
                    given = [VALUES[kind][min(place, len(VALUES[kind]) - 1)] for kind in types]
                    marks = ", ".join(f"%s::{kind}" for kind in types)
                    try:
                        with con.transaction():
                            con.execute(f"SELECT {name}({marks})".encode(), given)
                    except psycopg.Error:
                        pass
                    assert reached(con) == visible, (name, given)
            con.commit()
    assert before == (
        as_administrator(url, "SELECT count(*) FROM pg_class"),
        as_administrator(url, "SELECT count(*) FROM pg_policy"),
    )


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE turn DISABLE ROW LEVEL SECURITY",
        "DROP POLICY of_space ON turn",
        "DROP TRIGGER turn_is_evidence ON turn",
        "DROP TABLE turn",
        "TRUNCATE turn",
        "CREATE TABLE mine (id INT)",
        "CREATE TEMPORARY TABLE space (id INT)",
        "CREATE FUNCTION public.sha256(bytea) RETURNS bytea LANGUAGE sql RETURN $1",
        "CREATE OR REPLACE FUNCTION current_space() RETURNS bigint LANGUAGE sql RETURN -1",
        "SET ROLE owner",
        "SET ROLE memory",
        "SET SESSION AUTHORIZATION owner",
        "SET row_security = off; SELECT * FROM turn",
        "UPDATE migration SET min_reader = 99",
        "SELECT pg_read_file('PG_VERSION')",
    ],
)
def test_a_server_can_change_neither_tables_nor_who_sees_them(store: PostgresStore, url: str, statement: str) -> None:
    with raw(url) as con, pytest.raises(errors.InsufficientPrivilege):
        con.execute(statement.encode())


def test_tables_and_functions_of_the_same_name_deceive_no_function_of_ours(store: PostgresStore, url: str) -> None:
    database = url.rpartition("/")[2]
    as_administrator(url, f"GRANT TEMPORARY ON DATABASE {database} TO server")  # which a server does not have
    with raw(url) as con:
        con.execute(
            "CREATE TEMP TABLE server_key AS SELECT 'server' AS role, ''::bytea AS inner_pad, ''::bytea AS outer_pad"
        )
        con.execute("CREATE TEMP TABLE signing_key AS SELECT 1 AS id, ''::bytea AS secret")
        con.execute("CREATE TEMP TABLE migration (name TEXT, min_reader INT, min_writer INT)")
        con.execute("CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql RETURN ''::bytea")
        con.execute("CREATE FUNCTION pg_temp.current_space() RETURNS bigint LANGUAGE sql RETURN -1")
        for path in ("pg_temp, public", "pg_temp, public, pg_catalog"):
            con.execute(f"SET LOCAL search_path = {path}".encode())
            forged = con.execute(
                "SELECT '-1.' || encode(pg_catalog.sha256(int4send(pg_backend_pid()) || timestamptz_send(now())"
                " || convert_to('-1', 'UTF8')), 'hex')"
            ).fetchall()[0][0]
            assert rows(con, "SELECT enter_space('ben', ''::bytea, 99, 'read')") == []
            con.execute("SELECT set_config('mcp_memory.space', %s, true)", (forged,))
            for table in ("turn", "token", "space", "turn_terms", "public.server_key"):
                assert rows(con, f"SELECT * FROM {table}") == []


# --- catalogs ---------------------------------------------------------------------------------------


def test_no_catalog_setting_or_message_shows_a_secret_or_a_row(store: PostgresStore, url: str) -> None:
    as_administrator(url, "ANALYZE")
    ((secret,),) = as_administrator(url, "SELECT secret FROM signing_key")
    pads = as_administrator(url, "SELECT inner_pad, outer_pad FROM server_key WHERE role = 'server'")[0]
    said: list[str] = []
    with raw(url) as con:
        con.add_notice_handler(lambda notice: said.append(str(notice.message_primary) + str(notice.message_detail)))
        con.execute("SET client_min_messages = 'debug5'")
        for name in ("debug_print_parse", "debug_print_rewritten", "debug_print_plan", "plpgsql.print_strict_params"):
            con.execute(f"SET {name} = on".encode())
        entered(con)
        con.execute("SELECT count(*) FROM turn")
        con.execute("RESET ALL")
        shown = [
            str(row)
            for question in (
                "SELECT prosrc, proconfig, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
                " AND prokind = 'f'",
                "SELECT * FROM pg_settings",
                "SELECT * FROM pg_db_role_setting",
                "SELECT * FROM pg_stat_activity",
                "SELECT * FROM pg_prepared_statements",
                "SELECT * FROM pg_stats WHERE schemaname = 'public'",
                "SELECT * FROM pg_policies",
            )
            for row in con.execute(question.encode()).fetchall()
        ]
        assert (
            rows(con, "SELECT tablename FROM pg_stats WHERE tablename = ANY (ARRAY['turn', 'space', 'turn_terms'])")
            == []
        )
    for text in [*said, *shown]:
        assert "keeps bees" not in text
        assert KEY not in text
        numbers_in = " ".join(str(byte) for byte in secret)  # how a plan prints bytes
        assert secret.hex() not in text
        assert numbers_in not in text
        assert all(pad.hex() not in text for pad in pads)


def test_locks_reveal_no_row(store: PostgresStore, url: str) -> None:
    with raw(url) as con:
        con.execute("LOCK TABLE turn IN EXCLUSIVE MODE")
        con.execute("SELECT pg_advisory_xact_lock(1)")
        assert reached(con).keys() <= {*OPEN}


# --- keys and versions ------------------------------------------------------------------------------


def test_a_server_without_the_key_of_its_user_does_not_start(url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"wrong key of the user server.*Set MCP_MEMORY_STORE_KEY") as raised:
        open_store(as_server(url), key="a key of another memory, long enough")
    assert "long enough" not in str(raised.value)
    for missing in (None, ""):
        with pytest.raises(StoreUnavailable, match=r"MCP_MEMORY_STORE_KEY is not set, .*migrate --grant USER"):
            open_store(as_server(url), key=missing)


def test_the_owner_needs_no_setting(url: str) -> None:
    with closing(open_store(as_owner(url))) as store:
        assert store.read_home(home_rows.spaces) == []
        assert any("owns the tables" in problem for problem in store.problems())
    with closing(open_store(as_server(url), key=KEY)) as store:
        assert store.problems() == []


def test_a_key_is_changed_while_servers_run(url: str) -> None:
    new, newest = "the second key, of 32 characters.", "the third key, of 32 characters .."
    with closing(open_store(as_server(url), key=KEY)) as older:
        assert give_key(as_owner(url), "server", new) is None
        assert give_key(as_owner(url), "server", new) is None  # once more does nothing
        with closing(open_store(as_server(url), key=new)):
            assert older.read_home(home_rows.spaces) == []
        give_key(as_owner(url), "server", newest)
        with closing(open_store(as_server(url), key=new)), pytest.raises(StoreUnavailable, match="wrong key"):
            older.read_home(home_rows.spaces)


def test_a_server_that_became_too_old_stops_in_its_next_transaction(store: PostgresStore, url: str) -> None:
    turns = turn_rows.prepare([NewTurn(role="user", content="after the upgrade")])
    as_administrator(url, "INSERT INTO migration VALUES ('0098-later', 1, 98)")
    with pytest.raises(StoreUnavailable, match=r"only be read: schema 0098-later .*Nothing was written. Upgrade this"):
        store.write("anna", turn_rows.append, "s", turns, now=NOON)
    with pytest.raises(StoreUnavailable, match="0098-later"):
        store.write_home(home_rows.resume)
    assert [session.turns for session in store.read("anna", turn_rows.sessions)] == [1]
    assert store.not_ready() == store.read_only == "schema 0098-later can be written by newer versions only"
    as_administrator(url, "INSERT INTO migration VALUES ('0099-latest', 99, 99)")
    with pytest.raises(NewerHome, match=r"newer mcp-memory \(schema 0099-latest\)"):
        store.read("anna", turn_rows.sessions)


@pytest.fixture
def older(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database of the schema before proofs, with a row of anna."""
    url: str = postgres.create_database(owner="owner")
    as_administrator(url, "CREATE EXTENSION vector")
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", STEPS[:4])
        with psycopg.connect(as_owner(url), autocommit=True) as con:
            migrations.expand_schema(con)
            migrations.grant(con, "server")
    with raw(url) as con:
        con.execute("INSERT INTO space (name) VALUES ('anna')")
        con.commit()
    yield url
    postgres.drop_database(url)


def written_by_older(url: str) -> None:
    """Write a row of anna as servers of the schema before proofs do."""
    with psycopg.connect(as_server(url)) as con:
        found = con.execute("SELECT id, set_config('mcp_memory.space', id::text, true) FROM space WHERE name = 'anna'")
        con.execute("INSERT INTO queue VALUES ('older')")
        con.execute(
            "INSERT INTO stage_cursor (space, stage, position, at) VALUES (%s, 'older', 1, 1)", found.fetchall()[0][:1]
        )


def test_older_servers_go_on_until_the_upgrade_is_finished(older: str) -> None:
    assert ("0005-proofs", "expand") in migrate(as_owner(older))
    written_by_older(older)
    with closing(open_store(as_server(older))) as newer:  # has no key yet
        turns = turn_rows.prepare([NewTurn(role="user", content="of the newer")])
        newer.write("anna", turn_rows.append, "s", turns, now=NOON)
        with pytest.raises(Refused, match="The user server, whose servers are connected, has no key yet"):
            migrate(as_owner(older), contract=True)
    key = give_key(as_owner(older), "server")
    assert key is not None
    with closing(open_store(as_server(older), key=key)) as newer:
        assert ("0005-proofs", "contract") in migrate(as_owner(older), contract=True)
        assert [session.turns for session in newer.read("anna", turn_rows.sessions)] == [1]
    with pytest.raises((errors.InsufficientPrivilege, IndexError)):
        written_by_older(older)
    with raw(older) as con:
        assert reached(con).keys() <= {*OPEN}
    with pytest.raises(StoreUnavailable, match="MCP_MEMORY_STORE_KEY is not set"):
        open_store(as_server(older))
