"""Opens regular files only, refuses links inside a home, and detects that an open folder was replaced.

A path may lead to an endless device or a pipe without a writer; opening these raises OSError at once. The type is
checked on the open descriptor, so a link counts as its target.

In a home, symbolic links are refused, for files and for the folders above them, because a link must not bring other
files of the machine into a backup or an export, and nothing outside the home may be written or deleted through a link.
The home itself may be a link. Standard library only, because hooks import this module.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.paths import is_memory

_FOLDERS = ("backups", "hooks", "logs", "run", "spaces", "unsettled")
_FOLDERS_OF_SPACE = ("conversations", "mmds", "refs", "scenes")
_DATABASE = ("memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal")
_MAX_BYTES = 2**32
_LATEST_MS = 100_000_000_000_000  # in the year 5138


def opener(path: str, flags: int) -> int:
    """Open a regular file, as the `opener` of `open` and `io.FileIO`. Raises OSError (ESPIPE) for anything else."""
    return _open_regular_handle(path, flags)


def _open_regular_handle(path: str, flags: int, *, dir_fd: int | None = None) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600, dir_fd=dir_fd)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # for a folder, the caller raises IsADirectoryError
        return handle
    os.close(handle)
    raise OSError(errno.ESPIPE, "it is not a regular file", path)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading. Raises OSError, also for an impossible name."""
    return _open(path, opener)


def read_regular(path: Path, most: int = _MAX_BYTES) -> bytes:
    """Return the bytes of a regular file. Raises OSError, also (EFBIG) if it has more than `most`."""
    with open_regular(path) as file:
        return _read(file, path, most)


# --- files of a home --------------------------------------------------------------------------------
def own_opener(path: str, flags: int) -> int:
    """Open a regular file of a home, as the `opener` of `open`. Raises OSError (ELOOP) for a link."""
    require_own(Path(path))
    if not hasattr(os, "O_NOFOLLOW") and Path(path).is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link", path)
    return opener(path, flags | getattr(os, "O_NOFOLLOW", 0))


def open_own(path: Path) -> io.BufferedReader:
    """Open a regular file of a home for reading. Raises OSError, also (ELOOP) for a symbolic link."""
    return _open(path, own_opener)


def read_own(path: Path, most: int = _MAX_BYTES) -> bytes:
    """Return the bytes of a regular file of a home. Raises OSError like `open_own` and `read_regular`."""
    with open_own(path) as file:
        return _read(file, path, most)


def is_own(path: Path) -> bool:
    """Return whether the path is a regular file, and not a symbolic link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def remove_own(path: Path) -> None:
    """Delete a file of a home, or a link itself, if it exists. Raises OSError like `require_own`."""
    require_own(path)
    path.unlink(missing_ok=True)


def rename_own(path: Path, to: Path) -> None:
    """Rename a file or folder of a home, or a link itself, replacing a file `to`. Raises OSError like `require_own`."""
    require_own(path)
    require_own(to)
    path.replace(to)


def require_own(path: Path) -> None:
    """Raise OSError (ELOOP) if the path is in a home and a folder between the two is a symbolic link.

    Paths outside of any home pass. Call this before a file is written, renamed or deleted.
    """
    linked = False
    for folder in path.parents:
        linked = linked or _is_link(folder)
        if linked and folder.name in _FOLDERS and is_memory(folder.parent):
            raise OSError(errno.ELOOP, "its folder is a symbolic link", str(path))


def require_no_links(home: Path) -> None:
    """Check the database and the folders of a home before it is used. Raises StoreUnavailable for a symbolic link.

    SQLite, unlike this module, follows links: writes and backups would reach a file elsewhere.
    """
    for what, paths in (("database", (home / name for name in _DATABASE)), ("folders", _folders(home))):
        for path in filter(_is_link, paths):
            raise StoreUnavailable(
                f"{path} is a symbolic link to {os.path.realpath(path)}, and the {what} of a home must not be reached "
                "through links: files would be written and deleted there. Remove the link; move what it leads to into "
                "its place if it belongs to this memory."
            )


def _folders(home: Path) -> Iterator[Path]:
    yield from (home / name for name in _FOLDERS)
    try:
        spaces = sorted((home / "spaces").iterdir())
    except OSError:
        return
    for space in spaces:
        yield space
        yield from (space / name for name in _FOLDERS_OF_SPACE)


def _is_link(path: Path) -> bool:
    """Return whether the path is a symbolic link or, on Windows, a junction."""
    is_junction: Callable[[Path], bool] | None = getattr(os.path, "isjunction", None)  # from Python 3.12 on
    return os.path.islink(path) or (is_junction is not None and is_junction(path))  # noqa: PTH114 faster than Path


def _open(path: Path, opener: Callable[[str, int], int]) -> io.BufferedReader:
    try:
        return open(path, "rb", opener=opener)
    except ValueError as error:  # the path contains NUL
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from None


def _read(file: io.BufferedReader, path: Path, most: int) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 2**20} MiB", str(path))
    return data


def modified_ms(status: os.stat_result) -> int:
    """Return the modification time in ms since 1970, clamped, because some file systems keep impossible times."""
    return min(max(status.st_mtime_ns // 1_000_000, 0), _LATEST_MS)


class OpenedFolder:
    """Detects that a folder was deleted or replaced while it is open. `close()` may be called twice.

    Open files remain usable after their names are removed, so a long-running process checks device and inode before
    each use. The inode of a removed file can be reused unless the file is open, so this object keeps the folder open,
    and its user must keep the files open. The folder may be reached through a link, its files may not.
    """

    def __init__(self, folder: Path, *files: Path) -> None:
        self._folder, self._files = str(folder), [str(path) for path in files]
        self._opened = self._inodes()
        self._handle: int | None = None
        if os.name != "nt":
            with suppress(OSError):  # a folder may be searchable but not readable
                self._handle = os.open(folder, os.O_RDONLY)

    def is_current(self) -> bool:
        """Return whether the paths still refer to the opened folder and files. Costs one system call per path."""
        return self._opened is not None and self._inodes() == self._opened

    def opener(self, path: str, flags: int) -> int:
        """Open a regular file below this folder as `own_opener` does, but never one of a folder that replaced it.

        Raises FileNotFoundError if the folder was deleted. On Windows, an open folder cannot be replaced.
        """
        if self._handle is None:
            return own_opener(path, flags)
        require_own(Path(path))
        name = os.path.relpath(path, self._folder)
        return _open_regular_handle(name, flags | os.O_NOFOLLOW, dir_fd=self._handle)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _inodes(self) -> list[tuple[int, int]] | None:
        try:
            stats = [os.stat(self._folder), *map(os.lstat, self._files)]  # noqa: PTH116 it runs before each use
            return [(entry.st_dev, entry.st_ino) for entry in stats]
        except OSError:
            return None
