"""A PostgreSQL database: transactions on a pool of connections.

A write locks the row of its space first, so the writes of a space are sequential and its rows are numbered in the order
of commits; writes of different spaces do not wait for each other. A read sees one snapshot.

A transaction is retried after a deadlock, a serialization failure or a connection that was lost before its COMMIT. If a
COMMIT was sent, and the server neither reported a failed statement nor acknowledged it, the server is asked whether the
transaction was committed and is on the standby (`commits`). Every other failure becomes an error that states whether
something was written and what to do (`failures`).

A call, with its retries and questions, takes no longer than `timeout`, also if the server is stopped or the network
drops packets (`deadlines`). Some connections are reserved for reads, which need no standby.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from math import inf
from threading import BoundedSemaphore
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
from mcp_memory.store.postgres.commits import Commits, Unconfirmed, was_committed
from mcp_memory.store.postgres.connection import equip
from mcp_memory.store.postgres.deadlines import CANCELLING, NoAnswer, TimedConnection, allow_long_answers
from mcp_memory.store.postgres.failures import has_failed, is_transient, name_of, reason_of, translate_errors
from mcp_memory.store.postgres.health import setting_problems, standby_problem
from mcp_memory.store.postgres.notifications import Notifications
from mcp_memory.store.postgres.pool import Pool, PoolExhausted
from mcp_memory.store.postgres.replica import Replica, position_of
from mcp_memory.store.snapshots import Snapshots

logger = logging.getLogger(__name__)
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of lost connections, which are handled here

T = TypeVar("T")
Connection = psycopg.Connection[Any]

CALL_SECONDS = 10.0
_PROBE_SECONDS = 2.0
_CONNECTIONS = 10
_FOR_READS = 2  # of them, which remain while commits wait for a standby
_WAIT = 5.0  # seconds for a connection while all are in use: a verb that reads has one until it has its answer
_SOON = 0.1  # for one to the standby, before the primary is read instead
_PAUSES = (0.0, 0.1, 0.2, 0.4, 0.8, 0.8)  # seconds before each retry, varied at random by up to 50 %
_SHORTEST_TRY = 1.0  # seconds

# Used where the URL says nothing else. A host that is switched off is noticed after some 25 s.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "target_session_attrs": "read-write",
}
_STANDBY = {"target_session_attrs": "standby", "load_balance_hosts": "random"}


class PostgresDatabase:
    """The open database; `close()` may be called twice.

    The constructor brings the schema up to date or raises. `read_only` is the reason why this program may only read, or
    None. `problems` describes settings of the server that risk the loss or exposure of data.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        connections: int = _CONNECTIONS,
        timeout: float = CALL_SECONDS,
        reads: str | None = None,
    ) -> None:
        """Connect to the database.

        `key` is the setting `store_key`; a user who owns the tables reads a key from the database instead. `timeout` is
        how many seconds a call may take, at least 2. `reads`: the URL of standbys that answer the reads of snapshots.
        Raises StoreUnavailable if the database cannot be used, and NewerHome if a newer version has contracted it.
        """
        self.name = name_of(url)
        self.commits = Commits()
        self._timeout = timeout
        self._conninfo = _conninfo(url)
        self._access = Access(key=key_of(key) if key else None, version=migrations.STEPS[-1].number)
        self._probes = Pool(self._conninfo, size=1, wait=_WAIT, equip=self._equip)
        self._pool = Pool(self._conninfo, size=connections, wait=_WAIT, equip=self._equip)
        self._write_places = max(1, connections - _FOR_READS)
        self._writers = BoundedSemaphore(self._write_places)
        standby = reads and Pool(_conninfo(reads, **_STANDBY), size=connections, wait=_SOON, equip=self._equip)
        self._replica = Replica(standby) if standby else None
        self.snapshots = Snapshots(lambda: self._reading(self._deadline(), anywhere=True))
        self.clock = DatabaseClock()
        with self._translate_errors():
            try:
                with self._connection(self._deadline()) as con:
                    self.read_only = migrations.expand_schema(con)
                    if self._access.key is None:
                        self._access = replace(self._access, key=read_key(con))
                        self._equip(con)
                    next(enter(con, None, "read"))  # refuses a wrong key
                    self._setting_problems = setting_problems(con)
                    if self.read_only is None:
                        self.commits.forget_old(con)
            except BaseException:
                self._pool.close()
                raise
        for problem in self._setting_problems:
            logger.warning("%s", SafeText(problem))

    def _equip(self, con: Connection) -> None:
        equip(con)
        give_access(con, self._access)

    def close(self) -> None:
        self._pool.close()
        self._probes.close()
        if self._replica:
            self._replica.close()

    def not_ready(self, *, try_commit: bool = False) -> str | None:
        """Upgrade the schema if needed, and return why this program may only read or has no answer, or None.

        It also finds `commits.problem`: by a commit if the last was not confirmed, or with `try_commit`. It takes two
        seconds and a connection outside of the pool. Raises StoreUnavailable if the database cannot be used, and
        NewerHome if a newer version has contracted it.
        """

        def ask() -> str | None:
            with self._connection(deadline, self._probes) as con:
                self.read_only = migrations.expand_schema(con)
                if self.read_only is not None:
                    return self.read_only
                try_it = try_commit or self.commits.problem is not None
                self.commits.problem = standby_problem(con, try_commit=try_it)
                return None

        with translate_errors(self.name, _PROBE_SECONDS, writes=False):
            deadline = _deadline_in(_PROBE_SECONDS)
            try:
                return _with_retries(ask, deadline)
            except (NoAnswer, errors.ConnectionTimeout):
                return f"The database did not answer within {_PROBE_SECONDS:g} s."

    def problems(self) -> list[str]:
        """Return settings that risk the loss or exposure of data, and problems of the database, standby and replica."""
        not_ready = self.not_ready(try_commit=True)
        if self._replica is not None:
            self.in_snapshot(lambda: self.read(lambda con: None))
        if self.read_only is not None:
            not_ready = f"{self.name} can only be read: {self.read_only}. Upgrade this mcp-memory."
        others = (not_ready, self.commits.problem, self._replica and self._replica.problem)
        return [*self._setting_problems, *(problem for problem in others if problem)]

    def notifications(self, heard: Callable[[], None]) -> Notifications:
        """Begin to listen for the commits of other servers, on a connection outside of the pool."""
        return Notifications(self._conninfo, heard)

    def write(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Run `work` in one transaction: committed when this returns, rolled back if it raises.

        It may run more than once, so it must change nothing but the database. If it need not be `durable`, it waits
        neither for the disk nor for the standby, and may be lost with the server.
        """
        if self.read_only is not None:
            raise StoreUnavailable(
                f"{self.name} can only be read: {self.read_only}. Nothing was written. Upgrade this mcp-memory."
            )
        with self._translate_errors():
            deadline = self._deadline()
            with self._place_to_write() if durable else nullcontext():
                return _with_retries(lambda: self._write(work, deadline, durable=durable), deadline)

    def read(self, work: Callable[[Connection], T], *, again: bool = True, locked: str | None = None) -> T:
        """Run `work` in a transaction that cannot write; all its queries see one snapshot.

        With `again`, `work` is repeated after a transient failure; pass False if it passes rows on while it runs: then
        only each of its statements has a deadline. Without `again`, `locked` may name a table that no other transaction
        can write to while `work` runs.
        """
        deadline = self._deadline()
        if again and (snapshot := self.snapshots.current) is not None:
            con = snapshot.connection()
            con.deadline = deadline
            return work(con)  # `in_snapshot` retries
        with self._translate_errors(writes=False):
            if again:
                return _with_retries(lambda: self._read(work, deadline), deadline)
            with self._reading(deadline, locked) as con:
                allow_long_answers(con)
                return work(con)

    def in_snapshot(self, work: Callable[[], T]) -> T:
        """Call `work`, whose reads all see one snapshot. It is called again after a transient failure.

        Each of the reads has a deadline.
        """
        if self.snapshots.current is not None:
            return work()
        with self._translate_errors(writes=False):
            return _with_retries(lambda: self.snapshots.run(work), self._deadline())

    def _write(self, work: Callable[[Connection], T], deadline: float, *, durable: bool) -> T:
        committing: tuple[int, T] | None = None
        with self._connection(deadline) as con:
            try:
                with _in_pipeline(con) as pipeline:
                    con.execute("BEGIN", prepare=False)
                    if not durable:
                        con.execute("SET LOCAL synchronous_commit = off", prepare=False)
                    result = work(con)
                    mark = self.commits.mark(con)
                    if con.patience < inf:  # a long transaction, whose COMMIT has a deadline all the same
                        pipeline.sync()
                        deadline = self._deadline()
                        con.start(deadline)
                    committing = mark, result
                    sent = time.monotonic()
                    con.execute("COMMIT", prepare=False)
                if not con.has_warned:
                    self.commits.note_committed(mark)
                    if durable:
                        self.commits.note_confirmed(time.monotonic() - sent)
                    return result
            except (errors.ReadOnlySqlTransaction, errors.UndefinedTable, errors.InsufficientPrivilege) as error:
                # The server became a standby, and a new connection may find the primary; or a model's vectors were
                # dropped, whose tables it would not know; or a space was deleted, whose number it would not know.
                if isinstance(error, errors.InsufficientPrivilege) and "row-level security" not in str(error):
                    raise
                con.close()
                raise psycopg.OperationalError(str(error)) from None
            except BaseException as error:
                _roll_back(con)
                if committing is None or not isinstance(error, psycopg.Error) or has_failed(error):
                    raise
                con.close()
        mark, result = committing
        if not self._was_committed(mark, con, deadline):
            raise psycopg.OperationalError("the connection was lost at COMMIT, and the transaction with it")
        return result

    @contextmanager
    def _place_to_write(self) -> Generator[None]:
        if not self._writers.acquire(timeout=_WAIT):
            raise PoolExhausted(f"{self._write_places} connections for writes")
        try:
            yield
        finally:
            self._writers.release()

    def _was_committed(self, mark: int, con: TimedConnection, deadline: float) -> bool:
        """Return whether the transaction on a connection was committed and is on the standby. Raises Unconfirmed."""
        began = time.monotonic()
        try:
            is_committed = was_committed(mark, self._pool, deadline=deadline, warned=con.has_warned)
        except Unconfirmed as unconfirmed:
            self.commits.note_unconfirmed(unconfirmed)
            logger.warning("a commit is unconfirmed: %s", SafeText(unconfirmed))
            raise
        if is_committed:
            self.commits.note_committed(mark)
            self.commits.note_confirmed(time.monotonic() - began)
        return is_committed

    def _read(self, work: Callable[[Connection], T], deadline: float) -> T:
        with self._reading(deadline) as con:
            return work(con)

    @contextmanager
    def _reading(
        self, deadline: float, locked: str | None = None, *, anywhere: bool = False
    ) -> Generator[TimedConnection]:
        """Lend a connection in a transaction that cannot write; with `anywhere`, perhaps to the standby for reads."""
        with self._connection_anywhere(deadline) if anywhere else self._connection(deadline) as con:
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
    def _connection(self, deadline: float, pool: Pool | None = None) -> Generator[TimedConnection]:
        with (pool or self._pool).connection(deadline) as con:
            self.clock.measure(con)
            yield con

    @contextmanager
    def _connection_anywhere(self, deadline: float) -> Generator[TimedConnection]:
        if self._replica is not None and self._replica.is_asked:
            with self._connection(deadline) as con:
                position = position_of(con)
            with self._replica.connection(position, deadline) as standby:
                if standby is not None:
                    yield standby
                    return
        with self._connection(deadline) as con:
            yield con

    def _deadline(self) -> float:
        return _deadline_in(self._timeout)

    def _translate_errors(self, *, writes: bool = True) -> AbstractContextManager[None]:
        return translate_errors(self.name, self._timeout, writes=writes)


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
    with translate_errors(name, CALL_SECONDS), TimedConnection.connect(_conninfo(url), autocommit=True) as con:
        con.start(_deadline_in(CALL_SECONDS))
        equip(con)
        if (problem := standby_problem(con, try_commit=True)) is not None:
            raise StoreUnavailable(f"{problem} Nothing was changed.")
        con.start(inf)
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
    with (
        translate_errors(name_of(url), CALL_SECONDS),
        TimedConnection.connect(_conninfo(url)) as con,
        migrations.alone(con),
    ):
        return row_security.give_key(con, role, key)


def _conninfo(url: str, **defaults: str) -> str:
    defaults["application_name"] = migrations.application_name()
    return make_conninfo("", **{**_DEFAULTS, **defaults, **conninfo_to_dict(url), "client_encoding": "utf8"})


@contextmanager
def _in_pipeline(con: Connection) -> Generator[psycopg.Pipeline]:
    """Send statements without waiting for their answers; all are answered at the end of the block."""
    with con.pipeline() as pipeline:
        try:
            yield pipeline
        except BaseException:
            with suppress(psycopg.Error):  # errors of statements after the failed statement
                pipeline.sync()
            raise


def _roll_back(con: Connection) -> None:
    with suppress(psycopg.Error):  # an error here would hide the original error
        con.execute("ROLLBACK", prepare=False)


def _deadline_in(seconds: float) -> float:
    """Return the time after which answers are no longer waited for: then there is enough time left to cancel."""
    return time.monotonic() + seconds - 2 * CANCELLING


def _with_retries(once: Callable[[], T], deadline: float) -> T:
    """Run a transaction, and retry it after transient failures until the deadline. Raises the error of the last try."""
    for retry, pause in enumerate(_PAUSES, 1):
        try:
            return once()
        except psycopg.Error as error:
            pause *= random.uniform(0.5, 1.5)
            if not is_transient(error) or time.monotonic() + pause + _SHORTEST_TRY >= deadline:
                raise
            logger.info("a transaction is tried again: %s", error)
            telemetry.set_attribute("retries", retry)
        time.sleep(pause)
    return once()
