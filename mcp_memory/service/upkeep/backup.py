"""`backup`: a consistent copy of a home in one file, made while other processes write and verified before it counts.

The database is copied first, with SQLite's backup API. Its rows then name the files and the valid length of each;
files are immutable up to that length. Line files that were rewritten meanwhile are made from the copied rows, and so
are scenes and canvases, which people can edit. A missing or damaged result file is named in the manifest; a damaged
file is included as it is, because evidence is never left out.

The archive is written under a temporary name, read back whole, its database examined, and only then renamed. It does
not include settings (`config.toml`), which may contain keys, or logs.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO

from mcp_memory import __version__
from mcp_memory.core.errors import Damaged, InvalidInput, McpMemoryError
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.core.regular_files import open_own, read_own, remove_own
from mcp_memory.service.upkeep import archive
from mcp_memory.service.upkeep.archive import DATABASE, FORMAT, BackupManifest, Writer
from mcp_memory.store import files
from mcp_memory.store.protocol import EmbeddedStore
from mcp_memory.store.sqlite.database import translate_errors
from mcp_memory.store.sqlite.upkeep import snapshots

KEPT = 7
_NAME = re.compile(r"mcp-memory-([0-9a-f]{8})-(\d{8}T\d{9}Z)\.zip")
_PIECE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup file. `manifest` is None if it cannot be read; `problem` is the reason."""

    path: Path
    bytes: int
    manifest: BackupManifest | None = None
    problem: str | None = None
    removed: tuple[Path, ...] = ()
    """Older backups that were deleted when it was made."""


def folder_of(home: Path) -> Path:
    return home / "backups"


def back_up(
    store: EmbeddedStore,
    home: Path,
    *,
    to: Path | None = None,
    keep: int = KEPT,
    now: datetime,
    tell: ReportProgress = ignore_progress,
) -> Backup:
    """Write a backup into the folder `to` (default: `<home>/backups`), verify it, and delete all but the newest `keep`.

    Only backups of this memory are deleted. Raises InvalidInput for an unusable folder or `keep`, StoreUnavailable if
    the disk is full, Damaged if the verification fails.
    """
    if keep < 1:
        raise InvalidInput(f"keep is {keep}; it can be 1 or more.")
    folder = to or folder_of(home)
    _require_folder(folder)
    with translate_errors(folder, so="No backup was made"):
        return _write_backup(store, home, folder, keep=keep, now=now, tell=tell)


def _write_backup(
    store: EmbeddedStore, home: Path, folder: Path, *, keep: int, now: datetime, tell: ReportProgress
) -> Backup:
    part = folder / f".mcp-memory-{secrets.token_hex(8)}.tmp"
    try:
        with tempfile.TemporaryDirectory(prefix=".mcp-memory-", suffix=".tmp", dir=folder) as scratch:
            copy = Path(scratch) / DATABASE
            store.snapshot(copy)
            about = snapshots.describe_file(copy)
            with open_private(part, "xb") as file:
                manifest = _write_archive(file, home, copy, about, now=now, tell=tell)
                file.flush()
                os.fsync(file.fileno())
        made = manifest.made_at.astimezone(UTC)
        path = _place(folder, about.home, made)
        verify(part, tell=tell)
        part.replace(path)
        files.sync_folder(folder)
    finally:
        remove_own(part)
    return Backup(path=path, bytes=path.stat().st_size, manifest=manifest, removed=_rotate(path, about.home, keep))


def _place(folder: Path, home: str, at: datetime) -> Path:
    """Return a free file name: two backups may be made in the same millisecond."""
    while True:
        stamp = at.strftime("%Y%m%dT%H%M%S") + f"{at.microsecond // 1000:03}Z"
        path = folder / f"mcp-memory-{home[:8]}-{stamp}.zip"
        if not path.exists():
            return path
        at += timedelta(milliseconds=1)


def _write_archive(
    file: IO[bytes], home: Path, copy: Path, about: snapshots.Description, *, now: datetime, tell: ReportProgress
) -> BackupManifest:
    writer = Writer(file, now.astimezone(UTC))
    writer.add(DATABASE, _pieces(copy))
    lacking: list[str] = []
    step = step_counter("copying results", about.counts.get("results", 0), tell)
    with snapshots.open_database(copy) as con:
        for named in snapshots.named_files(con):
            where = home / "spaces" / named.space / named.path
            if named.content is not None:
                pieces = iter((named.content,))
            elif named.length is not None:
                rows = partial(snapshots.lines_of, con, named)
                pieces = _lines(where, named.length, rows)
            else:
                step(1)
                try:
                    content = read_own(where)
                    files.read_ref_file(content)
                except (FileNotFoundError, IsADirectoryError):
                    lacking.append(f"{named.space}: {named.path} is missing.")
                    continue
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise
                    lacking.append(f"{named.space}: {named.path} is a symbolic link, which is not followed.")
                    continue
                except Damaged as error:
                    lacking.append(f"{named.space}: {named.path} is damaged: {error}.")
                    content = read_own(where)
                pieces = iter((content,))
            writer.add(f"spaces/{named.space}/{named.path}", pieces)
    manifest = BackupManifest(
        format=FORMAT,
        home=about.home,
        at=now.astimezone(UTC).isoformat(timespec="milliseconds"),
        version=__version__,
        schema=about.schema,
        spaces=about.spaces,
        counts=about.counts,
        lacking=tuple(lacking),
        members=writer.members,
    )
    writer.close(manifest)
    return manifest


def _lines(path: Path, length: int, rows: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
    """Yield the valid part of a line file; if the file is missing or too short, the same lines from the rows."""
    try:
        with open_own(path) as file:
            is_whole = file.seek(0, os.SEEK_END) >= length
            file.seek(max(length - 1, 0))
            is_whole = is_whole and (length == 0 or file.read(1) == b"\n")
            file.seek(0)
            left = length if is_whole else 0
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece
        if is_whole:
            return
    except (FileNotFoundError, IsADirectoryError):
        pass
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    yield from rows()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _require_folder(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be made ({error.strerror}). Name another folder with --to.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInput(f"{folder} cannot be written to. Name another folder with --to.")


# --- verification ----------------------------------------------------------------------------------------


def verify(path: Path, *, tell: ReportProgress = ignore_progress) -> BackupManifest:
    """Read a whole backup and examine its database.

    Raises Damaged if anything in it is wrong, InvalidInput if it is not a backup or a newer program made it.
    """
    with (
        translate_errors(path.parent, so="Nothing was changed"),
        archive.open_backup(path) as (manifest, packed),
        _scratch(path) as scratch,
    ):
        step = step_counter("proving", len(manifest.members), tell)
        for name, member in manifest.members.items():
            step(1)
            if name != DATABASE:
                archive.unpack(packed, name, member, None)
        copy = Path(scratch) / DATABASE
        with copy.open("wb") as file:
            archive.unpack(packed, DATABASE, manifest.members[DATABASE], file)
        if wrong := snapshots.check(copy):
            raise Damaged(f"its database is not whole ({wrong[0]})")
        about = snapshots.describe_file(copy)
        if (about.home, about.schema, about.counts) != (manifest.home, manifest.schema, manifest.counts):
            raise Damaged("the rows of its database are not those of its manifest")
        if not about.is_known:
            newer = f"{path} was made by a newer mcp-memory ({manifest.version})"
            raise InvalidInput(f"{newer}. Upgrade this program first.")
    return manifest


def _scratch(path: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder next to the backup: a database may not fit into the system's."""
    beside = path.parent if os.access(path.parent, os.W_OK | os.X_OK) else None
    return tempfile.TemporaryDirectory(prefix=".mcp-memory-", suffix=".tmp", dir=beside)


# --- existing backups -------------------------------------------------------------------------------


def list_backups(folder: Path) -> list[Backup]:
    """Return the backups in a folder, newest first. Their members are not verified (see `verify`)."""
    backups: list[Backup] = []
    for path in sorted(folder.glob("mcp-memory-*.zip"), key=lambda path: path.name[-23:], reverse=True):
        if _NAME.fullmatch(path.name):
            try:
                with archive.open_backup(path) as (manifest, _):
                    backups.append(Backup(path=path, bytes=path.stat().st_size, manifest=manifest))
            except McpMemoryError as error:
                backups.append(Backup(path=path, bytes=path.stat().st_size, problem=str(error)))
    return backups


def _rotate(newest: Path, home: str, keep: int) -> tuple[Path, ...]:
    """Remove all but the newest `keep` backups of the same memory, and no other files; return the removed paths."""
    ours = [
        backup.path
        for backup in list_backups(newest.parent)
        if backup.path != newest and backup.manifest is not None and backup.manifest.home == home
    ]
    for path in ours[keep - 1 :]:
        remove_own(path)
    return tuple(ours[keep - 1 :])
