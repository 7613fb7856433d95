"""Steps of the schema, made so that servers of two versions can use one database during an upgrade.

    expand     adds what the new version needs and older versions can ignore
    backfill   computes it for the existing rows, a batch at a time
    contract   removes everything that only older versions use

A server runs `expand` at its start, if its user owns the database. `mcp-memory migrate` runs the other phases; it runs
`contract` only with `--contract`, and only if no older server is connected. The database stores the oldest versions
that may read and write it, so an older program can only read, or is refused. A released step is never edited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import errors, sql

from mcp_memory.core.errors import InvalidInput, NewerHome, Refused, StoreUnavailable
from mcp_memory.store.postgres import row_security, term_segments
from mcp_memory.store.postgres.access import enter_as_owner
from mcp_memory.store.postgres.connection import PostgresConnection
from mcp_memory.store.postgres.deadlines import lift_deadlines
from mcp_memory.store.postgres.schema import EVERY, KEPT_QUOTES, QUOTAS, create_tables, run_statements
from mcp_memory.store.sql import keying, schema
from mcp_memory.store.sql.transaction import HomeTransaction

Connection = psycopg.Connection[Any]
Phase = Literal["expand", "backfill", "contract", "set"]
"""Phases of steps; the settings of the database are `set`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of the schema. Its name begins with its number: `0002-…`."""

    name: str
    expand: Callable[[Connection], None]
    backfill: Callable[[Connection], bool] | None = None
    """Computes a batch; returns whether rows are left. It may be stopped and begun again."""
    contract: Callable[[Connection], None] | None = None
    """Removes what only older versions use. Programs that do not know this step are refused from then on."""
    min_writer: int = 1
    """After `expand`, only programs that know the step with this number may write."""

    @property
    def number(self) -> int:
        return int(self.name[:4])


def _key_identifiers(con: Connection) -> None:
    """Replace plain hashes of identifiers by keyed hashes; see `sql.keying`."""
    tx = HomeTransaction(PostgresConnection(con))
    tx.run("SELECT set_config('mcp_memory.space', ?, true)", EVERY)
    keying.key_identifiers(tx)
    keying.key_file_hashes(tx)


def _key_late_identifiers(con: Connection) -> bool:
    """Replace the plain hashes that programs of the older version have written since."""
    tx = HomeTransaction(PostgresConnection(con))
    enter_as_owner(con)
    keying.key_identifiers(tx)
    return False


def _add_labels(con: Connection) -> None:
    run_statements(con, schema.LABELS)


def _add_projects(con: Connection) -> None:
    run_statements(con, (schema.PROJECTS,))


def _add_quotas(con: Connection) -> None:
    run_statements(con, (schema.QUOTAS,))
    con.execute(QUOTAS.encode())
    con.execute("SELECT keep_to_space('quota')")


def _list_atoms(con: Connection) -> None:
    run_statements(con, schema.LISTED_ATOMS)


def _drop_atom_open(con: Connection) -> None:
    con.execute("DROP INDEX IF EXISTS atom_open")


def _list_conversations(con: Connection) -> None:
    run_statements(con, schema.CONVERSATIONS)


def _add_feedback(con: Connection) -> None:
    run_statements(con, (schema.FEEDBACK, *schema.RECALL_QUESTIONS))
    con.execute("SELECT keep_to_space('feedback')")


def _shorten_rows(con: Connection) -> None:
    con.execute(KEPT_QUOTES.encode())
    _shorten_keys(con)


def _shorten_keys(con: Connection) -> bool:
    """Replace the folded texts of statements, and later those that programs of the older version have written since."""
    enter_as_owner(con)
    keying.shorten_statement_keys(HomeTransaction(PostgresConnection(con)))
    return False


def _drop_quotes(con: Connection) -> None:
    run_statements(con, (schema.QUOTES,))
    con.execute("DROP FUNCTION fill_quote CASCADE; DROP FUNCTION clear_quotes CASCADE")


STEPS: list[Step] = [
    Step(name="0001-baseline", expand=create_tables),
    Step(name="0002-keyed-identifiers", expand=_key_identifiers, backfill=_key_late_identifiers),
    Step(name="0003-labels", expand=_add_labels),
    Step(name="0004-projects", expand=_add_projects),
    Step(name="0005-proofs", expand=row_security.expand, contract=row_security.contract),
    Step(name="0006-quotas", expand=_add_quotas),
    Step(name="0007-listed-atoms", expand=_list_atoms, contract=_drop_atom_open),
    Step(
        name="0008-term-segments",
        expand=term_segments.expand,
        backfill=term_segments.backfill,
        contract=term_segments.contract,
    ),
    Step(name="0009-titles", expand=_list_conversations),
    Step(name="0010-feedback", expand=_add_feedback),
    Step(name="0011-smaller-rows", expand=_shorten_rows, backfill=_shorten_keys, contract=_drop_quotes),
]

_NEW_TABLE = """
    CREATE TABLE IF NOT EXISTS migration (
        name TEXT PRIMARY KEY, min_reader INT NOT NULL, min_writer INT NOT NULL,
        expand TIMESTAMPTZ NOT NULL DEFAULT now(), backfill TIMESTAMPTZ, contract TIMESTAMPTZ
    )
"""
_SETTINGS = {
    "statement_timeout": "60s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
    "jit": "off",  # for queries of some milliseconds it takes longer to begin
    "max_parallel_workers_per_gather": "0",  # so do other processes, and the processors have other searches to do
}
"""Settings of the database, where a pooler cannot drop them; settings that its owner has changed are kept.

A dump does not contain them, so `migrate` sets those that are missing, and `doctor` reports them.
"""


def application_name() -> str:
    """Return the application name of this program's connections, by which an upgrade finds the connected versions."""
    return f"mcp-memory schema {STEPS[-1].number}"


def expand_schema(con: Connection) -> str | None:
    """Upgrade the schema to the version that this program needs. Return why this program may only read, or None.

    Raises StoreUnavailable if the database is not UTF-8 or the user lacks the rights, and NewerHome if a newer version
    has contracted it.
    """
    done = _done(con)
    if any(step.name not in done for step in STEPS):
        _must_be_utf8(con)
        try:
            _expand(con)
        except errors.InsufficientPrivilege:
            raise StoreUnavailable(
                f"The database {con.info.dbname} does not have the tables of this version, and the user {con.info.user}"
                " may not create them. Run `mcp-memory migrate` with the URL of the user who owns the database."
            ) from None
    own = STEPS[-1].number
    reader, writer, newest = con.execute(
        "SELECT max(min_reader), max(min_writer), max(name) FROM migration"
    ).fetchone() or (1, 1, "")
    if own < reader:
        raise NewerHome(
            f"The database {con.info.dbname} was upgraded by a newer mcp-memory (schema {newest}). Nothing was changed."
            " Upgrade this program in the way that you installed it."
        )
    return f"schema {newest} can be written by newer versions only" if own < writer else None


def migrate(con: Connection, *, contract: bool = False) -> Iterator[tuple[str, Phase]]:
    """Run the unfinished phases of all steps, set missing settings, and yield each when it is done.

    With `contract`, older versions are refused from then on; raises Refused if an older version is connected.
    """
    before = _done(con)
    expand_schema(con)
    for step in STEPS:
        if step.name not in before:
            yield step.name, "expand"
    if _in_turn(con, set_settings):
        yield "settings", "set"
    for step in STEPS:
        if step.backfill is not None and not _is_done(con, step, "backfill"):
            while _in_turn(con, step.backfill):
                pass
            _in_turn(con, lambda con, step=step: _record(con, step, "backfill"))
            yield step.name, "backfill"
    for step in STEPS if contract else ():
        if step.contract is not None and not _is_done(con, step, "contract"):
            _refuse_older(con, step)
            _in_turn(con, lambda con, step=step: _contract(con, step))
            yield step.name, "contract"


def require_role(con: Connection, role: str) -> None:
    """Raise InvalidInput if a role does not exist."""
    if con.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
        raise InvalidInput(f"There is no user {role} in PostgreSQL. Create it with `createuser {role}`.")


_GRANTS = """
    WITH owner AS (SELECT relowner AS id FROM pg_class WHERE oid = 'migration'::regclass),
        of_extensions AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e')
    SELECT format('GRANT USAGE ON SCHEMA %%I TO %%I', current_schema(), %(role)s::text)
    UNION ALL
    SELECT format(
        CASE relkind WHEN 'S' THEN 'GRANT USAGE ON SEQUENCE %%s TO %%I'
            ELSE 'GRANT SELECT, INSERT, UPDATE, DELETE ON %%s TO %%I' END, oid::regclass, %(role)s::text)
    FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'S')
        AND relowner = (SELECT id FROM owner) AND ('pg_class'::regclass, oid) NOT IN (SELECT * FROM of_extensions)
    UNION ALL
    SELECT format('GRANT EXECUTE ON FUNCTION %%s TO %%I', oid::regprocedure, %(role)s::text)
    FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND prokind = 'f'
        AND proowner = (SELECT id FROM owner) AND ('pg_proc'::regclass, oid) NOT IN (SELECT * FROM of_extensions)
    UNION ALL
    SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %%s IN SCHEMA %%I GRANT %%s TO %%I', id::regrole, current_schema(),
        rights, %(role)s::text)
    FROM owner, unnest(ARRAY['SELECT, INSERT, UPDATE, DELETE ON TABLES', 'USAGE ON SEQUENCES']) rights
    UNION ALL
    SELECT format('REVOKE INSERT, UPDATE, DELETE ON migration FROM %%I', %(role)s::text)
"""


def grant(con: Connection, role: str) -> None:
    """Grant a role the rights of a server: to read and write rows, but not to change the schema.

    They are granted for what the owner of our tables has in our schema: nothing of another user or of an extension.
    """
    with alone(con):
        for (statement,) in con.execute(_GRANTS, {"role": role}).fetchall():
            con.execute(statement.encode())


def _done(con: Connection) -> list[str]:
    if con.execute("SELECT to_regclass('migration')").fetchone() == (None,):
        return []
    return [name for (name,) in con.execute("SELECT name FROM migration ORDER BY name")]


def _is_done(con: Connection, step: Step, phase: Phase) -> bool:
    question = sql.SQL("SELECT {} IS NOT NULL FROM migration WHERE name = %s").format(sql.Identifier(phase))
    return con.execute(question, (step.name,)).fetchone() == (True,)


@contextmanager
def alone(con: Connection) -> Generator[None]:
    """Open a transaction that excludes other migrating programs and has no time limit."""
    with con.transaction():
        lift_deadlines(con)
        con.execute("SELECT pg_advisory_xact_lock(hashtextextended('mcp-memory migration', 0))")
        yield


def _in_turn(con: Connection, work: Callable[[Connection], bool | None]) -> bool | None:
    with alone(con):
        return work(con)


def _expand(con: Connection) -> None:
    with alone(con):
        con.execute(_NEW_TABLE)
        done = _done(con)
        for step in STEPS:
            if step.name not in done:
                step.expand(con)
                con.execute("INSERT INTO migration VALUES (%s, 1, %s)", (step.name, step.min_writer))
        if not done:
            for step in STEPS:
                if step.contract is not None:  # no older server uses a new database
                    _contract(con, step)
            set_settings(con)


def set_settings(con: Connection) -> bool:
    """Set the missing settings if this user owns the database; return whether any was set.

    A copy of a database needs this too, because it lacks the settings of the original.
    """
    owns = con.execute(
        "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    missing = missing_settings(con) if owns == (True,) else {}
    database = sql.Identifier(con.info.dbname)
    if owns == (True,):  # a temporary table would take the place of ours for all later statements of a connection
        con.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    for name, value in missing.items():
        con.execute(sql.SQL("ALTER DATABASE {} SET {} = {}").format(database, sql.Identifier(name), value))
    return bool(missing)


def missing_settings(con: Connection) -> dict[str, str]:
    """Return the settings that nobody has made: neither for the server, the database, the user nor the connection."""
    rows = con.execute(
        "SELECT name FROM pg_settings WHERE name = ANY(%s) AND reset_val = boot_val"
        " AND source IN ('default', 'configuration file', 'session') AND NOT EXISTS ("
        "SELECT 1 FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase, unnest(s.setconfig) made"
        " WHERE d.datname = current_database() AND s.setrole = 0 AND split_part(made, '=', 1) = name)",
        (list(_SETTINGS),),
    )
    return {name: _SETTINGS[name] for (name,) in rows}


def require_settings(con: Connection) -> None:
    """Raise Refused if settings are missing, which only the owner of the database may make."""
    if missing := missing_settings(con):
        name = con.info.dbname
        statements = " ".join(f"ALTER DATABASE {name} SET {setting} = '{value}';" for setting, value in missing.items())
        raise Refused(
            f"The tables are up to date, but the database lacks settings that the user {con.info.user} may not make,"
            f" because another user owns it. Run as the owner or as an administrator: {statements}"
        )


def _record(con: Connection, step: Step, phase: Phase) -> None:
    con.execute(sql.SQL("UPDATE migration SET {} = now() WHERE name = %s").format(sql.Identifier(phase)), (step.name,))


def _contract(con: Connection, step: Step) -> None:
    assert step.contract is not None
    step.contract(con)
    _record(con, step, "contract")
    con.execute(
        "UPDATE migration SET min_reader = %s, min_writer = %s WHERE name = %s", (step.number, step.number, step.name)
    )


def _refuse_older(con: Connection, step: Step) -> None:
    """Raise Refused if a program that does not know the step is connected."""
    sessions = con.execute(
        "SELECT DISTINCT application_name, usename FROM pg_stat_activity WHERE datname = current_database()"
    )
    older = [
        f"{name} as {user}"
        for name, user in sessions.fetchall()
        if (words := name.split())[:2] == ["mcp-memory", "schema"] and int(words[2]) < step.number
    ]
    if older:
        raise Refused(f"Older servers are connected ({', '.join(older)}). Nothing was removed. Upgrade them first.")


def _must_be_utf8(con: Connection) -> None:
    if con.execute("SHOW server_encoding").fetchone() != ("UTF8",):
        raise StoreUnavailable(
            f"The database {con.info.dbname} is not in UTF-8, which a memory needs. Create a database with"
            " `createdb -E UTF8 --locale=C.UTF-8 -T template0`."
        )
