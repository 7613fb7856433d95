"""A PostgreSQL database: a pool of connections, transactions, and errors that name the next step.

A write locks the row of its space first, so writes of one space are one after the other and its numbers are in the
order of commits; writes of different spaces do not wait for each other. A write is tried again after a deadlock, a
serialization failure or a connection that was lost before its COMMIT. If the answer to a COMMIT is lost, the server is
asked whether the transaction was committed. Reads see one snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from mcp_memory.core.errors import InvalidInput, NoRoom, StoreUnavailable
from mcp_memory.store.postgres import schema
from mcp_memory.store.postgres.connection import equip

__all__ = ["Database", "name_of"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
Connection = psycopg.Connection[Any]

_CONNECTIONS = 10
_WAIT = 2.0  # seconds for a free connection of the pool
_CONNECT = 10  # seconds for a new one
_TRIES = 5
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
_GONE = (psycopg.OperationalError, psycopg.InterfaceError)
_FINAL = (PoolTimeout, errors.QueryCanceled, errors.DiskFull, errors.ProgramLimitExceeded)
"""Operational errors that another try would only repeat."""
_ENDED = 30.0  # seconds for a server that is asked whether a transaction was committed


class Database:
    """The open database. The constructor brings its schema up to date or raises; `close()` may be called twice."""

    def __init__(self, url: str) -> None:
        """Raises StoreUnavailable."""
        self.name = name_of(url)
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_WAIT,
            configure=equip,
            open=False,
            kwargs={"connect_timeout": _CONNECT, "autocommit": True, "application_name": "mcp-memory"},
        )
        with self._explained():
            with psycopg.connect(url, connect_timeout=_CONNECT, autocommit=True) as con:
                schema.migrate(con)
            self._pool.open(wait=True, timeout=_CONNECT)

    def close(self) -> None:
        self._pool.close()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction: committed when this returns, rolled back if it raises.

        It may run more than once, so it must change nothing but the database.
        """
        with self._explained():
            for attempt in range(_TRIES):
                try:
                    return self._once(work)
                except _AGAIN as error:
                    logger.info("a write is tried again: %s", error)
                    if attempt == _TRIES - 1:
                        raise
                    time.sleep(0.01 * 2**attempt)
                except _GONE as error:
                    if attempt == _TRIES - 1 or isinstance(error, _FINAL):
                        raise
                    logger.info("a write is tried again: %s", error)
                    time.sleep(0.1 * 2**attempt)
            raise AssertionError("the last try returns or raises")

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction that cannot write; all its queries see one snapshot."""
        with self._explained():
            for attempt in range(_TRIES):
                try:
                    with self._pool.connection() as con:
                        con.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                        try:
                            return work(con)
                        finally:
                            if not con.closed:
                                con.execute("ROLLBACK")
                except _GONE as error:
                    if attempt == _TRIES - 1 or isinstance(error, _FINAL):
                        raise
                    time.sleep(0.1 * 2**attempt)
            raise AssertionError("the last try returns or raises")

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._pool.connection() as con:
            con.execute("BEGIN")
            try:
                result = work(con)
            except BaseException:
                if not con.closed:
                    con.execute("ROLLBACK")
                raise
            unanswered = _commit(con)
        if unanswered is not None and not self._was_committed(unanswered):
            raise psycopg.OperationalError("the connection was lost at COMMIT")
        return result

    def _was_committed(self, xid: str) -> bool:
        """Ask how a transaction ended whose COMMIT was not answered."""
        until = time.monotonic() + _ENDED
        while True:
            try:
                with self._pool.connection() as con:
                    row = con.execute("SELECT pg_xact_status(%s::xid8)", (xid,)).fetchone()
                status = row[0] if row else None
                if status in ("committed", "aborted"):
                    return status == "committed"
            except _GONE:
                if time.monotonic() > until:
                    raise StoreUnavailable(
                        f"The connection to {self.name} was lost at the end of a write, and the server cannot be asked "
                        "whether it was stored. Look before you write it again."
                    ) from None
            time.sleep(0.2)

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Raise errors as ours: StoreUnavailable, NoRoom if the disk is full, InvalidInput for long names."""
        try:
            yield
        except PoolTimeout:
            raise StoreUnavailable(
                f"All {_CONNECTIONS} connections to {self.name} are in use, or it cannot be reached. Nothing was "
                "written; try again."
            ) from None
        except errors.DiskFull as error:
            raise NoRoom(f"The disk of {self.name} is full ({_said(error)}). Nothing was written.") from None
        except errors.ProgramLimitExceeded as error:
            raise InvalidInput(
                f"A name or an id is too long for {self.name} ({_said(error)}). Nothing was written. Shorten it to "
                "2,000 bytes."
            ) from None
        except errors.QueryCanceled as error:
            raise StoreUnavailable(
                f"{self.name} took too long ({_said(error)}). Nothing was written; try again."
            ) from None
        except errors.InsufficientPrivilege as error:
            raise StoreUnavailable(
                f"The user of {self.name} may not do that ({_said(error)}). `mcp-memory migrate` as the owner of the "
                "database gives the rights."
            ) from None
        except _GONE as error:
            raise StoreUnavailable(
                f"{self.name} cannot be used ({_said(error)}). Nothing was written. Check that the server runs and "
                "that MCP_MEMORY_STORE names it."
            ) from None


def _commit(con: Connection) -> str | None:
    """Commit; return the number of the transaction if the connection was lost and nobody said how it ended."""
    row = con.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
    try:
        con.execute("COMMIT")
    except _GONE:
        return row[0] if row else None
    return None


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def name_of(url: str) -> str:
    """Return a URL for messages: without its password and parameters."""
    known = conninfo_to_dict(url)
    return f"postgresql://{known.get('host', 'localhost')}:{known.get('port', 5432)}/{known.get('dbname', '')}"
