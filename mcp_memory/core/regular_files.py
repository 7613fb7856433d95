"""Opens files that somebody named: regular files only, so that nothing is read for ever.

A name may stand for a device that never ends, or a pipe that nobody writes to. Opening either one returns at once here
and raises OSError, as a missing file does. What the name stands for is asked of the open descriptor, so that links
count as what they lead to. Standard library only: hooks wait for it.
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
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
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
