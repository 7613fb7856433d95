"""Detects that an open folder was deleted or replaced.

Open files remain usable after their names are removed. A long-running process compares device and inode before each
use, so that it does not write to a folder that somebody deleted or replaced. The folder may be reached by a link, its
files may not. Standard library only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class OpenedFolder:
    """Device and inode of a folder, and of files in it, when this was made. `close()` may be called twice.

    The inode of a removed file can be used again unless the file is open: this keeps the folder open, and its user must
    keep the files open.
    """

    def __init__(self, folder: Path, *files: Path) -> None:
        self._folder, self._files = str(folder), [str(path) for path in files]
        self._found = self._inodes()
        self._handle: int | None = None
        if os.name != "nt":
            with suppress(OSError):  # a folder that may be entered and not listed
                self._handle = os.open(folder, os.O_RDONLY)

    def is_current(self) -> bool:
        """Return whether the paths still refer to the opened folder and files. Costs one system call per path."""
        return self._found is not None and self._inodes() == self._found

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
