"""A database that cannot be used, at start: the error says what to do next, and never the password."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from mcp_memory.core.errors import NewerHome, StoreUnavailable
from mcp_memory.store.postgres.failures import name_of
from mcp_memory.store.postgres.store import open_store
from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import note, opened, sql
from tests.postgres.proxy import Proxy
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres

PASSWORD = "Tr0ub4dor"


def refused(url: str) -> str:
    """Return the error of opening a database; the password of all tests is not in it."""
    with pytest.raises(StoreUnavailable) as raised:
        open_store(url)
    assert PASSWORD not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return str(raised.value)


@pytest.fixture
def empty(postgres: PostgresServer) -> Iterator[str]:
    """A database without a table, with the user `guest` who owns it and is no superuser."""
    made = postgres.create_database()
    sql(postgres.url(), f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    sql(postgres.url(), f"ALTER DATABASE {made.rpartition('/')[2]} OWNER TO guest")
    yield made
    postgres.drop_database(made)
    sql(postgres.url(), "DROP ROLE guest")


def as_guest(url: str) -> str:
    return url.replace("memory@", f"guest:{PASSWORD}@")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresq://me:{PASSWORD}@localhost/memory",
        f"postgresql://me:p@{PASSWORD}@localhost/memory",
        f"postgresql://me:{PASSWORD}/x@localhost/memory",
        f"postgresql://me@localhost/memory?pasword={PASSWORD}",
        PASSWORD,
    ],
)
def test_what_is_no_url_is_answered_with_its_form(url: str) -> None:
    assert "Its form is postgresql://USER:PASSWORD@HOST:5432/DATABASE" in refused(url)


def test_a_database_is_named_without_its_user_and_password() -> None:
    assert name_of(f"postgresql://me:{PASSWORD}@one,two:6432/memory") == "postgresql://one:5432,two:6432/memory"
    assert name_of("postgresql:///memory?host=/run/postgresql") == "postgresql:///run/postgresql:5432/memory"


def test_a_server_that_is_not_there() -> None:
    said = refused(f"postgresql://me:{PASSWORD}@127.0.0.1:1/memory")
    assert "refused" in said
    assert "Check that the server runs and that MCP_MEMORY_STORE names it." in said


def test_a_wrong_password(postgres: PostgresServer, empty: str) -> None:
    rules = postgres.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all guest 127.0.0.1/32 scram-sha-256\n{before}")
    sql(postgres.url(), "SELECT pg_reload_conf()")
    try:
        said = refused(as_guest(empty).replace(PASSWORD, PASSWORD[::-1]))
        none = refused(empty.replace("memory@", "guest@"))
    finally:
        rules.write_text(before)
        sql(postgres.url(), "SELECT pg_reload_conf()")
    assert "Check the user and the password in MCP_MEMORY_STORE." in said
    assert PASSWORD[::-1] not in said
    assert "Check the user and the password in MCP_MEMORY_STORE." in none


def test_a_database_that_does_not_exist(postgres: PostgresServer) -> None:
    said = refused(postgres.url("nowhere"))
    assert 'database "nowhere" does not exist' in said
    assert "Create it with `createdb -E UTF8" in said


def test_a_user_who_does_not_exist(empty: str) -> None:
    assert "Create the user" in refused(empty.replace("memory@", f"nobody:{PASSWORD}@"))


def test_a_server_with_too_many_connections(empty: str) -> None:
    sql(empty, "ALTER ROLE guest CONNECTION LIMIT 0")
    assert "Raise max_connections" in refused(as_guest(empty))


def test_a_database_that_is_not_in_utf_8(postgres: PostgresServer) -> None:
    sql(postgres.url(), "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        said = refused(postgres.url("latin"))
    finally:
        sql(postgres.url(), "DROP DATABASE latin")
    assert "not in UTF-8" in said
    assert "createdb -E UTF8" in said


def test_a_server_without_pgvector(empty: str) -> None:
    sql(empty, f"ALTER DATABASE {empty.rpartition('/')[2]} SET extension_control_path = '/nowhere'")
    assert "has no pgvector. Install it there" in refused(as_guest(empty))
    assert sql(empty, "SELECT to_regclass('turn')") == [(None,)]


def test_a_user_who_may_not_create_the_extension(empty: str) -> None:
    said = refused(as_guest(empty))
    assert "may not create the extension vector. As an administrator, run `CREATE EXTENSION vector`" in said
    sql(empty, "CREATE EXTENSION vector")
    with opened(as_guest(empty)) as store:
        assert store.read("me", turn_rows.sessions) == []


def test_a_user_who_may_not_create_tables(empty: str) -> None:
    sql(empty, "CREATE EXTENSION vector")
    sql(empty, f"ALTER DATABASE {empty.rpartition('/')[2]} OWNER TO postgres")
    said = refused(as_guest(empty))
    assert "the user guest may not create them. Run `mcp-memory migrate` with the URL of the user who owns" in said


def test_a_database_of_a_newer_version(url: str) -> None:
    sql(url, "INSERT INTO migration VALUES ('0099-later', 99, 99)")
    with pytest.raises(NewerHome, match=r"newer mcp-memory \(schema 0099-later\). Nothing was changed. Upgrade"):
        open_store(url)


def test_a_user_who_may_only_read(url: str) -> None:
    said = refused(f"{url}?options={quote('-c default_transaction_read_only=on')}")
    assert "promote a standby, or name the primary" in said


@pytest.mark.parametrize("pooling", [False, True])
def test_statements_are_prepared_unless_a_pooler_gives_each_transaction_another_connection(
    url: str, proxy: Proxy, pooling: bool
) -> None:
    proxy.pooling = pooling
    with opened(proxy.url(url)) as store:
        for _ in range(9):
            note(store, "again")
        prepared = store.read("me", lambda tx: tx.column("SELECT statement FROM pg_prepared_statements"))
    assert any("INSERT INTO note" in statement for statement in prepared) is not pooling


def test_what_the_url_says_goes_before_our_settings(url: str) -> None:
    with opened(f"{url}?application_name=mine") as store:
        names = store.read("me", lambda tx: tx.column("SELECT current_setting('application_name')"))
    assert names == ["mine"]
