"""Opens regular files only.

A name may lead to a device that never ends, or to a pipe without a writer. Opening either raises OSError at once, as
a missing file does. The type is checked on the open descriptor, so links count as their targets. Standard library
only, because hooks import this module.
"""

from __future__ import annotations

import errno
import io
import os
import stat
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
    try:
        return open(path, "rb", opener=opener)
    except ValueError as error:  # a NUL in it
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from None


def read_regular(path: Path, most: int = _MOST) -> bytes:
    """Return the bytes of a regular file. Raises OSError, also (EFBIG) where it has more than `most`."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 2**20} MiB", str(path))
    return data


def written_ms(found: os.stat_result) -> int:
    """Return when a file was written last, in ms since 1970; some file systems keep times that no calendar has."""
    return min(max(found.st_mtime_ns // 1_000_000, 0), _LATEST_MS)
