"""Registry of the processes that have a home open: a locked file for each. Other locks of this program are here too.

The file is `<home>/run/<pid>-<number>.json` with purpose, space and start time. The system releases its lock however
the process ends, so an unlocked file belongs to a killed process, and the next reader deletes it. `exclusive` gives a
process exclusive access: no other process may have the home open, and none can open it until the access ends.

On a read-only home, and on a file system without locks, processes are not registered. Processes of another machine are
visible if the file system shares its locks.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from mcp_memory import __version__
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.private_files import make_folder, opener
from mcp_memory.core.regular_files import OpenedFolder, own_opener, remove_own, require_no_links
from mcp_memory.core.text import one_line

_WAITS_S = 2.0
_STEP_S = 0.02
_LOCK_AT = 2**30  # past the end: Windows forbids reading locked bytes
_MAX_CLIENTS = 8
_NAME = 60

_ours = set[tuple[int, Path]]()
"""Entries of this process, and homes it has locked exclusively; a lock does not reveal whether this process has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeProcess:
    """A process that has the home open. All fields but `pid` come from its file, and are empty if it is unreadable."""

    pid: int
    what: str = ""
    """`daemon`, `serve stdio`, `serve http`, `status` and other commands, or `library`."""
    space: str = ""
    clients: tuple[str, ...] = ()
    """Names of the MCP clients that have connected, the latest last; at most 8."""
    since: datetime | None = None
    version: str = ""

    def __str__(self) -> str:
        clients = f" for {', '.join(self.clients)}" if self.clients else ""
        return f"{self.what or 'unknown'}{clients} (process {self.pid})"


def all_processes(home: Path) -> list[HomeProcess]:
    """Delete the entries of ended processes, and return all that have the home open, by start time."""
    processes = [_live_process(path) for path in (home / "run").glob("*-*.json")]
    first = datetime.min.replace(tzinfo=UTC)
    return sorted((process for process in processes if process), key=lambda entry: (entry.since or first, entry.pid))


def other_processes(home: Path) -> list[HomeProcess]:
    """Delete the entries of ended processes, and return the other processes that have the home open, by id."""
    ours = {path for pid, path in _ours if pid == os.getpid()}
    processes = [_live_process(path) for path in (home.resolve() / "run").glob("*-*.json") if path not in ours]
    return sorted((process for process in processes if process), key=lambda entry: entry.pid)


class ProcessNote:
    """This process's entry in the registry of a home, from `register`. `close()` may be called twice."""

    def __init__(self, path: Path, handle: int, fields: dict[str, Any]) -> None:
        self._path, self._handle, self._fields = path, handle, fields
        self._open = True
        self._lock = Lock()  # a closed handle may already be another file's
        _write(handle, fields)

    def add_client(self, client: str) -> None:
        """Add the name of a client. Never raises, because the name is only for display."""
        name = one_line(client, _NAME)
        with self._lock, suppress(OSError):
            before: list[str] = self._fields.get("clients", [])
            if self._open and name and name not in before:
                self._fields["clients"] = [*before, name][-_MAX_CLIENTS:]
                _write(self._handle, self._fields)

    def close(self) -> None:
        """Remove the entry."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            _ours.discard((os.getpid(), self._path))
            if sys.platform == "win32":  # open files cannot be deleted
                os.close(self._handle)
            with suppress(OSError):
                remove_own(self._path)
            if sys.platform != "win32":
                os.close(self._handle)


def register(home: Path, *, what: str, space: str = "") -> ProcessNote | None:
    """Register this process with the home, which is created if needed; None if it cannot be registered.

    Raises StoreUnavailable, naming the holder, while another process has exclusive access, and for a link in the home.
    """
    home = home.resolve()
    require_no_links(home)
    try:
        folder = _run_folder(home)
        gate = opener(str(folder / "gate"), os.O_RDWR | os.O_CREAT)
    except OSError:
        return None
    try:
        # Locked while the entry is made: `exclusive` looks for entries while it holds the gate.
        if (os.getpid(), home) not in _ours and not _wait_for(lambda: try_lock(gate, shared=True)):
            raise StoreUnavailable(_locked_message(home, _read(gate)))
        return _write_note(folder, {"what": what, "space": space})
    except OSError:
        return None
    finally:
        os.close(gate)


@contextmanager
def exclusive(home: Path, what: str) -> Generator[None]:
    """Get exclusive access to the home; this process may still open it. `what` is shown to processes that are refused.

    Raises StoreUnavailable, naming the holders, if other processes have the home open, and if it is not writable or
    a folder of it is a symbolic link.
    """
    home = home.resolve()
    require_no_links(home)
    try:
        gate = opener(str(_run_folder(home) / "gate"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise StoreUnavailable(_unusable_message(home, error)) from None
    try:
        try:
            is_locked = _wait_for(lambda: try_lock(gate, shared=False))
        except OSError as error:
            raise StoreUnavailable(_unusable_message(home, error)) from None
        if not is_locked:
            raise StoreUnavailable(_locked_message(home, _read(gate)))
        if others := other_processes(home):
            raise StoreUnavailable(
                f"The home {home} is in use by {', '.join(map(str, others))}. Quit the clients and programs that use "
                f"it, and try again: {what} needs exclusive access."
            )
        _write(gate, {"pid": os.getpid(), "what": what})
        _ours.add((os.getpid(), home))
        try:
            yield
        finally:
            _ours.discard((os.getpid(), home))
            os.ftruncate(gate, 0)
    finally:
        os.close(gate)


@contextmanager
def sole_holder(home: Path, name: str) -> Generator[bool]:
    """Yield whether no other caller, in this process or another, is inside `sole_holder` for this home and name.

    Always True if nothing can be locked, as in a home without the folder `run`. No folder is created.
    """
    try:
        handle = opener(str(home / "run" / f"{name}.lock"), os.O_RDWR | os.O_CREAT)
    except OSError:
        yield True
        return
    try:
        free = True
        with suppress(OSError):
            free = try_lock(handle, shared=False)
        yield free
    finally:
        os.close(handle)


@contextmanager
def waiting_lock(home: Path, name: str, *, opened: OpenedFolder | None) -> Generator[None]:
    """Hold the lock of this name on a home, which `opened` is; wait until no other caller holds it.

    There is nothing to wait for on a file system without locks, in a home whose folder `run` is missing, and in one
    that was deleted or replaced since it was opened: nothing is created there.
    """
    try:
        handle = opener(str(home / "run" / f"{name}.lock"), os.O_RDWR | os.O_CREAT, within=opened)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            while not try_lock(handle, shared=False):
                time.sleep(_STEP_S)
        yield
    finally:
        os.close(handle)


def _locked_message(home: Path, by: HomeProcess | None) -> str:
    return f"{by or 'Another program'} has exclusive access to the home {home}. Try again when it has ended."


def _unusable_message(home: Path, error: OSError) -> str:
    return (
        f"The home {home} cannot be locked exclusively ({error.strerror or error}). It must be a folder that you can "
        "write to, on a file system with locks."
    )


def _run_folder(home: Path) -> Path:
    """Create the folder of the registry, and the home, and return it. Raises OSError if that fails."""
    folder = home / "run"
    make_folder(folder)
    return folder


def _write_note(folder: Path, about: dict[str, str]) -> ProcessNote:
    while True:
        # No name is reused: a reader that deletes an entry may have opened it before its process ended.
        path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        handle = opener(str(path), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            # Until it is locked it looks like the entry of a killed process, so a reader may delete it now.
            if try_lock(handle, shared=False) and _is_at(path, handle):
                now = datetime.now(UTC).isoformat(timespec="seconds")
                note = ProcessNote(path, handle, {"pid": os.getpid(), **about, "since": now, "version": __version__})
                _ours.add((os.getpid(), path))
                return note
        except BaseException:
            os.close(handle)
            with suppress(OSError):
                remove_own(path)
            raise
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _live_process(path: Path) -> HomeProcess | None:
    """Return the process that locks a file; if it has ended, delete the file and return None."""
    pid = int(number) if (number := path.name.partition("-")[0]).isdigit() else 0
    try:
        handle = own_opener(str(path), os.O_RDONLY)
    except PermissionError:  # the file of another user
        return HomeProcess(pid=pid)
    except OSError:  # the process has ended, or this is not a regular file
        return None
    try:
        if not try_lock(handle, shared=True):
            return _read(handle) or HomeProcess(pid=pid)
        if sys.platform != "win32":
            with suppress(OSError):
                remove_own(path)
    except OSError:  # a file system without locks has no live entries
        return None
    finally:
        os.close(handle)
    if sys.platform == "win32":
        with suppress(OSError):
            remove_own(path)
    return None


def _read(handle: int) -> HomeProcess | None:
    """Return the process named in a file; None if it is empty or being written."""
    os.lseek(handle, 0, os.SEEK_SET)
    try:
        fields: Any = json.loads(os.read(handle, 8192).partition(b"\n")[0])
        return HomeProcess(
            pid=int(fields["pid"]),
            what=str(fields["what"]),
            space=str(fields.get("space", "")),
            since=datetime.fromisoformat(fields["since"]).astimezone(UTC) if "since" in fields else None,
            version=str(fields.get("version", "")),
            clients=tuple(map(str, fields.get("clients", ()))),
        )
    except (ValueError, LookupError, TypeError, AttributeError, OSError, OverflowError, RecursionError):
        return None


def _write(handle: int, fields: dict[str, Any]) -> None:
    line = json.dumps(fields).encode() + b"\n"
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, line)
    os.ftruncate(handle, len(line))


def _wait_for(is_done: Callable[[], bool]) -> bool:
    until = time.monotonic() + _WAITS_S
    while not is_done():
        if time.monotonic() > until:
            return False
        time.sleep(_STEP_S)
    return True


def try_lock(handle: int, *, shared: bool) -> bool:
    """Lock an open file without waiting; return whether it was free. Raises OSError if the file system has no locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _LOCK_AT, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
