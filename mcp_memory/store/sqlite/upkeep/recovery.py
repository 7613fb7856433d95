"""Recovery of a home whose database and files differ after a crash, or after the database lost its latest part.

Lines that the files have and the database lacks are taken back into the database. It falls behind its files where its
log of writes was deleted or torn, or where an older copy took its place. What the files have was acknowledged: it is
evidence. Each line comes back under its own number where that is free. A turn or a statement whose number was given
again since gets a new one; a line of another kind that cannot come back is kept in a file beside, which
`line_files.problems` names.

Files of a transaction that never committed are restored from the rows (`settle_files`). That runs while no other
transaction writes, so the rows have exactly the acknowledged state. Line files are cut to their committed length; files
that were replaced are written from their rows, or deleted if they have none. A file that cannot be restored now keeps
its mark and is tried again before the next transaction.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import apsw

from mcp_memory.core.regular_files import is_own, read_own, remove_own, rename_own
from mcp_memory.core.text import iso
from mcp_memory.store import files, write_intents
from mcp_memory.store.sql import canvases, forgetting, pages
from mcp_memory.store.sql.line_files import lines_of
from mcp_memory.store.sql.line_rows import LineImport, Row, Statement, row_of, statement_of
from mcp_memory.store.sqlite import line_files
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.unreadable import LINE_FILES, WRONG, is_line_file
from mcp_memory.store.sqlite.upkeep import repair
from mcp_memory.store.sqlite.upkeep.comparison import LinesOfFile, of_file, results
from mcp_memory.store.values import TakenBack


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A file with lines that the database may lack, and the line file of its space that they belong in."""

    space: str
    path: str
    file: Path


def is_behind(con: apsw.Connection, home: Path) -> bool:
    """Whether a line file has more than the database knows of. Asks the size of each, and no more."""
    return any(True for _ in _longer(con, home))


def behind(con: apsw.Connection, home: Path) -> list[Lost]:
    """Return the line files that are longer than the database knows, but for those of another space."""
    found = [Lost(space=space, path=path, file=home / "spaces" / space / path) for space, path in _longer(con, home)]
    return [one for one in found if line_files.owner(con, one.space, one.path, files.beyond(one.file, 0)) is None]


def _longer(con: apsw.Connection, home: Path) -> Iterator[tuple[str, str]]:
    """Yield (space, path) of each line file that is longer than the database knows."""
    rows: Any = con.execute("SELECT s.name, f.path, f.bytes FROM file f JOIN space s ON s.id = f.space")
    known = {(space, path): length for space, path, length in rows}
    for space, name, size in sorted(_line_files(home)):
        if size > known.get((space, name), 0) and is_line_file(name):
            yield space, name


def _line_files(home: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (space, path, bytes) of every line file. Asked at each opening, so by the quickest way that there is."""
    for folder in (home / "spaces").glob("*/"):
        for within in ("", "conversations/"):
            with suppress(FileNotFoundError), os.scandir(folder / within) as entries:
                for entry in entries:
                    name = within + entry.name
                    if name.endswith(".jsonl") and (within or any(fnmatchcase(name, what) for what in LINE_FILES)):
                        with suppress(OSError):  # a link that leads nowhere
                            if entry.is_file(follow_symlinks=False):
                                yield folder.name, name, entry.stat().st_size


def name_again(con: apsw.Connection, home: Path) -> None:
    """Give spaces and sessions that lost their rows these back, where the lines of a folder have rows of theirs."""
    lost = "space NOT IN (SELECT id FROM space) OR session NOT IN (SELECT id FROM session)"
    if not con.execute(f"SELECT EXISTS (SELECT 1 FROM turn WHERE {lost})").get:
        return
    known = {name for (name,) in con.execute("SELECT name FROM space")}
    for folder in sorted((home / "spaces").glob("*/")):
        sessions, numbers = dict[tuple[int, int], str](), Counter[int]()
        for path in sorted((folder / "conversations").glob("*.jsonl")):
            for space, session, fields in line_files.known_rows(
                con, f"conversations/{path.name}", files.beyond(path, 0)
            ):
                numbers[space] += 1
                sessions[space, session or 0] = fields["session"]
        for number, _ in numbers.most_common(1):
            if folder.name not in known:
                con.execute("INSERT INTO space (id, name) VALUES (?, ?) ON CONFLICT DO NOTHING", (number, folder.name))
            con.executemany(
                "INSERT INTO session (id, space, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(session, space, name) for (space, session), name in sessions.items() if space == number],
            )


def misnamed(con: apsw.Connection, home: Path) -> dict[str, str]:
    """Return the folders that are of no space by their names, each with the one space whose lines are in it."""
    known = {name for (name,) in con.execute("SELECT name FROM space")}
    found = dict[str, set[str]]()
    for folder, path, _ in _line_files(home):
        if folder not in known:
            whose = line_files.owner(con, folder, path, files.beyond(home / "spaces" / folder / path, 0))
            found.setdefault(folder, set()).update([whose] if whose else [])
    return {folder: whose.pop() for folder, whose in found.items() if len(whose) == 1}


def take_back(con: apsw.Connection, home: Path, lost: Iterable[Lost]) -> list[TakenBack]:
    """Recover lines in this transaction, and note it for `noted`. Files and rows agree afterwards."""
    found = groupby(sorted(lost, key=lambda one: one.space), key=lambda one: one.space)
    con.execute("PRAGMA defer_foreign_keys = ON")
    done = [one for space, some in found for one in _Recovery(con, home, space, list(some)).all()]
    done = [one for one in done if one.lines or one.left]
    if done:
        _note(home, done)
    return done


def set_aside(home: Path) -> list[Path]:
    """Return the files that hold lines that were moved aside, here or by an earlier version."""
    return sorted(
        path
        for what in LINE_FILES
        for path in (home / "spaces").glob(f"*/{what}.*")
        if re.search(r"\.(?:beyond|damaged)-\d+$", path.name) and is_own(path)
    )


def bring_in(con: apsw.Connection, home: Path, set_aside_file: Callable[[Path], object]) -> Iterator[str]:
    """Take back what files that were moved aside hold, hand them to `set_aside_file`, and say so, a sentence each."""
    for path in set_aside(home):
        space, name = path.relative_to(home / "spaces").as_posix().split("/", 1)
        came = next(iter(take_back(con, home, [Lost(space=space, path=name.rpartition(".")[0], file=path)])), None)
        set_aside_file(path)
        told = [_told(came)] if came and came.lines else []
        told += [f"{came.left} lines cannot come back"] if came and came.left else []
        yield f"{space}: {path.name}: {'; '.join(told) or 'the database has all of its lines'}. The file is kept."


def _told(one: TakenBack) -> str:
    again = f", {one.renumbered} of them under new numbers, for theirs were given again" if one.renumbered else ""
    return f"{one.lines} lines that the database lacked are back{again}"


# --- reports to people ------------------------------------------------------------------------------

_NOTED = "recovered.jsonl"
_SHOWN = 100


def _note(home: Path, done: Iterable[TakenBack]) -> None:
    lines = [files.json_line({**asdict(one), "at": iso(one.at)}) for one in done]
    held = read_own(home / _NOTED) if (home / _NOTED).exists() else b""
    files.write_whole(home / _NOTED, b"".join([*held.splitlines(keepends=True)[-_SHOWN:], *lines]))


def noted(home: Path, space: str) -> list[TakenBack]:
    """Return the recoveries of a space, the last first; none if the note cannot be read."""
    try:
        lines: list[Any] = [json.loads(line) for line in read_own(home / _NOTED).splitlines()]
        found = [replace(TakenBack(**line), at=datetime.fromisoformat(line["at"])) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []
    return [one for one in reversed(found) if one.space == space]


# --- lines ------------------------------------------------------------------------------------------


class _Recovery:
    """Lines of one space that come back. A turn whose number is another's now waits for the others in `again`."""

    def __init__(self, con: apsw.Connection, home: Path, space: str, lost: Sequence[Lost]) -> None:
        self._con, self._lost = con, lost
        self.tx = SqliteTransaction(con, home, space)
        self._rows = LineImport(self.tx)
        self._came, self._left = Counter[Lost](), Counter[Lost]()
        self._again: list[tuple[Lost, Row]] = []
        self._moved = set[str]()
        """Sessions in which a turn has another place now: those said after it come after it still."""
        self._canvases = defaultdict[Lost, set[int]](set)
        self._last: int = self.tx.get("SELECT coalesce(max(id), 0) FROM turn WHERE space = :space")

    def all(self) -> list[TakenBack]:
        for one in results(LinesOfFile(tx=self.tx)):
            if isinstance(one.told, Row) and not self._rows.is_there(one.told):
                self._rows.put(one.told)
        self._turns()
        for name in (canvases.FILE, "offload-", forgetting.TOMBSTONES_FILE):
            for lost in self._lost:
                if lost.path.startswith(name):
                    self._others(lost)
        self._rows.finish()
        renumbered = Counter(lost for lost, _ in self._again)
        names: dict[str, str] = {}
        for _, row in self._again:
            self._put_again(row, names)
        self._rows.finish()
        list(repair.words(self._con))
        for lost in self._lost:
            self._bring_into_step(lost, is_whole=not (self._left[lost] or renumbered[lost]))
        return [
            TakenBack(
                at=datetime.now(UTC),
                space=lost.space,
                path=lost.path,
                lines=self._came[lost] + renumbered[lost],
                renumbered=renumbered[lost],
                left=self._left[lost],
                canvases=tuple(sorted(self._canvases[lost])),
            )
            for lost in self._lost
        ]

    def _put(self, lost: Lost, put: Callable[[], bool]) -> None:
        """Store the row of a line, unless no row can hold it."""
        try:
            with self._con:
                self._came[lost] += put()
        except WRONG:
            self._left[lost] += 1

    # the journal

    def _turns(self) -> None:
        """Recover turns in the order of their numbers: statements end earlier ones."""
        found: list[tuple[int, int, Lost, Row]] = []
        for place, lost in enumerate(self._lost):
            if lost.path.startswith("conversations/"):
                source = LinesOfFile(tx=self.tx)
                for *_, fields in source.lines(lost.path, lost.file):
                    try:
                        row = row_of(fields)
                        found.append((int(fields["turn"][1:]), place, lost, row))
                    except WRONG:
                        self._left[lost] += 1
                self._left[lost] += source.unread
        for *_, lost, row in sorted(found, key=lambda one: one[:2]):
            self._put(lost, partial(self._turn, lost, row))

    def _turn(self, lost: Lost, row: Row) -> bool:
        tx, told = self.tx, statement_of(row.fields) if row.fields.get("told") else None
        session = str(row.session)
        here = tx.one("SELECT session, sha256 FROM turn WHERE space = :space AND id = ?", row.key["id"])
        if here is not None and (here[0], bytes(here[1])) == (tx.session(session), row.values["sha256"]):
            return False
        if (
            here is not None
            or session in self._moved
            or tx.one(
                "SELECT 1 FROM turn WHERE space = :space AND session = ? AND position = ?",
                *(tx.session(session), row.values["position"]),
            )
            or (told and tx.one("SELECT 1 FROM atom WHERE space = :space AND id = ?", told.number))
        ):
            if row.values["content"] and not self._is_there(row):
                self._again.append((lost, row))
                self._moved.add(session)
            return False
        self._store(row, told)
        return True

    def _is_there(self, row: Row) -> bool:
        """Whether the session had the turn under another number: handed in again since, or taken back before."""
        values, session = row.values, self.tx.session(str(row.session))
        return bool(
            self.tx.one(
                "SELECT 1 FROM turn WHERE space = :space AND session = ? AND sha256 = ?"
                " AND (position = ? OR client_id = ? OR learned_at = ?) AND id <= ?",
                *(session, values["sha256"], values["position"], values["client_id"], values["learned_at"], self._last),
            )
        )

    def _store(self, row: Row, told: Statement | None) -> None:
        self._rows.put(row)
        if told is not None:
            self._rows.put_statement(told)
            for older in told.ends:
                self._rows.end(older, told)
        self.tx.touch(f"session:{row.session}")

    def _put_again(self, row: Row, names: dict[str, str]) -> None:
        """Store a turn whose number is another's now at the end of its session; `names` are statements' new ones."""
        tx, number = self.tx, self.tx.next("turn")
        position = tx.get(
            "SELECT coalesce(max(position), -1) + 1 FROM turn WHERE space = :space AND session = ?",
            tx.session(str(row.session)),
        )
        fields, told = {**row.fields, "turn": f"t{number}", "position": position}, row.fields.get("told")
        if told:
            names[told["atom"]] = f"a{tx.next('atom')}"
            lists = {name: [names.get(id, id) for id in told[name]] for name in ("ends", "supersedes") if name in told}
            fields["told"] = {**told, **lists, "atom": names[told["atom"]]}
        self._store(row_of(fields), statement_of(fields) if told else None)

    # tasks and tombstones

    def _others(self, lost: Lost) -> None:
        """Take lines of which the last about a row counts; what the rows say already brings nothing."""
        source = LinesOfFile(tx=self.tx)
        for one in of_file(source, lost.path, lost.file):
            if isinstance(one.told, Row) and not one.is_same:
                self._put(lost, partial(self._other, lost, one.told, one.held))
        self._left[lost] += source.unread

    def _other(self, lost: Lost, row: Row, held: Any) -> bool:
        """Raises ValueError where the number is another's, or its row has moved on."""
        fields = row.fields
        if held is None:
            if row.table != "session" and self._rows.is_there(row):
                raise ValueError
        elif any(held[name] != fields[name] for name in _SAME[row.table]):
            raise ValueError
        self._rows.put(row)
        if number := row.values.get("canvas") or row.key.get("canvas"):
            self._canvases[lost].add(int(str(number)))
        return True

    def _bring_into_step(self, lost: Lost, *, is_whole: bool) -> None:
        """Have the file end where the rows do; one of which something cannot come back is kept beside it."""
        target, tx = self.tx.folder / lost.path, self.tx
        content = files.content_of(target) or b""
        is_edited = content.startswith(b"\xef\xbb\xbf") or b"\r\n" in content or not content.endswith(b"\n")
        if self._left[lost] and lost.file == target:
            rename_own(target, line_files.aside(target, "beyond"))
        if is_whole and not is_edited and lost.file == target:
            line_files.note_length(self._con, tx.space, lost.path, len(content))
        else:
            tx.files.rewrite(lost.path, lines_of(tx, lost.path))


_SAME = {
    "record": ("session", "node_id", "ref"),
    "canvas_version": ("of", "kind", "crc"),
    "tombstone": ("at",),
    "session": (),
}
"""By table, what two lines about the same row have in common."""


# --- files of uncommitted transactions --------------------------------------------------------------


logger = logging.getLogger(__name__)


def settle_files(con: apsw.Connection, home: Path, marks: Sequence[Path]) -> list[Path]:
    """Restore the files that these marks name; return the marks to delete after the commit."""
    settled: list[Path] = []
    for mark in marks:
        try:
            for path, written in write_intents.paths_of(mark).items():
                _settle_file(con, home, path, written)
            settled.append(mark)
        except OSError as error:
            logger.warning("a write that was cut short cannot be tidied up yet: %s", error)
    return settled


def _settle_file(con: apsw.Connection, home: Path, path: PurePosixPath, written: write_intents.Written) -> None:
    target = home / path
    for beside in target.parent.glob(f".{target.name.replace('[', '[[]')}.*.tmp"):
        remove_own(beside)
    match path.parts:
        case ("spaces", space, "mmds", name):
            _settle_canvas(SqliteTransaction(con, home, space), name)
        case ("spaces", space, "scenes", _):
            tx = SqliteTransaction(con, home, space)
            if tx.space:
                pages.write_scene_files(tx)
        case ("spaces", space, "refs", name):
            tx = SqliteTransaction(con, home, space)
            if tx.one("SELECT 1 FROM ref WHERE space = :space AND path = ?", f"refs/{name}") is None:
                remove_own(target)
        case ("spaces", space, *rest) if target.suffix == ".jsonl":
            _settle_lines(SqliteTransaction(con, home, space), "/".join(rest), written)
        case _:
            pass  # no row has its content: leave it


def _settle_canvas(tx: SqliteTransaction, name: str) -> None:
    """Write the file of a canvas from its row, and delete its files under other names; `name` is one of them."""
    number = name.partition("-")[0]
    row = tx.one(
        "SELECT label, text FROM canvas WHERE space = :space AND number = ?", int(number) if number.isdecimal() else 0
    )
    due = None if row is None else tx.folder / canvases.path_of(int(number), row[0])
    for path in (tx.folder / "mmds").glob(f"{number}-*.mmd"):
        if path != due:
            remove_own(path)
    if row is not None and due is not None:
        files.write_whole(due, row[1].encode())


def _settle_lines(tx: SqliteTransaction, path: str, written: write_intents.Written) -> None:
    known = line_files.committed(tx.con, tx.space, path)
    # A database that has lost its latest part knows of less than was committed: those lines are evidence.
    committed = max(known or 0, written.length)
    if tx.space and known is not None and written.whole:
        tx.files.rewrite(path, lines_of(tx, path))
    elif not committed:
        remove_own(tx.folder / path)
    elif files.beyond(tx.folder / path, committed):
        files.append(tx.folder / path, (), committed=committed)
