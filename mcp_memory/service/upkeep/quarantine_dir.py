"""Quarantine for files that a repair or restore replaces: `<home>/backups/aside-<when>-<why>/`.

Nothing is deleted here. A person looks at the folder and deletes it; `purge` names it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.private_files import make_folder
from mcp_memory.core.regular_files import is_own, read_own, rename_own
from mcp_memory.store import files


class Aside:
    """The quarantine folder of an operation, created when it is first needed."""

    def __init__(self, home: Path, why: str, now: datetime) -> None:
        stem = f"aside-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{why}"
        backups, number, name = home / "backups", 1, stem
        while (backups / name).exists():
            number += 1
            name = f"{stem}-{number}"
        self.home, self.folder = home, backups / name
        self.took: list[str] = []

    def take(self, path: Path) -> Path | None:
        """Move a file, folder or link of the home here; return its new path, None if it does not exist.

        Raises StoreUnavailable if it cannot be moved.
        """
        if not files.is_there(path):
            return None
        name = path.relative_to(self.home)
        to = self._room(name)
        try:
            rename_own(path, to)
        except OSError as error:
            raise StoreUnavailable(f"{path} cannot be moved to {to} ({error.strerror}). It was not changed.") from None
        files.sync_folder(to.parent)
        self.took.append(name.as_posix())
        return to

    def copy(self, path: Path) -> Path | None:
        """Copy a file here, as a hard link where possible; return the copy's path, None if there is no such file."""
        if not is_own(path):
            return None
        name = path.relative_to(self.home)
        to = self._room(name)
        try:
            to.hardlink_to(path)
        except OSError:
            files.write_whole(to, read_own(path))
        files.sync_folder(to.parent)
        self.took.append(name.as_posix())
        return to

    def _room(self, name: Path) -> Path:
        to = self.folder / name
        make_folder(to.parent)
        return to
