"""The folder of a home: its creation, its privacy, its identity file, and its database if the folder is read-only."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.paths import foreign_files, is_memory, is_ours
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import is_own, read_own
from mcp_memory.store.files import database_is_gone, is_there, write_whole

logger = logging.getLogger(__name__)

DATABASE = "memory.db"
IDENTITY = "identity.json"
_KEY = 32
_LARGEST_IDENTITY = 2**16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def why_read_only(home: Path) -> str | None:
    """Return why a home with a database cannot be written to; None if it can, or has no database."""
    database = home / DATABASE
    with suppress(OSError):
        if database.is_file():
            if not os.access(home, os.W_OK | os.X_OK):
                return f"the folder {home} cannot be written to"
            if not os.access(database, os.W_OK):
                return f"{database} cannot be written to"
    return None


def make(home: Path) -> None:
    """Create the missing parts of the home, private to its user.

    Raises OSError if it cannot be written, StoreUnavailable if its database has been removed.
    """
    if not _is_begun(home / DATABASE) and (gone := database_is_gone(home)):
        raise StoreUnavailable(gone)
    was_memory = is_memory(home)
    make_folder(home)
    if not os.access(home, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "permission denied")
    make_folder(home / "spaces")
    with suppress(FileExistsError):  # SQLite gives its other files the same mode
        open_private(home / DATABASE, "xb").close()
    keep_private(home, new=not was_memory)


def _is_begun(database: Path) -> bool:
    with suppress(FileNotFoundError):
        return database.stat().st_size > 0
    return False


def keep_private(home: Path, *, deep: bool = False, new: bool = False) -> int:
    """Remove the permissions of group and others, which earlier versions left in a home; return the number of changes.

    Only the home and its direct entries are changed, since nothing below can be reached then; `deep` changes the whole
    tree. A folder set up to be shared (set-group-id, sticky), a user's whole home folder and a folder with files of
    other programs keep their mode. In a `new` home only the folder itself is changed, because other files in it were
    not made by this program.
    """
    changed = 0
    for path, mode in exposed_paths(home, deep=deep):
        if new and path != home:
            continue
        with suppress(OSError):
            path.chmod(mode & ~_OTHERS)
            changed += 1
    return changed


def exposed_paths(home: Path, *, deep: bool = True) -> Iterator[tuple[Path, int]]:
    """Yield files and folders of a home that are open to other users and should not be, each with its mode."""
    if os.name == "nt":  # modes say nothing there
        return
    with suppress(OSError):
        if home.stat().st_mode & stat.S_ISGID:
            return
        ours = [path for path in home.iterdir() if is_ours(path.name)]
        below = (
            path
            for folder in ours
            if deep and folder.is_dir() and not folder.is_symlink()
            for path in folder.rglob("*")
        )
        for path in chain(_home_if_private(home), ours, below):
            with suppress(OSError):
                status = path.lstat()
                mode = stat.S_IMODE(status.st_mode)
                if not stat.S_ISLNK(status.st_mode) and status.st_uid == os.geteuid() and mode & _OTHERS:
                    yield path, mode


def _home_if_private(home: Path) -> Iterator[Path]:
    shared = home.stat().st_mode & stat.S_ISVTX
    whole = home.resolve() in (Path.home().resolve(), Path(home.anchor))
    if not (shared or whole or home.is_mount() or foreign_files(home)):
        yield home


def keep_identity(con: apsw.Connection, home: Path) -> None:
    """Write the home's uuid and the key of its digests to `identity.json`, if it differs from the database.

    A database that is rebuilt from the files can then recognise its own exports and forgotten content. If the database
    has lost the uuid or the key, both are restored from the file, or created anew if there is no readable file.
    """
    stored, kept = _stored_identity(con), identity(home)
    if stored is None:  # lost, or changed outside this program
        stored = kept or (os.urandom(16).hex(), os.urandom(_KEY))
        con.execute("INSERT OR REPLACE INTO home VALUES (1, ?, ?)", stored)
        logger.warning(
            "the database had lost the identity of this memory; it has %s",
            f"that of {IDENTITY} again" if kept else "a new identity: an import may restore forgotten rows",
        )
    if kept == stored:
        return
    file = home / IDENTITY
    wrong = _what_is_wrong(kept) if is_there(file) else None
    try:
        if file.is_dir() and not file.is_symlink():
            file.rmdir()  # only if it is empty
        content = json.dumps({"home": stored[0], "key": stored[1].hex()}).encode()
        write_whole(file, content + b"\n")
    except OSError as error:  # a full disk must not prevent reading
        logger.warning("%s %s and cannot be written: %s", file, wrong or "is missing", error.strerror or error)
    else:
        if wrong:
            logger.warning("%s %s; it was written again from the database", file, wrong)


def _stored_identity(con: apsw.Connection) -> tuple[str, bytes] | None:
    row: Any = con.execute("SELECT uuid, key FROM home").fetchone()
    stored = (str(row[0]), bytes(row[1])) if row and row[0] else None
    return stored if stored and len(stored[1]) == _KEY else None


def identity(home: Path) -> tuple[str, bytes] | None:
    """Return the uuid and key that `keep_identity` wrote; None if they cannot be read."""
    try:
        fields = json.loads(read_own(home / IDENTITY, _LARGEST_IDENTITY))
        stored = str(fields["home"]), bytes.fromhex(fields["key"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return stored if stored[0] and len(stored[1]) == _KEY else None


def identity_problem(home: Path) -> str | None:
    """Return why the identity file of a home is wrong; None if it matches the database, or if either is missing.

    The next writer creates a missing identity file.
    """
    if not is_there(home / IDENTITY) or not is_own(home / DATABASE):
        return None
    kept = identity(home)
    try:
        with closing(open_to_read(home / DATABASE)) as con:
            stored = _stored_identity(con)
    except apsw.Error:  # which is a problem of the database
        stored = kept
    return None if kept is not None and kept == stored else f"{IDENTITY} {_what_is_wrong(kept)}"


def _what_is_wrong(kept: tuple[str, bytes] | None) -> str:
    return "is damaged" if kept is None else "is of another memory"


def open_to_read(database: Path) -> apsw.Connection:
    """Open a database in a folder that cannot be written to. Raises apsw.Error if it cannot be read.

    SQLite needs an index file to read a WAL, and cannot create it here. If that file is missing and there is no WAL,
    the database is complete, so it is opened as immutable. If there is a WAL, left by a process that was killed, the
    database is opened in exclusive locking mode, in which SQLite keeps the index in memory.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    address = database.absolute().as_uri()
    try:
        return _require_readable(apsw.Connection(f"{address}?mode=ro", flags=flags))
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        wal = database.with_name(f"{database.name}-wal")
        if not wal.exists() or wal.stat().st_size == 0:
            return _require_readable(apsw.Connection(f"{address}?immutable=1", flags=flags))
        con = apsw.Connection(f"{address}?mode=ro&vfs={'win32' if os.name == 'nt' else 'unix'}-none", flags=flags)
        con.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        return _require_readable(con)


def _require_readable(con: apsw.Connection) -> apsw.Connection:
    try:
        con.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        con.close()
        raise
    return con
