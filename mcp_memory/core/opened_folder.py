"""Detects that an open folder was deleted or replaced.

Open files remain usable after their names are removed. A long-running process compares device and inode before each
use, so that it does not write to a folder that somebody deleted or replaced. Standard library only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["OpenedFolder"]


class OpenedFolder:
    """Device and inode of a folder, and of files in it, when this was made. `close()` may be called twice.

    The inode of a removed file can be used again unless the file is open: this keeps the folder open, and its user must
    keep the files open.
    """

    def __init__(self, folder: Path, *files: Path) -> None:
        self._paths = [str(path) for path in (folder, *files)]
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
            return [(found.st_dev, found.st_ino) for found in map(os.stat, self._paths)]
        except OSError:
            return None
