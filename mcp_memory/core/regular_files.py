"""Opens regular files only.

A name may lead to a device that never ends, or to a pipe without a writer. Opening either raises OSError at once, as
a missing file does. The type is checked on the open descriptor, so links count as their targets.

Of the files of a home, symbolic links are refused (`open_own`): a link planted there must not bring other files of the
machine into a backup or an export. Standard library only, because hooks import this module.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

_MOST = 2**32
_LATEST_MS = 100_000_000_000_000  # in the year 5138


def opener(path: str, flags: int) -> int:
    """Open a regular file, as the `opener` of `open` and `io.FileIO`. Raises OSError (ESPIPE) for anything else."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # of a folder, the caller raises IsADirectoryError
        return handle
    os.close(handle)
    raise OSError(errno.ESPIPE, "it is no regular file", path)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading. Raises OSError, also for a name that no file can have."""
    return _open(path, opener)


def read_regular(path: Path, most: int = _MOST) -> bytes:
    """Return the bytes of a regular file. Raises OSError, also (EFBIG) if it has more than `most`."""
    with open_regular(path) as file:
        return _read(file, path, most)


# --- files of a home --------------------------------------------------------------------------------


def own_opener(path: str, flags: int) -> int:
    """Open a regular file of a home, as the `opener` of `open`. Raises OSError (ELOOP) for a link out of the home.

    A file that is a symbolic link is refused wherever it leads. A folder may be one, if it leads into the same home.
    """
    _must_stay_inside(Path(path))
    if not hasattr(os, "O_NOFOLLOW") and Path(path).is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link", path)
    return opener(path, flags | getattr(os, "O_NOFOLLOW", 0))


def open_own(path: Path) -> io.BufferedReader:
    """Open a regular file of a home for reading. Raises OSError, also (ELOOP) for a symbolic link."""
    return _open(path, own_opener)


def read_own(path: Path, most: int = _MOST) -> bytes:
    """Return the bytes of a regular file of a home. Raises OSError as `open_own` and `read_regular` do."""
    with open_own(path) as file:
        return _read(file, path, most)


def is_own(path: Path) -> bool:
    """Tell whether the path is a regular file, and not a symbolic link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _must_stay_inside(path: Path) -> None:
    """Raise OSError (ELOOP) if a folder between the file and the folder `spaces` of its home leads out of that home."""
    folders = list(takewhile(lambda folder: folder.name != "spaces", path.parents))
    if len(folders) == len(path.parents) or not any(folder.is_symlink() for folder in folders):
        return
    home = path.parents[len(folders)].parent
    if not path.parent.resolve().is_relative_to(home.resolve()):
        raise OSError(errno.ELOOP, "its folder is a symbolic link out of the home", str(path))


def _open(path: Path, opener: Callable[[str, int], int]) -> io.BufferedReader:
    try:
        return open(path, "rb", opener=opener)
    except ValueError as error:  # a NUL in it
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from None


def _read(file: io.BufferedReader, path: Path, most: int) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 2**20} MiB", str(path))
    return data


def written_ms(found: os.stat_result) -> int:
    """Return when a file was written last, in ms since 1970; some file systems keep times that no calendar has."""
    return min(max(found.st_mtime_ns // 1_000_000, 0), _LATEST_MS)
