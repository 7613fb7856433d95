"""One SQLite file: a writing connection, a pool of read-only connections, and errors that name the next step.

`write` and `read` take a plain function of a connection, which must not return the connection or a cursor. Writes are
`BEGIN IMMEDIATE` transactions, one at a time per process, queued by SQLite between processes; the readable copies of
the changed rows are written after the commit (`copies`). Reads see one snapshot and never wait for a writer; they wait
a limited time for a connection of the pool. Any thread may call, but not from inside `work` (see `nesting`);
connections are not bound to threads. A home that cannot be written to is opened read-only.

Open connections outlive the files that they opened. So each call first checks that the home and the database are still
the opened files, and raises HomeGone if not, so that deleted content is neither shown nor written again.

Errors of SQLite and the file system become errors of this package, whose messages name the next step.
"""

from __future__ import annotations

import errno
import logging
import queue
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from mcp_memory.core.errors import DamagedRow, HomeGone, NoRoom, NotFound, StoreUnavailable
from mcp_memory.core.private_files import make_folder
from mcp_memory.core.process_registry import waiting_lock
from mcp_memory.core.regular_files import OpenedFolder, remove_own, require_no_links
from mcp_memory.store.nesting import NestingGuard
from mcp_memory.store.snapshots import Snapshots
from mcp_memory.store.sql.quota_rows import quota_error
from mcp_memory.store.sqlite import copies, unreadable
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite.migrations import migrate, must_be_current
from mcp_memory.store.sqlite.transaction import CopyChanges, WritingConnection

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 4
_RETRIES = 8


class Database:
    """An open database. `close()` may be called twice."""

    def __init__(self, home: Path, *, pool_wait: float = 30.0) -> None:
        """Open `memory.db` in `home`, or create it, and upgrade its schema.

        Raises StoreUnavailable if that fails or if the home is reached by a link, and NewerHome if the schema is newer.

        A read waits up to `pool_wait` seconds for a connection if all are in use.
        """
        require_no_links(home)
        self.home = home
        self.path = home / homes.DATABASE
        self.read_only = homes.why_read_only(home)
        """Why the home cannot be written to; None if it can."""
        self._write_lock = threading.Lock()
        self._nesting = NestingGuard()
        self.snapshots = Snapshots(self._reading)
        self._pool_wait = pool_wait
        self._readers: queue.LifoQueue[apsw.Connection | None] = queue.LifoQueue()
        for _ in range(_READERS):
            self._readers.put(None)  # opened when first needed
        self._closed = False
        with translate_errors(self.home):
            self._writer = None if self.read_only else self._open_writer()
            # A read-only home has no open connections between two reads, so each read opens the current files.
            self._opened = None if self.read_only else OpenedFolder(home, self.path)
            if self._opened is not None:
                with suppress(OSError):
                    make_folder(home / "run", root=home)  # of locks
        if self.read_only:
            self.read(must_be_current)
        elif self.read(copies.outdated_copies, home):
            try:
                self.write(copies.catch_up, home)
            except StoreUnavailable as error:  # a full disk must not prevent reading
                logger.warning("copies that are behind cannot be written yet: %s", error)

    def write(self, work: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a connection in one transaction: committed when this returns, rolled back if it raises."""
        with translate_errors(self.home), self._nesting.call(), self._write_lock:
            self._must_be_open()
            return self._in_transaction(self._free_writer(), work, *args, **kwargs)

    def _in_transaction(
        self,
        con: WritingConnection,
        work: Callable[Concatenate[apsw.Connection, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        con.copy_changes = changes = CopyChanges()
        is_committed = False
        con.execute("BEGIN IMMEDIATE")
        try:
            self._must_be_same()
            result = _read(con, work, *args, **kwargs)
            with copies.commit_with_copies(con, self.home, self._opened, changes):
                self._must_be_same()
                con.execute("COMMIT")
                is_committed = True
        except BaseException:
            if con.in_transaction:
                con.execute("ROLLBACK")
            for path in () if is_committed else changes.results:
                remove_own(path)
            raise
        return result

    def outside(self, work: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on the writing connection outside of a transaction, as VACUUM requires."""
        with translate_errors(self.home), self._nesting.call(), self._write_lock:
            self._must_be_open()
            return work(self._free_writer(), *args, **kwargs)

    def read(self, work: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a connection that cannot write; all its queries see one snapshot.

        Raises StoreUnavailable if all connections stay in use.
        """
        snapshot = self.snapshots.current
        with translate_errors(self.home):
            if snapshot is None:
                with self._reading() as con:
                    return _read(con, work, *args, **kwargs)
            try:
                return _read(snapshot.connection(), work, *args, **kwargs)
            except NotFound:
                raise
            except BaseException as error:
                snapshot.end(error)
                raise

    def in_snapshot(self, work: Callable[[], T]) -> T:
        """Call `work`, whose reads all see one snapshot."""
        if self.snapshots.current is not None:
            return work()
        with translate_errors(self.home):
            return self.snapshots.run(work)

    @contextmanager
    def _reading(self) -> Generator[apsw.Connection]:
        """Lend a connection that cannot write, in a transaction."""
        with self._nesting.call():
            self._must_be_open()
            con = self._free_reader()
            try:
                if con is None:
                    con = self._open_reader()
                done = False
                con.execute("BEGIN")
                try:
                    yield con
                    done = True
                finally:
                    if con.in_transaction:
                        con.execute("ROLLBACK")
                    # A connection without locks misses later writes of others. And the cursor of a failed query stays
                    # open, with its snapshot, as long as its error is referenced: later reads would see old rows.
                    if self.read_only or not done:
                        con.close()
                        con = None
            finally:
                self._readers.put(con)

    def read_with_copies(
        self, work: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` as `read` does, under the lock of copies, so that the copies match the snapshot."""
        with waiting_lock(self.home, copies.LOCK, opened=self._opened):
            return self.read(work, *args, **kwargs)

    def close(self) -> None:
        """Close every connection, after waiting for running readers."""
        with self._nesting.call(), self._write_lock:
            if self._closed:
                return
            self._closed = True
            for _ in range(_READERS):
                con = self._readers.get()
                if con is not None:
                    con.close()
            for _ in range(_READERS):
                self._readers.put(None)
            if self._writer is not None:
                self._writer.close()
            if self._opened is not None:
                self._opened.close()

    def _must_be_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("The store is closed. Open it again with open_memory().")
        self._must_be_same()

    def _must_be_same(self) -> None:
        if self._opened is not None and not self._opened.is_current():
            raise HomeGone(self.home)

    def _free_reader(self) -> apsw.Connection | None:
        """Take a connection from the pool; None if it is not open yet. Raises StoreUnavailable if all stay in use."""
        try:
            return self._readers.get(timeout=self._pool_wait)
        except queue.Empty:
            raise StoreUnavailable(
                f"All {_READERS} reading connections to {self.path} have been in use for {self._pool_wait:g} s. "
                "Nothing was read; try again when exports, backups and long searches have ended."
            ) from None

    def _free_writer(self) -> WritingConnection:
        """Return the writing connection, replaced by a new connection if it has an open cursor.

        The cursor of a failed query keeps its snapshot while its error is referenced. If another process has written
        since, SQLite refuses to write from that snapshot. Raises StoreUnavailable if the home is read-only.
        """
        if self._writer is None:
            raise StoreUnavailable(self._only_readable())
        if self._writer.txn_state() != apsw.SQLITE_TXN_NONE:
            old_writer, self._writer = self._writer, self._open_writer()
            old_writer.close()
        return self._writer

    def _open_writer(self) -> WritingConnection:
        homes.make(self.home)
        con = WritingConnection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        _equip(con)
        try:
            _set_wal(con)
            # A commit is on the disk when the call returns, so a power cut loses nothing acknowledged.
            con.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
            migrate(con)
            homes.keep_identity(con, self.home)
        except BaseException:
            con.close()
            raise
        return con

    def _open_reader(self) -> apsw.Connection:
        if self.read_only:
            return _equip(homes.open_to_read(self.path))
        return _equip(apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY))

    def _only_readable(self) -> str:
        return (
            f"This memory can only be read: {self.read_only}. Nothing was written. Give yourself the right to write "
            "there, or copy the home to a folder of yours and name that with MCP_MEMORY_HOME."
        )


def _read(
    con: apsw.Connection, work: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run `work`. If it fails and a row has an unreadable value, raise DamagedRow instead of the failure."""
    try:
        return work(con, *args, **kwargs)
    except (*unreadable.WRONG, apsw.SQLError):
        if damaged := next(unreadable.unreadable_values(con), None):
            raise DamagedRow(f"{damaged} {unreadable.NEXT_STEP}") from None
        raise


def _equip(con: apsw.Connection) -> apsw.Connection:
    try:
        con.set_busy_timeout(BUSY_MS)
        con.execute("PRAGMA cache_size = -2000; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = ON")
    except BaseException:
        con.close()
        raise
    return con


def _set_wal(con: apsw.Connection) -> None:
    """Switch to WAL, with retries, because SQLite does not wait here if another process opens the database."""
    for attempt in range(_RETRIES):
        try:
            con.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if attempt == _RETRIES - 1:
                raise
            threading.Event().wait(0.05 * 2**attempt)


BUSY_MS = 30_000
_NOT_TAKEN = {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_SHMSIZE}
"""Errors for an exceeded quota or file size, which SQLite does not report as a full disk."""


@contextmanager
def translate_errors(home: Path, *, so: str = "Nothing was written") -> Generator[None]:
    """Raise errors of SQLite and the file system as StoreUnavailable, or as NoRoom if the disk or a quota is full.

    `so` is the sentence of the message that states the outcome.
    """
    path = home / homes.DATABASE
    try:
        yield
    except apsw.BusyError:
        raise StoreUnavailable(
            f"{path} has been locked by another program for {BUSY_MS // 1000} s. {so}; try again."
        ) from None
    except apsw.ConstraintError as error:
        if (used_up := quota_error(str(error))) is None:
            raise  # a bug of ours
        raise used_up from None
    except (apsw.FullError, apsw.NoMemError):
        raise NoRoom(_no_room(home, "the disk is full", so)) from None
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreUnavailable(
            f"{path} is damaged ({error}). `mcp-memory doctor --repair` rebuilds it, and keeps this file."
        ) from None
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) in _NOT_TAKEN:
            raise NoRoom(_no_room(home, "the disk or a quota takes no more", so)) from None
        raise StoreUnavailable(_not_usable(home, str(error), so)) from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.AuthError, apsw.PermissionsError) as error:
        raise StoreUnavailable(_not_usable(home, str(error), so)) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise NoRoom(_no_room(home, error.strerror or str(error), so)) from None
        raise StoreUnavailable(_not_usable(home, error.strerror or str(error), so)) from None


def _not_usable(home: Path, why: str, so: str) -> str:
    return (
        f"The home {home} cannot be used ({why}). {so}. Make it a folder you can write to, or choose another with "
        "MCP_MEMORY_HOME."
    )


def _no_room(home: Path, why: str, so: str) -> str:
    return f"No room to write in {home} ({why}). {so}; free some disk space and try again."
