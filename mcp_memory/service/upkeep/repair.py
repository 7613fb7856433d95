"""`doctor --repair`: repairs problems and names the remaining problems. Replaced files are kept in quarantine.

A missing or torn database, or a database that lacks rows of the files, is rebuilt. Indexes and copies are rewritten;
missing or damaged results are restored from backups; canvases that differ from their history are redrawn. A second run
has nothing to do.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mcp_memory.core.errors import Damaged, McpMemoryError, NewerHome, NoRoom, NotFound, StoreUnavailable
from mcp_memory.core.process_registry import exclusive
from mcp_memory.core.regular_files import read_own, remove_own
from mcp_memory.service.upkeep import archive
from mcp_memory.service.upkeep.archive import DATABASE
from mcp_memory.service.upkeep.backup import folder_of, list_backups
from mcp_memory.service.upkeep.quarantine_dir import Aside
from mcp_memory.service.upkeep.rebuild import Rebuilt, outdated_personas, rebuild_alone
from mcp_memory.shortterm.canvas.state import canvas_problems
from mcp_memory.store import files
from mcp_memory.store.protocol import EmbeddedStore
from mcp_memory.store.sql import canvas_rows, home_rows, ref_rows
from mcp_memory.store.sqlite.database import translate_errors
from mcp_memory.store.sqlite.home import IDENTITY, keep_private
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.sqlite.upkeep import snapshots
from mcp_memory.store.sqlite.upkeep.rebuild import lost_spaces

_ALL = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The result of a repair.

    `mended` and `left` are sentences; `aside` is the quarantine folder, None if nothing was replaced.
    """

    mended: list[str]
    left: list[str]
    aside: Path | None
    rebuilt: Rebuilt | None = None


def repair(home: Path, *, now: datetime) -> Repaired:
    """Repair a home. Raises StoreUnavailable if other processes have it open, NotFound if it does not exist."""
    if not (home / DATABASE).exists() and not (home / "spaces").is_dir():
        raise NotFound(f"There is no memory in {home}. Name another home with --home.")
    with translate_errors(home, so="Nothing is lost"), exclusive(home, "doctor --repair"):
        home = home.resolve()
        aside = Aside(home, "repair", now)
        identity = home / IDENTITY
        named = files.is_there(identity) and not identity.is_file() and aside.take(identity)
        rebuilt = _rebuild_if_needed(home, now=now)
        with closing(open_store(home)) as store:
            for path in [path for space in store.read_home(home_rows.spaces) for path in store.kept_beside(space)]:
                aside.take(path)  # the database has its rows now
            mended = [f"{IDENTITY} was not a file: it is rewritten, and the old entry kept."] if named else []
            mended += [_describe_rebuild(rebuilt)] if rebuilt else []
            mended += _delete_leftovers(home)
            if count := keep_private(home, deep=True):
                mended.append(f"Files and folders closed to other users of this machine: {count:,}.")
            mended += store.repair(aside.take)
            mended += _rewrite_personas(store, home, aside)
            mended += _finish_purges(store)
            mended += _restore_results(home, aside)
            mended += _rewrite_front_matter(store, home, aside)
            mended += _redraw_canvases(store, aside, home)
            left = store.problems()
            left += [
                f"{space}: {each}"
                for space in store.read_home(home_rows.spaces)
                for each in canvas_problems(store, space)
            ]
    return Repaired(mended=mended, left=left, aside=aside.folder if aside.took else None, rebuilt=rebuilt)


# --- the database -----------------------------------------------------------------------------------


def _rebuild_if_needed(home: Path, *, now: datetime) -> Rebuilt | None:
    """Rebuild the database if it is missing or damaged, or lacks rows that the files have.

    Returns None if the database was not replaced. Raises NoRoom and NewerHome, which are not damage.
    """
    needed = not (home / DATABASE).exists()
    if not needed:
        try:
            with closing(open_store(home)) as store:
                spaces = store.read_home(home_rows.spaces)
                with snapshots.open_database(home / DATABASE) as con:
                    is_lost = bool(lost_spaces(con, home))
                rows_changed = any("does not match its hash" in problem for problem in store.problems())
                needed = rows_changed or is_lost or any(store.kept_beside(space) for space in spaces)
            needed |= bool(snapshots.check(home / DATABASE) or snapshots.unreadable(home / DATABASE))
        except (NoRoom, NewerHome):  # which is not damage
            raise
        except StoreUnavailable:
            needed = True
    done = rebuild_alone(home, now=now) if needed else None
    return done if done and done.is_swapped else None


def _describe_rebuild(rebuilt: Rebuilt) -> str:
    why = rebuilt.damage[0] if rebuilt.damage else "it lacked rows that the files have"
    added = ", ".join(f"{count:,} {kind}" for kind, count in rebuilt.added.items())
    source = "" if rebuilt.source in (None, "database") else f" What models made is from {rebuilt.source}."
    kept = f" The replaced files are in {rebuilt.aside}." if rebuilt.aside else ""
    lost = f" Lost: {' '.join(rebuilt.lost)}" if rebuilt.lost else ""
    additions = f": {added} added from the files" if added else ""
    return " ".join([f"The database is rebuilt ({why}){additions}.{source}{kept}{lost}", *rebuilt.back])


def _delete_leftovers(home: Path) -> Iterator[str]:
    """Delete the working copies of killed backups, restores and rebuilds. The caller has locked the home."""
    leftovers = (home.glob(what) for what in (".restore-*.tmp", ".rebuild-*.tmp", "backups/.mcp-memory-*.tmp"))
    for path in sorted(leftover for paths in leftovers for leftover in paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            remove_own(path)
        yield f"{path.relative_to(home).as_posix()}, a temporary copy of an interrupted operation, is deleted."


def _finish_purges(store: EmbeddedStore) -> Iterator[str]:
    """Finish purges that were killed. The caller has locked the home, so no purge is running."""
    if (purges := store.unverified_purges()) and store.secure_delete():
        store.note_verified(purges)
        yield (
            "An interrupted purge is finished. Its words are gone, so other copies cannot be searched for: check logs, "
            "spaces/*/*.jsonl.* and backups/ in the home yourself."
        )


def _rewrite_personas(store: EmbeddedStore, home: Path, aside: Aside) -> Iterator[str]:
    for space, path, due in list(outdated_personas(store, home)):
        aside.take(path)
        store.write_persona_file(space, due)
        yield f"{space}: persona.md is the current page again."


# --- results ----------------------------------------------------------------------------------------


def _restore_results(home: Path, aside: Aside) -> Iterator[str]:
    """Restore missing or damaged results from the newest backup that has each of them intact."""
    with snapshots.open_database(home / DATABASE) as con:
        named = [backup for backup in snapshots.named_files(con) if backup.sha256 is not None]
    digests = {f"spaces/{backup.space}/{backup.path}": backup.sha256 for backup in named}
    bad = {name: digest for name, digest in digests.items() if not _is_result(home / name, digest)}
    if not bad:
        return
    for backup in list_backups(folder_of(home)):
        for name, content in _read_files(backup.path, sorted(bad)):
            if _digest(content) == bad[name]:
                aside.take(home / name)
                files.write_whole(home / name, content)
                del bad[name]
                yield f"{name.removeprefix('spaces/')} is restored from {backup.path.name}."


def _rewrite_front_matter(store: EmbeddedStore, home: Path, aside: Aside) -> Iterator[str]:
    """Rewrite the front matter of intact results if it differs from their rows."""
    with snapshots.open_database(home / DATABASE) as con:
        named = [ref for ref in snapshots.named_files(con) if ref.sha256 is not None]
    for ref in named:
        path = home / "spaces" / ref.space / ref.path
        with suppress(OSError, Damaged, NotFound):
            content = read_own(path)
            fields, data = files.read_ref_file(content)
            row = store.read(ref.space, ref_rows.by_id, f"r-{fields['sha256'][:12]}")
            if fields["sha256"] == ref.sha256 and content != (due := files.ref_file(row, data)):
                aside.copy(path)
                files.write_whole(path, due)
                yield f"{ref.space}/{ref.path} has its front matter again, from its row."


def _read_files(backup: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the readable files of a backup among these names."""
    with suppress(McpMemoryError), archive.open_backup(backup) as (manifest, packed):
        for name in names:
            content = io.BytesIO()
            with suppress(KeyError, Damaged):
                archive.unpack(packed, name, manifest.members[name], content)
                yield name, content.getvalue()


def _is_result(path: Path, digest: str | None) -> bool:
    try:
        return _digest(read_own(path)) == digest
    except OSError:
        return False


def _digest(content: bytes) -> str | None:
    """Return the verified hash of a result's file, None if the file is damaged."""
    try:
        return files.read_ref_file(content)[0]["sha256"]
    except Damaged:
        return None


# --- canvases ---------------------------------------------------------------------------------------


def _redraw_canvases(store: EmbeddedStore, aside: Aside, home: Path) -> Iterator[str]:
    """Redraw canvases whose rows differ from their history."""
    for space in store.read_home(home_rows.spaces):
        for row in store.read(space, canvas_rows.list_canvases, limit=_ALL):
            try:
                if store.read(space, canvas_rows.canvas, row.number, version=row.version) == row:
                    continue
            except NotFound:
                continue
            aside.copy(home / "spaces" / space / "mmds" / f"{row.number:03}-{row.label}.mmd")
            store.write(space, canvas_rows.redraw, row.number)
            yield f"{space}: canvas {row.number:03}-{row.label} is redrawn from its records."
