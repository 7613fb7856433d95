"""Lines that the files of a home have and its database lacks, taken back into the database.

A database falls behind its files where its log of writes was deleted or torn, or where an older copy took its place.
What the files have was acknowledged: it is evidence. Each line comes back under its own number where that is free.
A turn or a statement whose number was given again since gets a new one; a line of another kind that cannot come back is
kept in a file beside, which `linefiles.problems` names.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.text import iso
from mcp_memory.core.types import NewTurn
from mcp_memory.store import files
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.protocol import NewAtom, TakenBack
from mcp_memory.store.sql import atoms, canvases, citation_rows, tombstones, turns
from mcp_memory.store.sql.line_files import lines_of
from mcp_memory.store.sqlite import line_files
from mcp_memory.store.sqlite.rows import from_ms, session_id, space_for, to_ms, touch
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.unreadable import LINE_FILES, WRONG, is_line_file
from mcp_memory.store.sqlite.upkeep import derived_rows, rebuild, repair, rows_of_files

__all__ = ["Lost", "behind", "bring_in", "is_behind", "lost_in", "misnamed", "noted", "set_aside", "take_back"]

logger = logging.getLogger(__name__)

_CANVAS = re.compile(rb"%% (\{.*\})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Lines that the database may lack: `path` of a line file within a space's folder, and what it holds of them."""

    space: str
    path: str
    content: bytes
    aside: bool = False
    """Whether it is of a file that was moved aside, and its lines are not in the line file."""


def is_behind(con: apsw.Connection, home: Path) -> bool:
    """Whether a line file has more than the database knows of. Asks the size of each, and no more."""
    return any(True for _ in _longer(con, home))


def behind(con: apsw.Connection, home: Path) -> list[Lost]:
    """Return what line files have behind the length that the database knows, but for files of another space."""
    found = (
        Lost(space=space, path=path, content=_from_a_line_on(home / "spaces" / space / path, length))
        for space, path, length in _longer(con, home)
    )
    known = {name for (name,) in con.execute("SELECT name FROM space")} if derived_rows.nameless(con) else None
    return [
        one
        for one in found
        if line_files.owner(con, one.space, one.path, one.content) is None and (known is None or one.space in known)
    ]


def _longer(con: apsw.Connection, home: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (space, path, bytes that the database knows of) of each line file that is longer."""
    rows: Any = con.execute("SELECT s.name, f.path, f.bytes FROM file f JOIN space s ON s.id = f.space")
    known = {(space, path): length for space, path, length in rows}
    for space, name, size in sorted(_line_files(home)):
        length = known.get((space, name), 0)
        if size > length and is_line_file(name):
            yield space, name, length


def _line_files(home: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (space, path, bytes) of every line file. Asked at each opening, so by the quickest way that there is."""
    for folder in (home / "spaces").glob("*/"):
        for within in ("", "conversations/"):
            with suppress(FileNotFoundError), os.scandir(folder / within) as entries:
                for entry in entries:
                    name = within + entry.name
                    if name.endswith(".jsonl") and (within or any(fnmatchcase(name, what) for what in LINE_FILES)):
                        with suppress(OSError):  # a link that leads nowhere
                            if entry.is_file():
                                yield folder.name, name, entry.stat().st_size


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
    """Take lines back in this transaction; files and rows are in step then. What came back is noted, for `noted`."""
    done = [one for one in _Recovery(con, home, list(lost)).all() if one.lines or one.left]
    if done:
        _note(home, done)
    return done


def set_aside(home: Path) -> list[Path]:
    """Return the files that hold lines that were moved aside, here or by an earlier version."""
    return sorted(
        path
        for what in LINE_FILES
        for path in (home / "spaces").glob(f"*/{what}.*")
        if re.search(r"\.(?:beyond|damaged)-\d+$", path.name) and path.is_file()
    )


def lost_in(home: Path, path: Path) -> Lost:
    """Return what such a file holds."""
    space, name = path.relative_to(home / "spaces").as_posix().split("/", 1)
    return Lost(space=space, path=name.rpartition(".")[0], content=read_regular(path), aside=True)


def bring_in(con: apsw.Connection, home: Path, set_aside_file: Callable[[Path], object]) -> Iterator[str]:
    """Take back what files that were moved aside hold, hand them to `set_aside_file`, and say so, a sentence each."""
    for path in set_aside(home):
        lost = lost_in(home, path)
        came = next(iter(take_back(con, home, [lost])), None)
        set_aside_file(path)
        told = [_told(came)] if came and came.lines else []
        told += [f"{came.left} lines cannot come back"] if came and came.left else []
        yield f"{lost.space}: {path.name}: {'; '.join(told) or 'the database has all of its lines'}. The file is kept."


def _told(one: TakenBack) -> str:
    again = f", {one.renumbered} of them under new numbers, for theirs were given again" if one.renumbered else ""
    return f"{one.lines} lines that the database lacked are back{again}"


# --- what came back, for people ---------------------------------------------------------------------

_NOTED = "recovered.jsonl"
_SHOWN = 100


def _note(home: Path, done: Iterable[TakenBack]) -> None:
    lines = [files.json_line({**asdict(one), "at": iso(one.at)}) for one in done]
    held = read_regular(home / _NOTED) if (home / _NOTED).exists() else b""
    files.write_whole(home / _NOTED, b"".join([*held.splitlines(keepends=True)[-_SHOWN:], *lines]))


def noted(home: Path, space: str) -> list[TakenBack]:
    """Return what was taken back, the last first; nothing of a note that cannot be read."""
    try:
        lines: list[Any] = [json.loads(line) for line in read_regular(home / _NOTED).splitlines()]
        found = [replace(TakenBack(**line), at=datetime.fromisoformat(line["at"])) for line in lines]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return [one for one in reversed(found) if one.space == space]


# --- lines ------------------------------------------------------------------------------------------


def _from_a_line_on(path: Path, length: int) -> bytes:
    """Return what is behind `length`; all of it where no line ends there, as in a file of another database."""
    beyond = files.beyond(path, max(0, length - 1))
    return beyond[1:] if length and beyond.startswith(b"\n") else files.beyond(path, 0)


@dataclass
class _File:
    """A file with the lines that were not there: `again` get new numbers, `left` cannot come back."""

    lost: Lost
    number: int
    """Of the space."""
    folder: Path
    came: int = 0
    torn: bool = False
    again: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    left: list[bytes] = field(default_factory=list[bytes])
    canvases: set[int] = field(default_factory=set[int])

    def lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        content = self.lost.content.removeprefix(b"\xef\xbb\xbf")
        self.torn |= content != self.lost.content or b"\r\n" in content  # an editor's marks: it is written anew
        for line in content.splitlines(keepends=True):
            if not line.endswith(b"\n"):  # never acknowledged: a line is whole before its row is committed
                self.torn = True
                continue
            try:
                fields: Any = json.loads(line)
                if not isinstance(fields, dict):
                    raise ValueError
            except (ValueError, RecursionError):
                self.left.append(line)
            else:
                yield line, fields

    def transaction(self, con: apsw.Connection) -> SqliteTransaction:
        return SqliteTransaction(con, self.folder.parent.parent, self.lost.space)

    def take(self, con: apsw.Connection, take: Callable[[dict[str, Any]], bool | None]) -> None:
        """Have each line taken: True where it came back, None where its row is there, False where it cannot be.

        Of lines about one row the last counts, and one that the row says already brings nothing.
        """
        there = {_about(fields): fields for fields in map(json.loads, lines_of(self.transaction(con), self.lost.path))}
        last = {_about(fields): (line, fields) for line, fields in self.lines()}
        for about, (line, fields) in last.items():
            idle = {**fields, "active": None, "activated": None} if "active" in fields else None
            if there.get(about, idle) != fields:  # of a session without an active canvas the rows say nothing
                self.try_one(line, lambda fields=fields: take(fields))

    def try_one(self, line: bytes, take: Callable[[], bool | None]) -> None:
        try:
            done = take()
        except WRONG:
            done = False
        if done:
            self.came += 1
        elif done is False:
            self.left.append(line)


def _about(fields: dict[str, Any]) -> str:
    """Return which row a line that is no turn's is about; lines from before they were numbered are each their own."""
    name = next((name for name in ("record", "edit", "canvas", "tombstone") if name in fields), None)
    if name is None and {"session", "active"} <= fields.keys():
        name = "session"
    return json.dumps([name, fields[name]] if name else fields)


class _Recovery:
    def __init__(self, con: apsw.Connection, home: Path, lost: list[Lost]) -> None:
        self._con = con
        self._files = [
            _File(lost=one, number=space_for(con, one.space), folder=home / "spaces" / one.space) for one in lost
        ]
        self._refilled = rows_of_files.Refilled()
        self._last: int = con.execute("SELECT coalesce(max(id), 0) FROM turn").get
        self._moved = set[int]()
        """Sessions in which a turn has another place now: those said after it come after it still."""
        self._atoms: dict[int, dict[str, str]] = {}
        """By space: statements that have another number now."""

    def all(self) -> list[TakenBack]:
        con = self._con
        self._results()
        self._turns()
        for name, take in ((canvases.FILE, self._canvas), ("offload-", self._record), (tombstones.FILE, self._gone)):
            for file in self._files:
                if file.lost.path.startswith(name):
                    file.take(con, lambda fields, file=file, take=take: take(file, fields))
        for file in self._files:
            self._pictures(file)
            self._bring_into_step(file)
        con.execute(
            "UPDATE fact SET valid_to = a.valid_to FROM atom a WHERE a.id = fact.atom"
            " AND a.valid_to IS NOT fact.valid_to"
        )
        rebuild.facts(con, self._refilled, has_old=False)
        rebuild.mentions(con, self._refilled)
        con.executemany(
            "INSERT OR IGNORE INTO held (space, id, reasons, at) VALUES (?, ?, ?, ?)",
            self._refilled.held,  # pyright: ignore[reportArgumentType]
        )
        con.execute(
            "UPDATE fact SET tombstone = a.tombstone FROM atom a WHERE a.id = fact.atom"
            " AND a.tombstone IS NOT fact.tombstone"
        )
        list(repair.words(con))
        for file in self._files:
            for fields in file.again:
                self._tell_again(file, fields)
        return [
            TakenBack(
                at=datetime.now(UTC),
                space=file.lost.space,
                path=file.lost.path,
                lines=file.came + len(file.again),
                renumbered=len(file.again),
                left=len(file.left),
                canvases=tuple(sorted(file.canvases)),
            )
            for file in self._files
        ]

    def _results(self) -> None:
        """Take in the results whose files no row knows."""
        for space, folder in {file.number: file.folder for file in self._files}.items():
            known = {path for (path,) in self._con.execute("SELECT path FROM ref WHERE space = ?", (space,))}
            for path in sorted((folder / "refs").glob("*.md")):
                if f"refs/{path.name}" not in known:
                    rows_of_files.take_ref(self._con, space, path, self._refilled)

    # the journal

    def _turns(self) -> None:
        """Take turns in the order of their numbers: what was told ends what was told before it."""
        found: list[tuple[int, int, bytes, dict[str, Any], _File]] = []
        for place, file in enumerate(self._files):
            if file.lost.path.startswith("conversations/"):
                for line, fields in file.lines():
                    try:
                        found.append((int(fields["turn"][1:]), place, line, fields, file))
                    except WRONG:
                        file.left.append(line)
        for number, _, line, fields, file in sorted(found, key=lambda one: one[:2]):
            file.try_one(line, lambda number=number, fields=fields, file=file: self._turn(file, number, fields))

    def _turn(self, file: _File, number: int, fields: dict[str, Any]) -> bool | None:
        con, told = self._con, fields.get("told")
        row = rows_of_files.turn_row(con, file.number, fields)
        session, position, client, learned, digest = row[2], row[3], row[7], row[10], row[11]
        held: Any = con.execute("SELECT session, sha256 FROM turn WHERE id = ?", (number,)).fetchone()
        if held is not None and held[0] == session and bytes(held[1]) == digest:
            return None
        told_as = int(told["atom"][1:]) if told else None
        if (
            session in self._moved
            or held is not None
            or con.execute("SELECT 1 FROM turn WHERE session = ? AND position = ?", (session, position)).get
            or con.execute("SELECT 1 FROM atom WHERE id = ?", (told_as,)).get
        ):
            if fields["content"] and not self._is_there(session, position, client, digest, learned):
                file.again.append(fields)
                self._moved.add(session)
            return None
        with con:
            con.execute(rows_of_files.INSERT_TURN, row)
            if why := fields.get("held"):
                self._refilled.held.append((file.number, fields["turn"], json.dumps(why), learned))
            if told and told_as is not None:
                note = (number, file.number, fields["content"], learned, None)
                rows_of_files.take_told(con, self._refilled, told_as, note, self._renamed(file.number, told))
        if fields["role"] != "note":
            citation_rows.note(file.transaction(con), fields["turn"], fields["content"])
        touch(con, file.number, f"session:{fields['session']}")
        return True

    def _is_there(self, session: int, position: int, client: str | None, digest: bytes, learned: int) -> bool:
        """Whether the session had the turn under another number: handed in again since, or taken back before."""
        return bool(
            self._con.execute(
                "SELECT 1 FROM turn WHERE session = ?1 AND sha256 = ?2 AND id <= ?6"
                " AND (position = ?3 OR client_id = ?4 OR learned_at = ?5)",
                (session, digest, position, client, learned, self._last),
            ).get
        )

    def _renamed(self, space: int, told: Mapping[str, Any]) -> dict[str, Any]:
        names = self._atoms.get(space, {})
        lists = {name: [names.get(id, id) for id in told.get(name, ())] for name in ("ends", "supersedes")}
        return {**told, **{name: ids for name, ids in lists.items() if name in told}}

    def _tell_again(self, file: _File, fields: dict[str, Any]) -> None:
        """Store a turn whose number is another's now at the end of its session; what was told, as if told now."""
        con, told = self._con, fields.get("told")
        learned = datetime.fromisoformat(fields["learned_at"])
        if told:
            told = self._renamed(file.number, told)
            new = NewAtom(
                **{name: told[name] for name in ("kind", "priority", "confidence", "entity", "relation", "value")},
                text=fields["content"],
                session=fields["session"],
                valid_from=from_ms(told["valid_from"]),
                valid_to=None if told["valid_to"] is None else from_ms(told["valid_to"]),
                single_valued=told["single_valued"],
                because=told.get("because", ""),
                entities=told["entities"],
                source=told.get("source", "user"),
                held=told.get("held", ()),
            )
            try:
                written = atoms.put(file.transaction(con), new, now=learned)
                self._atoms.setdefault(file.number, {})[told["atom"]] = written.atom.id
                return
            except McpMemoryError as error:  # forgotten since: its note is kept, as what was said
                logger.warning("%s was not told again: %s", told["atom"], error)
        said = datetime.fromisoformat(fields["said_at"])
        turn = NewTurn(
            role=fields["role"],
            name=fields["name"],
            content=fields["content"],
            client_id=fields["client_id"],
            said_at=said,
            guessed=evidence_hash(NewTurn(role=fields["role"], name=fields["name"], content=fields["content"])).hex()
            == fields["sha256"],
            held=tuple(fields.get("held", ())),
        )
        tx = file.transaction(con)
        stored = turns.insert(tx, fields["session"], [turn], now=learned, hashes=[evidence_hash(turn)])
        turns.write_journal(tx, stored, now=learned)
        tx.touch(f"session:{fields['session']}")

    # tasks

    def _canvas(self, file: _File, fields: dict[str, Any]) -> bool | None:
        con = self._con
        if "edit" in fields:
            held = con.execute(
                "SELECT space, canvas, kind, at FROM canvas_edit WHERE id = ?", (fields["edit"],)
            ).fetchone()
            if held is not None and held != (file.number, fields["canvas"], fields["kind"], fields["at"]):
                return False
            file.canvases.add(fields["canvas"])
        elif "canvas" in fields:
            held = con.execute(
                "SELECT s.name, c.version FROM canvas c JOIN session s ON s.id = c.session"
                " WHERE c.space = ? AND c.number = ?",
                (file.number, fields["canvas"]),
            ).fetchone()
            if held is not None and (held[0] != fields["of"] or held[1] > fields["version"]):
                return False
            file.canvases.add(fields["canvas"])
        with con:
            rows_of_files.take_canvas(con, file.number, fields)
        return True

    def _record(self, file: _File, fields: dict[str, Any]) -> bool | None:
        con, session = self._con, session_id(self._con, file.number, fields["session"])
        held = con.execute("SELECT space, session, node, ref FROM record WHERE id = ?", (fields["record"],)).fetchone()
        if held is not None and held != (file.number, session, fields["node_id"], fields["ref"]):
            return False
        with con:
            rows_of_files.take_record(con, file.number, fields)
        file.canvases.add(int(fields["node_id"].partition("-")[0]))
        return True

    def _pictures(self, file: _File) -> None:
        """Give canvases whose lines came back the drawing of their file, until they are drawn from their records."""
        for number in file.canvases:
            for path in (file.folder / "mmds").glob(f"{number:03}-*.mmd"):
                text = files.content_of(path) or b""
                status = "doing"
                if head := _CANVAS.match(text):
                    with_status: Any = json.loads(head[1])
                    status = str(with_status.get("status", status))
                self._con.execute(
                    "UPDATE canvas SET text = ?, status = ? WHERE space = ? AND number = ?",
                    (text.decode(errors="replace"), status, file.number, number),
                )

    # what was forgotten

    def _gone(self, file: _File, fields: dict[str, Any]) -> bool | None:
        con, number = self._con, int(fields["tombstone"][1:])
        held = con.execute("SELECT space, at FROM tombstone WHERE id = ?", (number,)).fetchone()
        if held is not None:
            if held != (file.number, to_ms(datetime.fromisoformat(fields["at"]))):
                return False
            for table in ("turn", "atom", "fact", "ref"):
                con.execute(f"UPDATE {table} SET tombstone = NULL WHERE tombstone = ?", (number,))
            con.execute("DELETE FROM forgotten WHERE tombstone = ?", (number,))
            con.execute("PRAGMA defer_foreign_keys = ON")
            con.execute("DELETE FROM tombstone WHERE id = ?", (number,))
        with con:
            rows_of_files.take_tombstone(con, file.number, fields, is_alone=True)
            # What is there with its words is not purged: it can be purged again.
            kept = con.execute(
                "SELECT EXISTS (SELECT 1 FROM turn WHERE tombstone = ?1 AND content <> '')"
                " OR EXISTS (SELECT 1 FROM atom WHERE tombstone = ?1 AND text <> '')",
                (number,),
            ).get
            if kept:
                for table in ("turn", "atom", "ref"):
                    con.execute(f"UPDATE {table} SET purged_at = NULL WHERE tombstone = ?", (number,))
                con.execute("UPDATE tombstone SET purged_at = NULL WHERE id = ?", (number,))
        return True

    # the file

    def _bring_into_step(self, file: _File) -> None:
        """Have the file end where the rows do; what cannot come back is kept beside it."""
        target = file.folder / file.lost.path
        if file.left and not file.lost.aside:
            files.write_whole(line_files.aside(target, "beyond"), b"".join(file.left))
        if file.left or file.again or file.torn or file.lost.aside or not target.exists():
            tx = file.transaction(self._con)
            tx.files.rewrite(file.lost.path, lines_of(tx, file.lost.path))
        else:
            line_files.note_length(self._con, file.number, file.lost.path, target.stat().st_size)
