"""A PostgreSQL database: transactions on a pool of connections.

A write locks the row of its space first, so the writes of a space are sequential and its rows are numbered in the order
of commits; writes of different spaces do not wait for each other. A read sees one snapshot.

A transaction is retried after a deadlock, a serialization failure or a connection that was lost before its COMMIT. If a
COMMIT was sent and the server did not report a failed statement, the server is asked whether the transaction was
committed (`commits`). Every other failure becomes an error that states whether something was written and what to do
(`failures`). A server that accepts a connection, never answers and never closes it is waited for without a limit.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mcp_memory.core import telemetry
from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.core.logs import SafeText
from mcp_memory.store.postgres import migrations, row_security
from mcp_memory.store.postgres.access import Access, enter, give_access, key_of, read_key
from mcp_memory.store.postgres.clock import DatabaseClock
from mcp_memory.store.postgres.commits import Commits, was_committed
from mcp_memory.store.postgres.connection import equip
from mcp_memory.store.postgres.failures import has_failed, is_transient, name_of, reason_of, translate_errors
from mcp_memory.store.postgres.notifications import Notifications
from mcp_memory.store.postgres.pool import Pool
from mcp_memory.store.snapshots import Snapshots

logger = logging.getLogger(__name__)
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of lost connections, which are handled here

T = TypeVar("T")
Connection = psycopg.Connection[Any]

_CONNECTIONS = 10
_WAIT = 2.0  # seconds for a connection while all are in use
_ASK_FOR = 30.0  # seconds for a server that is asked whether a transaction was committed
_PAUSES = (0.0, 0.1, 0.2, 0.4, 0.8, 0.8)  # seconds before each retry, varied at random by up to 50 %

# Used where the URL says nothing else. A host that is switched off is noticed after some 25 s.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "target_session_attrs": "read-write",
}

_ABOVE = (
    "The user of the database is a superuser or may bypass row-level security, so only our own queries separate the"
    " spaces. Connect as a plain user; `mcp-memory migrate --grant USER` grants it the tables."
)
_NOT_FLUSHED = (
    "synchronous_commit is off: a crash of the server may lose writes that were acknowledged. Set it to on for the"
    " database."
)
_NOT_SENT = (
    "No standby is synchronous: after a failover to one, writes that were acknowledged may be missing. Name it in"
    " synchronous_standby_names."
)
_MISSING = (
    "The database lacks settings of mcp-memory: {}. They are lost when a dump is restored. Run `mcp-memory migrate`"
    " with the URL of the user who owns the database."
)


class PostgresDatabase:
    """The open database; `close()` may be called twice.

    The constructor brings the schema up to date or raises. `read_only` is the reason why this program may only read, or
    None. `problems` describes settings of the server that risk the loss or exposure of data.
    """

    def __init__(
        self, url: str, *, key: str | None = None, connections: int = _CONNECTIONS, ask_for: float = _ASK_FOR
    ) -> None:
        """Connect to the database.

        Raises StoreUnavailable if it cannot be used, and NewerHome if a newer version has contracted it.

        `key` is the setting `store_key`; a user who owns the tables reads a key from the database instead. `ask_for` is
        how many seconds to wait for the outcome of an unanswered COMMIT.
        """
        self.name = name_of(url)
        self._conninfo = _conninfo(url)
        self._pool = Pool(self._conninfo, size=connections, wait=_WAIT, equip=self._equip)
        self._access = Access(key=key_of(key) if key else None, version=migrations.STEPS[-1].number)
        self.snapshots = Snapshots(self._reading)
        self._commits = Commits()
        self.clock = DatabaseClock()
        self._ask_for = ask_for
        with self._translate_errors():
            try:
                with self._connection() as con:
                    self.read_only = migrations.expand_schema(con)
                    if self._access.key is None:
                        self._access = replace(self._access, key=read_key(con))
                        self._equip(con)
                    next(enter(con, None, "read"))  # refuses a wrong key
                    self.problems = _problems(con)
                    if self.read_only is None:
                        self._commits.forget_old(con)
            except BaseException:
                self._pool.close()
                raise
        for problem in self.problems:
            logger.warning("%s", SafeText(problem))

    def _equip(self, con: Connection) -> None:
        equip(con)
        give_access(con, self._access)

    def close(self) -> None:
        self._pool.close()

    def not_ready(self) -> str | None:
        """Upgrade the schema if needed, and return why this program may only read, or None.

        Raises StoreUnavailable if the database cannot be used, and NewerHome if a newer version has contracted it.
        """

        def ask() -> str | None:
            with self._connection() as con:
                self.read_only = migrations.expand_schema(con)
                return self.read_only

        with self._translate_errors():
            return _with_retries(ask)

    def notifications(self, heard: Callable[[], None]) -> Notifications:
        """Begin to listen for the commits of other servers, on a connection outside of the pool."""
        return Notifications(self._conninfo, heard)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction: committed when this returns, rolled back if it raises.

        It may run more than once, so it must change nothing but the database.
        """
        if self.read_only is not None:
            raise StoreUnavailable(
                f"{self.name} can only be read: {self.read_only}. Nothing was written. Upgrade this mcp-memory."
            )
        with self._translate_errors():
            return _with_retries(lambda: self._write(work))

    def read(self, work: Callable[[Connection], T], *, again: bool = True, locked: str | None = None) -> T:
        """Run `work` in a transaction that cannot write; all its queries see one snapshot.

        With `again`, `work` is repeated after a transient failure; pass False if it passes rows on while it runs.
        Without `again`, `locked` may name a table that no other transaction can write to while `work` runs.
        """
        if again and (snapshot := self.snapshots.current) is not None:
            return work(snapshot.connection())  # `in_snapshot` retries
        with self._translate_errors():
            return _with_retries(lambda: self._read(work)) if again else self._read(work, locked)

    def in_snapshot(self, work: Callable[[], T]) -> T:
        """Call `work`, whose reads all see one snapshot. It is called again after a transient failure."""
        if self.snapshots.current is not None:
            return work()
        with self._translate_errors():
            return _with_retries(lambda: self.snapshots.run(work))

    def _write(self, work: Callable[[Connection], T]) -> T:
        committing: tuple[int, T] | None = None
        with self._connection() as con:
            try:
                with _in_pipeline(con):
                    con.execute("BEGIN", prepare=False)
                    result = work(con)
                    mark = self._commits.mark(con)
                    committing = mark, result
                    con.execute("COMMIT", prepare=False)
                self._commits.note_committed(mark)
                return result
            except (errors.ReadOnlySqlTransaction, errors.UndefinedTable) as error:
                # The server became a standby, and a new connection may find the primary; or a model's vectors were
                # dropped, whose tables it would not know.
                con.close()
                raise psycopg.OperationalError(str(error)) from None
            except BaseException as error:
                _roll_back(con)
                if committing is None or not isinstance(error, psycopg.Error) or has_failed(error):
                    raise
                con.close()
        mark, result = committing
        if not was_committed(mark, self._pool, ask_for=self._ask_for):
            raise psycopg.OperationalError("the connection was lost at COMMIT, and the transaction with it")
        return result

    def _read(self, work: Callable[[Connection], T], locked: str | None = None) -> T:
        with self._reading(locked) as con:
            return work(con)

    @contextmanager
    def _reading(self, locked: str | None = None) -> Generator[Connection]:
        """Lend a connection in a transaction that cannot write."""
        with self._connection() as con:
            try:
                with _in_pipeline(con):
                    con.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", prepare=False)
                    if locked:  # before the snapshot, which is that of the first query
                        con.execute(f"LOCK TABLE {locked} IN EXCLUSIVE MODE".encode())
                    yield con
                    con.execute("COMMIT", prepare=False)  # after a ROLLBACK psycopg drops its prepared statements
            except BaseException:
                _roll_back(con)
                raise

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        with self._pool.connection() as con:
            self.clock.measure(con)
            yield con

    def _translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.name, self._pool.size)


def migrate(url: str, *, role: str | None = None, contract: bool = False) -> list[tuple[str, migrations.Phase]]:
    """Run the unfinished phases of the schema's steps, set missing settings (see `migrations`), and return both.

    Phases that remove data of older versions run only with `contract`. If `role` is given, it is granted the rights to
    read and write rows.

    Raises StoreUnavailable if the database cannot be used, NewerHome if a newer version has contracted it, InvalidInput
    if the role does not exist, and Refused if `contract` is set and an older server is connected or if the user may not
    set what is missing. The text names the phases that were done before it.
    """
    done: list[tuple[str, migrations.Phase]] = []
    name = name_of(url)
    with translate_errors(name, 1), psycopg.connect(_conninfo(url), autocommit=True) as con:
        equip(con)
        if role is not None:
            migrations.require_role(con, role)
        try:
            for phase in migrations.migrate(con, contract=contract):
                done.append(phase)  # noqa: PERF402 - those before an error are named in it
            if role is not None:
                migrations.grant(con, role)
            migrations.require_settings(con)
        except (psycopg.Error, Refused) as error:
            if not done:
                raise
            phases = ", ".join(f"{step} ({phase})" for step, phase in done)
            kept = f"This was done before, and is kept: {phases}. Run `mcp-memory migrate` again when that is mended."
            if isinstance(error, Refused):
                raise Refused(f"{error} {kept}") from None
            raise StoreUnavailable(f"{name} cannot be migrated ({reason_of(error)}). {kept}") from None
        return done


def give_key(url: str, role: str, key: str | None = None) -> str | None:
    """Let a role enter spaces with a key, or with a new one if it has none; return a new key.

    `url` is that of the owner. The key that the role had before is valid until the next change. Raises
    StoreUnavailable if the database cannot be used.
    """
    with translate_errors(name_of(url), 1), psycopg.connect(_conninfo(url)) as con:
        return row_security.give_key(con, role, key)


def _conninfo(url: str) -> str:
    name = {"application_name": migrations.application_name()}
    return make_conninfo("", **{**_DEFAULTS, **name, **conninfo_to_dict(url), "client_encoding": "utf8"})


def _problems(con: Connection) -> list[str]:
    row = con.execute(
        "SELECT rolsuper OR rolbypassrls, current_setting('synchronous_commit') = 'off',"
        " current_setting('synchronous_standby_names') = ''"
        " AND EXISTS (SELECT 1 FROM pg_stat_replication WHERE application_name <> 'pg_basebackup')"
        " FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    problems = [text for text, is_so in zip((_ABOVE, _NOT_FLUSHED, _NOT_SENT), row or (), strict=False) if is_so]
    if missing := migrations.missing_settings(con):
        problems.append(_MISSING.format(", ".join(missing)))
    return problems


@contextmanager
def _in_pipeline(con: Connection) -> Generator[None]:
    """Send statements without waiting for their answers; all are answered at the end of the block."""
    with con.pipeline() as pipeline:
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):  # errors of statements after the failed statement
                pipeline.sync()
            raise


def _roll_back(con: Connection) -> None:
    with suppress(psycopg.Error):  # an error here would hide the original error
        con.execute("ROLLBACK", prepare=False)


def _with_retries(once: Callable[[], T]) -> T:
    """Run a transaction, and retry it after transient failures. Raises the error of the final try."""
    for retry, pause in enumerate(_PAUSES, 1):
        try:
            return once()
        except psycopg.Error as error:
            if not is_transient(error):
                raise
            logger.info("a transaction is tried again: %s", error)
            telemetry.set_attribute("retries", retry)
        time.sleep(pause * random.uniform(0.5, 1.5))
    return once()
