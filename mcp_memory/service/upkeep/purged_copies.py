"""Finds copies of a memory that still have purged rows: backups, exports and quarantine folders.

The words of a purged row are gone, so rows of a copy are compared with keyed digests. A quarantine folder
(`backups/aside-…`) counts as one copy, as an archive does: its pages, which have no digests, quote the same rows.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from mcp_memory.core.errors import Damaged, McpMemoryError
from mcp_memory.core.private_files import open_private
from mcp_memory.core.regular_files import modified_ms, open_own, read_own, remove_own, require_own
from mcp_memory.service.packed_files import TORN
from mcp_memory.service.upkeep.archive import DATABASE
from mcp_memory.store import files
from mcp_memory.store.protocol import EmbeddedStore
from mcp_memory.store.purge_search import copies_in
from mcp_memory.store.sql import exporting, purged_rows
from mcp_memory.store.sql.purged_rows import PurgedRows
from mcp_memory.store.sqlite.upkeep import snapshots

_LONGEST = 64 * 2**20


def with_purged_rows(home: Path, store: EmbeddedStore) -> list[Path]:
    """Return the files and quarantine folders with purged rows, other than the home's current files.

    A database that cannot be read counts if it is older than the last purge. Other unreadable files do not.
    """
    purged = store.read_home(purged_rows.purged_rows)
    if not purged.digests:
        return []
    has_purged = dict[Path, bool]()
    with tempfile.TemporaryDirectory(prefix=".mcp-memory-", suffix=".tmp", dir=home) as scratch:
        search = _Search(home, store.read_home(exporting.home_id), purged, Path(scratch))
        for path in copies_in(home):
            copy = _whole(home, path)
            has_purged[copy] = has_purged.get(copy, False) or search.in_file(path)
    return sorted(copy for copy, has_rows in has_purged.items() if has_rows)


def remove(copy: Path) -> None:
    """Delete a file or a quarantine folder. Raises OSError if it cannot be deleted."""
    if copy.is_dir() and not copy.is_symlink():
        require_own(copy)
        shutil.rmtree(copy)
    else:
        remove_own(copy)


def _whole(home: Path, path: Path) -> Path:
    """Return the quarantine folder that contains the file, or the file itself if none does."""
    parts = path.relative_to(home).parts
    is_aside = parts[0] == "backups" and len(parts) > 2 and parts[1].startswith("aside-")
    return home.joinpath(*parts[:2]) if is_aside else path


class _Search:
    """The search for purged rows in files; databases are copied to `scratch` first."""

    def __init__(self, home: Path, home_id: str, purged: PurgedRows, scratch: Path) -> None:
        self._home, self._home_id, self._purged, self._scratch = home, home_id, purged, scratch

    def in_file(self, path: Path) -> bool:
        try:
            with open_own(path) as file:
                if path.name == DATABASE:
                    return self._in_database(file, modified_ms(path.stat()))
                if path.suffix == ".zip":
                    return self._in_archive(file, modified_ms(path.stat()))
                if ".jsonl" in path.suffixes:
                    return self._in_lines(file)
            if path.suffix == ".md":
                return self._purged.has(files.read_ref_file(read_own(path))[0])
        except (OSError, McpMemoryError):
            pass  # deleted, unreadable, or not a result
        return False

    def _in_archive(self, file: IO[bytes], written: int) -> bool:
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.namelist():
                    with archive.open(member) as stream:
                        if member == DATABASE:
                            is_purged = self._in_database(stream, written)
                        else:
                            is_purged = member.endswith(".jsonl") and self._in_lines(stream)
                    if is_purged:
                        return True
        except TORN:
            pass
        return False

    def _in_database(self, file: IO[bytes], written: int) -> bool:
        copy = self._scratch / DATABASE
        try:
            with open_private(copy, "xb") as target:
                shutil.copyfileobj(file, target)
            return snapshots.describe_file(copy).home == self._home_id and any(
                row.was_purged for row in snapshots.find_returned(copy, self._home / "spaces")
            )
        except Damaged:
            return written < self._purged.last
        finally:
            copy.unlink(missing_ok=True)

    def _in_lines(self, file: IO[bytes]) -> bool:
        return any(self._purged.has(row) for row in _rows(iter(lambda: file.readline(_LONGEST), b"")))


def _rows(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row
