"""Registry of the processes that have a home open: a file and a lock on it for each.

The file is `<home>/run/<pid>-<number>.json`: purpose, space, start time. The system releases its lock however the
process ends, so a file without a lock belongs to a killed process, and the next reader deletes it. A process that
needs the home to itself uses `exclusive`: it is then the only one, and others are refused until it ends.

On a home that cannot be written to, and on a file system without locks, processes are not registered. Processes of
another machine are seen where the file system shares its locks.
"""

from __future__ import annotations

import errno
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
from mcp_memory.core.regular_files import own_opener, remove_own, require_no_links
from mcp_memory.core.text import one_line

_WAITS_S = 2.0
_STEP_S = 0.02
_LOCK_AT = 2**30  # Windows forbids to read what is locked: nothing stands there
_MOST_CLIENTS = 8
_NAME = 60

_ours = set[tuple[int, Path]]()
"""Notes of this process, and homes that it has to itself: a lock does not tell its own holder from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeProcess:
    """One that holds a home. All but `pid` is as it said itself, and may be empty where it could not be read."""

    pid: int
    what: str = ""
    """`serve stdio`, `serve http`, `hooks`, `status` and other commands, or `library`."""
    space: str = ""
    clients: tuple[str, ...] = ()
    """Names of the MCP clients that it has met, the latest last; at most 8."""
    since: datetime | None = None
    version: str = ""

    def __str__(self) -> str:
        clients = f" for {', '.join(self.clients)}" if self.clients else ""
        return f"{self.what or 'unknown'}{clients} (process {self.pid})"


def all_processes(home: Path) -> list[HomeProcess]:
    """Return all that hold the home now, this process included, by the time they came."""
    processes = [_live_process(path) for path in (home / "run").glob("*-*.json")]
    first = datetime.min.replace(tzinfo=UTC)
    return sorted((process for process in processes if process), key=lambda one: (one.since or first, one.pid))


def other_processes(home: Path) -> list[HomeProcess]:
    """Return the other processes that have the home open."""
    ours = {path for pid, path in _ours if pid == os.getpid()}
    processes = [_live_process(path) for path in (home.resolve() / "run").glob("*-*.json") if path not in ours]
    return sorted((process for process in processes if process), key=lambda one: one.pid)


class ProcessNote:
    """This process's own note on a home, from `register`. `close()` may be called twice."""

    def __init__(self, path: Path, handle: int, fields: dict[str, Any]) -> None:
        self._path, self._handle, self._fields = path, handle, fields
        self._open = True
        self._lock = Lock()  # a handle that is closed may be another file's by then
        _write(handle, fields)

    def met(self, client: str) -> None:
        """Add the name of a client. Never raises: it is only for people to see."""
        name = one_line(client, _NAME)
        with self._lock, suppress(OSError):
            before: list[str] = self._fields.get("clients", [])
            if self._open and name and name not in before:
                self._fields["clients"] = [*before, name][-_MOST_CLIENTS:]
                _write(self._handle, self._fields)

    def close(self) -> None:
        """Take the note away."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            _ours.discard((os.getpid(), self._path))
            if sys.platform == "win32":  # there no open file can be deleted
                os.close(self._handle)
            with suppress(OSError):
                remove_own(self._path)
            if sys.platform != "win32":
                os.close(self._handle)


def register(home: Path, *, what: str, space: str = "") -> ProcessNote | None:
    """Note that this process holds the home; None where nothing can be noted. The home is made where it is missing.

    Raises StoreUnavailable, with who it is, while another has the home to itself; also if a folder of it is a link.
    """
    home = home.resolve()
    require_no_links(home)
    try:
        folder = _run_folder(home)
        gate = opener(str(folder / "gate"), os.O_RDWR | os.O_CREAT)
    except OSError:
        return None
    try:
        # Held while the note is made: who has the home alone looks for notes with the gate shut.
        if (os.getpid(), home) not in _ours and not _wait(lambda: try_lock(gate, shared=True)):
            raise StoreUnavailable(_locked_message(home, _read(gate)))
        return _write_note(folder, {"what": what, "space": space})
    except OSError:
        return None
    finally:
        os.close(gate)


@contextmanager
def exclusive(home: Path, what: str) -> Generator[None]:
    """Have the home to oneself; this process may still open it. `what` is said to those who would come in.

    Raises StoreUnavailable, with who they are, where others hold it, where it cannot be written to, and where a folder
    of it is a symbolic link.
    """
    home = home.resolve()
    require_no_links(home)
    try:
        gate = opener(str(_run_folder(home) / "gate"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise StoreUnavailable(_unusable_message(home, error)) from None
    try:
        try:
            shut = _wait(lambda: try_lock(gate, shared=False))
        except OSError as error:
            raise StoreUnavailable(_unusable_message(home, error)) from None
        if not shut:
            raise StoreUnavailable(_locked_message(home, _read(gate)))
        if others := other_processes(home):
            raise StoreUnavailable(
                f"The home {home} is held by {', '.join(map(str, others))}. End {'it' if len(others) == 1 else 'them'} "
                f"and try again: {what} must have it to itself."
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
    """Yield whether nobody else on this home, in this process or another, is inside a `sole` of that name.

    Where nothing can be locked, nobody is seen. The home is never created.
    """
    try:
        handle = opener(str(_run_folder(home, create=False) / f"{name}.lock"), os.O_RDWR | os.O_CREAT)
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


def _locked_message(home: Path, by: HomeProcess | None) -> str:
    return f"{by or 'Another program'} has the home {home} to itself. Try again when it has ended."


def _unusable_message(home: Path, error: OSError) -> str:
    return (
        f"The home {home} cannot be had alone ({error.strerror or error}). Make it a folder that you can write to, "
        "on a file system with locks."
    )


def _run_folder(home: Path, *, create: bool = True) -> Path:
    """Return the folder of the notes, which is made; the home too, if `create`. Raises OSError."""
    folder = home / "run"
    if not create and not home.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(home))
    make_folder(folder)
    return folder


def _write_note(folder: Path, about: dict[str, str]) -> ProcessNote:
    while True:
        # No name is ever used again: who clears a note away may have opened it before its process ended.
        path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        handle = opener(str(path), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            # Until it is locked it looks like a note of a killed one, so it may be cleared away just now.
            if try_lock(handle, shared=False) and _is_at(path, handle):
                now = datetime.now(UTC).isoformat(timespec="seconds")
                made = ProcessNote(path, handle, {"pid": os.getpid(), **about, "since": now, "version": __version__})
                _ours.add((os.getpid(), path))
                return made
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
    """Return the process that holds a file's lock; where it has ended, delete the file and return None."""
    pid = int(number) if (number := path.name.partition("-")[0]).isdigit() else 0
    try:
        handle = own_opener(str(path), os.O_RDONLY)
    except PermissionError:  # of another user
        return HomeProcess(pid=pid)
    except OSError:  # the process has ended, or this is not a regular file
        return None
    try:
        if not try_lock(handle, shared=True):
            return _read(handle) or HomeProcess(pid=pid)
        if sys.platform != "win32":
            with suppress(OSError):
                remove_own(path)
    except OSError:  # a file system without locks: nobody is noted there
        return None
    finally:
        os.close(handle)
    if sys.platform == "win32":
        with suppress(OSError):
            remove_own(path)
    return None


def _read(handle: int) -> HomeProcess | None:
    """Return the process named in a file; None where it is empty or being written."""
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


def _wait(is_done: Callable[[], bool]) -> bool:
    until = time.monotonic() + _WAITS_S
    while not is_done():
        if time.monotonic() > until:
            return False
        time.sleep(_STEP_S)
    return True


def try_lock(handle: int, *, shared: bool) -> bool:
    """Take the lock of a file without waiting, if it is free. Raises OSError where there are no locks."""
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
