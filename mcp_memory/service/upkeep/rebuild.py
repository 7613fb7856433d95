"""`rebuild`: a new database that agrees with the files beside it, and a comparison of both.

The files have everything that needs no model: turns, explicit statements, results, records, canvases and tombstones.
They are compared with the database row by row. The new database has the rows of the files, and all other rows (the
work of models, the usage ledger, vectors, tokens) from the old one, or from the newest good backup where that is
damaged. It then replaces the old one, which is kept. If rows differ and the old database is whole, nothing is replaced
unless `accept` is given: then the files win.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from mcp_memory.core.errors import DamagedRow, McpMemoryError, NewerHome, NoRoom, NotFound, StoreUnavailable
from mcp_memory.core.private_files import open_private
from mcp_memory.core.process_registry import exclusive
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.longterm import persona as persona_page
from mcp_memory.service.upkeep import archive
from mcp_memory.service.upkeep.archive import DATABASE
from mcp_memory.service.upkeep.backup import folder_of, listed, verify
from mcp_memory.service.upkeep.quarantine_dir import Aside
from mcp_memory.store import files
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.database import explained
from mcp_memory.store.sqlite.home import why_read_only
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.sqlite.unreadable import Unreadable
from mcp_memory.store.sqlite.upkeep import comparison, snapshots
from mcp_memory.store.sqlite.upkeep import rebuild as database_rebuild

_DAY = re.compile(rb"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The result of a rebuild or its check.

    `damage`: problems of the old database, empty if it is whole. `source`: the origin of rows that are not in files:
    `database`, the path of a backup, or None. `carried`: how many such rows, by kind. `lost`: rows that neither files
    nor `source` have, as sentences. `back`: rows that had been purged and were in `source`; they are forgotten. For a
    check, `pages` are problems of derived and stray files, and `behind` names outdated persona pages. `aside`: where
    the old database is kept.
    """

    compared: list[comparison.Compared]
    notes: list[str]
    carried: dict[str, int]
    damage: list[str]
    source: str | None
    lost: list[str] = field(default_factory=list[str])
    back: list[str] = field(default_factory=list[str])
    pages: list[str] = field(default_factory=list[str])
    behind: list[str] = field(default_factory=list[str])
    aside: Path | None = None
    is_swapped: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether all that both tell is the same, and neither lacks anything."""
        return all(one.is_equal for one in self.compared)

    @property
    def differing(self) -> int:
        return sum(one.differing for one in self.compared)

    @property
    def is_well(self) -> bool:
        """Whether nothing is damaged or lost, and both tell the same.

        Where the new database is in its place, what the old one said is no matter.
        """
        if self.notes or self.lost or self.pages:
            return False
        return self.is_swapped or (not self.damage and self.is_equal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How the files of a home and its database compare, with a sentence for each kind of rows that differ.

    `same`: equal rows by kind. `alone`: rows that are only in the database by design, which cannot be compared.
    `behind`: sentences about outdated persona pages, which the next reader or write renews. `is_short`: files lack
    rows, or have damaged lines.
    """

    same: dict[str, int]
    alone: dict[str, int]
    problems: list[str]
    behind: list[str]
    is_short: bool


def agreement(home: Path) -> Agreement:
    """Compare all that the files of a home tell with its database, row by row, while others go on using it."""
    with explained(home, so="Nothing was changed"):
        found = _agreement(home)
        if found.problems:  # a file rewritten while it is read, as by a purge, differs only once
            again = _agreement(home)
            return replace(again, problems=[one for one in again.problems if one in found.problems])
        return found


def _agreement(home: Path) -> Agreement:
    with tempfile.TemporaryDirectory(
        prefix=".rebuild-", suffix=".tmp", dir=None if why_read_only(home) else home
    ) as staging:
        copy = Path(staging) / DATABASE
        with closing(open_store(home)) as store:
            behind = list(_behind(store, home))
            store.snapshot(copy)
        snapshots.leave_out(copy)  # the rows of values that cannot be read are named elsewhere, and lacking here
        with snapshots.opened(copy) as con:
            compared, notes = comparison.compare(con, home, within=True)
            alone = database_rebuild.of_the_database_alone(con)
    # Results whose bytes are not those that were stored are looked at one by one elsewhere.
    notes = [note for note in notes if ": refs/" not in note or note.endswith(comparison.UNNAMED)]
    lacking = [one for one in compared if one.only_in_database and one.what != comparison.RESULTS]
    problems = [f"{note} {_MENDED}" for note in notes]
    problems += [sentence for one in compared for sentence in _differing(one, is_told=bool(notes))]
    return Agreement(
        same={one.what: one.same for one in compared},
        alone=alone,
        problems=problems,
        behind=behind,
        is_short=bool(notes or lacking),
    )


def personas(store: Store, home: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each space whose page about the user is not what its file holds, with the file and the page."""
    for space in store.spaces():
        path, due = home / "spaces" / space / "persona.md", persona_page.due(store, space)
        held = files.content_of(path)
        # Days depend on the machine's time zone, which may have changed since the page was written.
        if due is not None and (
            held is None or _DAY.sub(b"", held) != _DAY.sub(b"", due.encode("utf-8", "backslashreplace"))
        ):
            yield space, path, due


def _behind(store: Store, home: Path) -> Iterator[str]:
    try:
        for space, *_ in personas(store, home):
            yield (
                f"{space}: persona.md is missing, or not the page that the memory tells now. The next program that "
                "distils writes it anew; `mcp-memory doctor --repair` does so now, and keeps this one."
            )
    except DamagedRow:
        return  # which is named itself


_MENDED = (
    "Where the database is right, `mcp-memory doctor --repair` writes the file anew from it; "
    "where the file was, restore a backup: `mcp-memory backup --list`."
)


def _differing(one: comparison.Compared, *, is_told: bool) -> Iterator[str]:
    """Say what of some rows is not the same; `is_told` that it was said already why files lack rows."""
    some = f" ({', '.join(one.examples)})"
    if one.differing:
        yield (
            f"{one.what}: {one.differing} differ between the files and the database{some}: one of them was changed "
            "outside this program. `mcp-memory rebuild --check` shows both counts; `mcp-memory rebuild --accept` takes "
            "what the files say, and keeps this database."
        )
    if one.only_in_files:
        yield (
            f"{one.what}: {one.only_in_files} are in the files and not in the database{some}. "
            "`mcp-memory rebuild` takes them in, and keeps this database."
        )
    if one.only_in_database and one.what != comparison.RESULTS and not is_told:
        yield (
            f"{one.what}: {one.only_in_database} are in the database and not in the files{some}. "
            "`mcp-memory doctor --repair` writes the files anew."
        )


def rebuild(
    home: Path, *, check: bool = False, accept: bool = False, now: datetime, tell: ReportProgress = ignore_progress
) -> Rebuilt:
    """Rebuild the database of a home and, unless this is only a `check`, replace the old one.

    Raises StoreUnavailable where others hold the home, NotFound for a home without files.
    """
    with explained(home, so="Nothing is lost"), exclusive(home, "rebuild"):
        return remake(home.resolve(), check=check, accept=accept, now=now, tell=tell)


def remake(
    home: Path, *, check: bool = False, accept: bool = False, now: datetime, tell: ReportProgress = ignore_progress
) -> Rebuilt:
    """The same for who has the home alone."""
    if not (home / "spaces").is_dir():
        raise NotFound(f"{home} has no files to make a database of. Restore a backup: `mcp-memory backup --list`.")
    staging = Path(tempfile.mkdtemp(prefix=".rebuild-", suffix=".tmp", dir=home))
    try:
        done, new = _built(home, staging, tell)
        is_sure = bool(done.damage) or not done.differing or accept
        if check and done.source == "database":
            with closing(open_store(home)) as store:
                return replace(done, pages=store.problems(), behind=list(_behind(store, home)))
        if check or not is_sure:
            return done
        return _swapped(home, new, done, now=now)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _built(home: Path, staging: Path, tell: ReportProgress) -> tuple[Rebuilt, Path]:
    step = step_counter("rebuilding", 3, tell)
    before = _before(home, staging)
    step(1)
    new = staging / "new" / DATABASE
    compared, notes, carried = list[comparison.Compared](), list[str](), dict[str, int]()
    if before.path is None:
        open_store(new.parent).close()
    else:
        new.parent.mkdir()
        with snapshots.opened(before.path) as con:
            compared, notes = comparison.compare(con, home)
            open_private(new, "xb").close()
            con.execute("VACUUM INTO ?", (str(new),))
            carried = database_rebuild.of_the_database_alone(con)
    step(1)
    built = database_rebuild.build(new, home, is_alone=before.path is None)
    step(1)
    done = Rebuilt(
        compared=compared,
        notes=notes or built.notes,
        carried=carried,
        damage=before.damage,
        source=before.source,
        lost=list(_lost(built, before, new)),
        back=[
            f"{count} rows that were purged under {tombstone} are back from there, forgotten still. To erase them: "
            f"`mcp-memory purge {tombstone} --space {space}`."
            for (space, tombstone), count in built.back.items()
        ],
    )
    return done, new


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """A whole copy of the old database or its substitute, with the problems of the old one."""

    path: Path | None
    source: str | None
    damage: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    left_out: list[Unreadable] = field(default_factory=list[Unreadable])


def _before(home: Path, staging: Path) -> _Before:
    found = _standing(home, staging)
    left_out = snapshots.leave_out(found.path) if found.path else []
    damage = found.damage or [str(one) for one in left_out]
    return replace(found, damage=damage, left_out=left_out)


def _standing(home: Path, staging: Path) -> _Before:
    folder = staging / "old"
    folder.mkdir()
    copy = folder / DATABASE
    damage = _copied(home, copy)
    # If only some rows are missing, the database is newer than any backup.
    if all(one.endswith(snapshots.POINTS_AT_NOTHING) for one in damage):
        return _Before(path=copy, source="database", damage=damage)
    stands_in = staging / "stands-in"
    stands_in.mkdir()
    for one in listed(folder_of(home)):
        try:
            verify(one.path)
            with archive.opened(one.path) as (manifest, packed), (stands_in / DATABASE).open("wb") as file:
                archive.unpack(packed, DATABASE, manifest.members[DATABASE], file)
        except NoRoom:
            raise
        except McpMemoryError:
            continue
        open_store(stands_in).close()  # brings it to this schema
        return _Before(path=stands_in / DATABASE, source=str(one.path), damage=damage)
    if not copy.exists():
        return _Before(path=None, source=None, damage=damage)
    open_store(stands_in).close()
    unreadable = database_rebuild.salvage(copy, stands_in / DATABASE)
    if not any(snapshots.described(stands_in / DATABASE).counts.values()):
        return _Before(path=None, source=None, damage=damage)
    return _Before(path=stands_in / DATABASE, source="database", damage=damage, unreadable=unreadable)


def _copied(home: Path, copy: Path) -> list[str]:
    """Copy the database of a home, migrated if possible, and return its problems."""
    if not (home / DATABASE).exists():
        return [f"there is no {DATABASE}"]
    try:
        with closing(open_store(home)) as store:
            store.snapshot(copy)
    except (NoRoom, NewerHome):  # which is no damage
        raise
    except StoreUnavailable as error:
        for ending in ("", "-wal"):
            if (part := home / f"{DATABASE}{ending}").exists():
                shutil.copyfile(part, f"{copy}{ending}")
        return [str(error)]
    return snapshots.check(copy)


def _lost(built: database_rebuild.Built, before: _Before, new: Path) -> Iterator[str]:
    if before.source is None:
        yield "What a model made (statements drawn from turns, scenes, the persona): it is distilled again."
        yield "The bill, the ledger of savings, tokens, retention and reviews: they were in the database alone."
    for table in before.unreadable:
        yield f"Of {table}, what no file tells."
    for one in database_rebuild.lacking(new, before.left_out):
        yield f"{one} No file tells it."
    if built.dangling:
        named = ", ".join(f"{count:,} of {table}" for table, count in sorted(built.dangling.items()))
        yield f"Rows that pointed at rows which are gone: {named}."


def _swapped(home: Path, new: Path, done: Rebuilt, *, now: datetime) -> Rebuilt:
    aside = Aside(home, "rebuild", now)
    aside.copy(home / DATABASE)
    # The old database's log must never be applied to the new one.
    aside.take(home / f"{DATABASE}-wal")
    aside.take(home / f"{DATABASE}-shm")
    new.replace(home / DATABASE)
    files.sync_folder(home)
    is_whole = done.is_equal and not done.notes
    with closing(open_store(home)) as store:
        store.repair(aside.take, everything=not is_whole)
    return replace(done, aside=aside.folder if aside.took else None, is_swapped=True)
