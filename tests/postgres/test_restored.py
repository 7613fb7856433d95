"""A database restored from a dump, and the rights of a server's user beside other programs' objects."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.core.errors import Refused
from mcp_memory.store.postgres.database import give_key, migrate
from tests.postgres.notes import as_administrator, as_owner, note, noted, opened, sql
from tests.postgres_server import PostgresServer, run

pytestmark = pytest.mark.postgres

LACKS = "The database lacks settings of mcp-memory: "


@pytest.fixture
def restored(postgres: PostgresServer, url: str) -> Iterator[str]:
    """A memory that was dumped and restored into a new database by the administrator, as docs/operations.md says."""
    with opened(url) as store:
        note(store, "before the dump")
    dump = postgres.folder / "dump"
    run(postgres.binaries / "pg_dump", "-Fc", "-f", dump, as_administrator(url))
    target = postgres.create_database(owner="owner")
    run(postgres.binaries / "pg_restore", "-d", as_administrator(target), dump)
    yield target
    postgres.drop_database(target)


def test_migrate_sets_what_a_dump_does_not_contain(restored: str) -> None:
    with opened(restored) as store:
        (problem,) = store.problems()
    assert problem.startswith(f"{LACKS}idle_in_transaction_session_timeout, jit, lock_timeout, ")
    assert sql(restored, "SHOW statement_timeout") == [("0",)]
    done = CliRunner().invoke(program, ["migrate", "--store", as_owner(restored)])
    assert done.stdout.startswith("settings: timeouts and the planner's settings set for the database\n")
    assert sql(restored, "SHOW statement_timeout") == [("1min",)]
    assert sql(restored, "SHOW jit") == [("off",)]
    with opened(restored) as store:
        assert store.problems() == []
        note(store, "after it")
    assert noted(restored) == ["after it", "before the dump"]
    assert migrate(as_owner(restored)) == []


def test_a_setting_of_the_owner_is_kept_even_if_it_is_the_default(restored: str) -> None:
    sql(restored, f"ALTER DATABASE {restored.rpartition('/')[2]} SET statement_timeout = 0")
    migrate(as_owner(restored))
    assert sql(restored, "SHOW statement_timeout") == [("0",)]
    assert sql(restored, "SHOW lock_timeout") == [("15s",)]
    with opened(restored) as store:
        assert store.problems() == []


def test_migrate_fails_if_its_user_may_not_set_them(restored: str) -> None:
    name = restored.rpartition("/")[2]
    sql(restored, f"ALTER DATABASE {name} OWNER TO postgres")
    with pytest.raises(Refused, match=rf"another user owns it.*ALTER DATABASE {name} SET jit = 'off'; "):
        migrate(as_owner(restored))


def test_rights_are_granted_beside_an_extension_in_the_same_schema(url: str) -> None:
    sql(url, "CREATE EXTENSION pg_stat_statements")
    sql(url, "CREATE TABLE of_another (text TEXT)")
    sql(url, "CREATE ROLE reader LOGIN")
    try:
        migrate(as_owner(url), role="reader")
        key = give_key(as_owner(url), "reader")
        with opened(url.replace("memory@", "reader@"), key=key) as store:
            note(store, "written by reader")
        rights = "has_table_privilege('reader', '{}', 'INSERT')"
        names = ("turn", "migration", "of_another")
        found = sql(url, f"SELECT {', '.join(map(rights.format, names))}")
        assert found == [(True, False, False)]
    finally:
        sql(url, "DROP OWNED BY reader")
        sql(url, "DROP ROLE reader")


def test_programs_that_grant_at_once_all_succeed(postgres: PostgresServer) -> None:
    url = postgres.create_database(owner="owner")
    sql(url, "CREATE EXTENSION vector")
    with ThreadPoolExecutor(4) as threads:
        runs = [threads.submit(migrate, as_owner(url), role="memory") for _ in range(4)]
        assert ("0001-baseline", "expand") in [phase for run in runs for phase in run.result()]
        keys = [threads.submit(give_key, as_owner(url), "memory") for _ in range(4)]
    (key,) = (made for made in (given.result() for given in keys) if made)
    with opened(url, key=key) as store:
        assert store.problems() == []
    postgres.drop_database(url)


def test_an_error_says_what_was_done_before_it(postgres: PostgresServer) -> None:
    url = postgres.create_database(owner="owner")
    sql(url, "CREATE EXTENSION vector")
    sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} OWNER TO postgres")
    sql(url, "GRANT CREATE ON SCHEMA public TO owner")
    with pytest.raises(
        Refused, match=r"This was done before, and is kept: 0001-baseline \(expand\), .* Run `mcp-memory"
    ):
        migrate(as_owner(url))
    postgres.drop_database(url)
