"""`rebuild`: makes a database from the files of a home, when the database is lost, damaged or older than its files.

The files have everything that needs no model: turns, explicit statements, results, records, canvases and tombstones.
All other rows come from the old database if it can be read, or from the newest good backup. An undamaged database keeps
its rows; the files only add missing rows. The new database replaces the old, which is kept in quarantine.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from mcp_memory.core.errors import DamagedRow, McpMemoryError, NewerHome, NoRoom, NotFound, StoreUnavailable
from mcp_memory.core.process_registry import exclusive
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.longterm import persona as persona_page
from mcp_memory.service.upkeep import archive
from mcp_memory.service.upkeep.archive import DATABASE
from mcp_memory.service.upkeep.backup import folder_of, list_backups, verify
from mcp_memory.service.upkeep.quarantine_dir import Aside
from mcp_memory.store import files
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows
from mcp_memory.store.sqlite.database import translate_errors
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.sqlite.unreadable import Unreadable
from mcp_memory.store.sqlite.upkeep import rebuild as database_rebuild
from mcp_memory.store.sqlite.upkeep import snapshots

_DAY = re.compile(rb"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The result of a rebuild or its check.

    `added` counts, by kind, the rows of the files that the database lacked. `notes` are sentences about damaged files.
    `damage` lists the problems of the old database and is empty if it is intact. Rows that are in no file come from
    `source` (`database`, the path of a backup, or None); `without_files` counts them by kind. `lost` are sentences
    about rows that neither the files nor `source` have. `back` are purged rows that returned from `source`; they stay
    forgotten. `aside` is the quarantine folder with the old database.
    """

    added: dict[str, int]
    notes: list[str]
    damage: list[str]
    source: str | None
    without_files: dict[str, int]
    lost: list[str] = field(default_factory=list[str])
    back: list[str] = field(default_factory=list[str])
    aside: Path | None = None
    is_swapped: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the new database differs from the current database."""
        return bool(self.damage or self.added)

    @property
    def is_well(self) -> bool:
        """Whether nothing is damaged or lost, and the database has all rows of the files."""
        return not (self.notes or self.lost) and (self.is_swapped or not self.is_needed)


def rebuild(home: Path, *, check: bool = False, now: datetime, tell: ReportProgress = ignore_progress) -> Rebuilt:
    """Rebuild the database of a home and, unless this is only a `check`, replace the current database if they differ.

    Raises StoreUnavailable if other processes have the home open, NotFound for a home without files.
    """
    with translate_errors(home, so="Nothing is lost"), exclusive(home, "rebuild"):
        return rebuild_alone(home.resolve(), check=check, now=now, tell=tell)


def rebuild_alone(home: Path, *, check: bool = False, now: datetime, tell: ReportProgress = ignore_progress) -> Rebuilt:
    """Do the same as `rebuild`; the caller has locked the home."""
    if not (home / "spaces").is_dir():
        raise NotFound(f"{home} has no files to make a database of. Restore a backup: `mcp-memory backup --list`.")
    staging = Path(tempfile.mkdtemp(prefix=".rebuild-", suffix=".tmp", dir=home))
    try:
        done, new = _build(home, staging, tell)
        return done if check or not done.is_needed else _swap(home, new, done, now=now)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _build(home: Path, staging: Path, tell: ReportProgress) -> tuple[Rebuilt, Path]:
    step = step_counter("rebuilding", 2, tell)
    base = _base(home, staging)
    step(1)
    with snapshots.open_database(base.path) as con:
        without_files = database_rebuild.count_rows_without_files(con)
    built = database_rebuild.build(base.path, home, is_current=base.is_current, unreadable=base.left_out)
    step(1)
    done = Rebuilt(
        added={kind: count for kind, count in built.added.items() if count},
        notes=built.notes,
        damage=base.damage,
        source=base.source,
        without_files=without_files,
        lost=list(_describe_losses(built, base)),
        back=[
            f"{count} rows that were purged under {tombstone} were restored from there and are still forgotten. "
            f"To erase them: `mcp-memory purge {tombstone} --space {space}`."
            for (space, tombstone), count in built.back.items()
        ],
    )
    return done, base.path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The database that a rebuild starts from, as a separate file, and the problems of the current database.

    `is_current` is true if it is a copy of the current database.
    """

    path: Path
    source: str | None
    is_current: bool = False
    damage: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    left_out: list[Unreadable] = field(default_factory=list[Unreadable])


def _base(home: Path, staging: Path) -> _Base:
    base = _choose_base(home, staging)
    left_out = snapshots.leave_out(base.path)
    return replace(base, damage=base.damage or [str(value) for value in left_out], left_out=left_out)


def _choose_base(home: Path, staging: Path) -> _Base:
    """Make the first possible base in `staging`, and return it.

    The candidates: a copy of the database, the newest good backup, all readable rows, an empty database.
    """
    for folder in ("old", "new"):
        (staging / folder).mkdir()
    copy, new = staging / "old" / DATABASE, staging / "new" / DATABASE
    damage = _copy_database(home, copy)
    # If only some rows are missing, the database is newer than any backup.
    if all(problem.endswith(snapshots.POINTS_AT_NOTHING) for problem in damage):
        return _Base(path=copy, source="database", is_current=True, damage=damage)
    for backup in list_backups(folder_of(home)):
        try:
            verify(backup.path)
            with archive.open_backup(backup.path) as (manifest, packed), new.open("wb") as file:
                archive.unpack(packed, DATABASE, manifest.members[DATABASE], file)
        except NoRoom:
            raise
        except McpMemoryError:
            continue
        open_store(new.parent).close()  # migrates it to this schema
        return _Base(path=new, source=str(backup.path), damage=damage)
    open_store(new.parent).close()
    if not copy.exists():
        return _Base(path=new, source=None, damage=damage)
    unreadable = database_rebuild.salvage(copy, new)
    source = "database" if any(snapshots.describe_file(new).counts.values()) else None
    return _Base(path=new, source=source, damage=damage, unreadable=unreadable)


def _copy_database(home: Path, copy: Path) -> list[str]:
    """Copy the database of a home, migrated if possible, and return its problems.

    Raises NoRoom and NewerHome, which are not damage.
    """
    if not (home / DATABASE).exists():
        return [f"there is no {DATABASE}"]
    try:
        with closing(open_store(home)) as store:
            store.snapshot(copy)
    except (NoRoom, NewerHome):  # which is not damage
        raise
    except StoreUnavailable as error:
        for ending in ("", "-wal"):
            if (part := home / f"{DATABASE}{ending}").exists():
                shutil.copyfile(part, f"{copy}{ending}")
        return [str(error)]
    return snapshots.check(copy)


def _describe_losses(built: database_rebuild.Built, base: _Base) -> Iterator[str]:
    if base.source is None:
        yield "What a model made (statements extracted from turns, scenes, the persona): it will be distilled again."
        yield "Usage and savings, tokens, retention policies, quotas and reviews: they were only in the database."
    for table in base.unreadable:
        yield f"Rows that are not in any file: {table}."
    for value in database_rebuild.values_without_files(base.path, base.left_out):
        yield f"{value} No file has it."
    if built.dangling:
        tables = ", ".join(f"{count:,} of {table}" for table, count in sorted(built.dangling.items()))
        yield f"Rows that referred to missing rows: {tables}."


def _swap(home: Path, new: Path, done: Rebuilt, *, now: datetime) -> Rebuilt:
    aside = Aside(home, "rebuild", now)
    aside.copy(home / DATABASE)
    # The old database's log must never be applied to the new one.
    aside.take(home / f"{DATABASE}-wal")
    aside.take(home / f"{DATABASE}-shm")
    new.replace(home / DATABASE)
    files.sync_folder(home)
    with closing(open_store(home)) as store:
        for space in store.read_home(home_rows.spaces):
            for path in store.kept_beside(space):
                aside.take(path)
        store.repair(aside.take)
    return replace(done, aside=aside.folder if aside.took else None, is_swapped=True)


# --- the page about the user ------------------------------------------------------------------------


def outdated_personas(store: Store, home: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each space whose persona file differs from its page, with the file and the page."""
    for space in store.read_home(home_rows.spaces):
        path, due = home / "spaces" / space / "persona.md", persona_page.due(store, space)
        content = files.content_of(path)
        # Days depend on the machine's time zone, which may have changed since the page was written.
        if due is not None and (
            content is None or _DAY.sub(b"", content) != _DAY.sub(b"", due.encode("utf-8", "backslashreplace"))
        ):
            yield space, path, due


def spaces_with_outdated_persona(home: Path) -> list[str]:
    """Return the spaces whose persona file is missing or not the current page; none if a row is damaged."""
    with suppress(DamagedRow), closing(open_store(home)) as store:
        return [space for space, *_ in outdated_personas(store, home)]
    return []
