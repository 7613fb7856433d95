"""Rebuild: adds the rows that are in the files of a home to a database that lacks them.

The database is whole and not open elsewhere: a copy of the home's database, a backup of it, the rows that `salvage`
read around the torn pages, or an empty database. Every line of a file is verified as far as possible
(`line_forms.row_of`), and becomes a row under its own number. Indexes, vectors and other derived tables are recreated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged, StoreUnavailable
from mcp_memory.core.regular_files import read_own
from mcp_memory.store import files
from mcp_memory.store.row_types import RefRow, SessionRow, TombstoneRow, TurnRow, VersionRow
from mcp_memory.store.sql import canvas_rows, copies, quota_rows, tombstone_rows
from mcp_memory.store.sql.line_forms import LineRow, key_of, result_of, row_of
from mcp_memory.store.sql.line_import import LineImport, key_columns, statement_of, statements, undone_corrections
from mcp_memory.store.sql.row_codec import table_of
from mcp_memory.store.sql.transaction import HomeTransaction, catch_up_counters, to_ms
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite.copies import kept_beside
from mcp_memory.store.sqlite.index import terms
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.unreadable import WRONG, Unreadable
from mcp_memory.store.sqlite.upkeep import repair
from mcp_memory.store.sqlite.upkeep.snapshots import open_database
from mcp_memory.store.values import Layer

_LAYERS: tuple[Layer, ...] = ("turn", "atom")
_NOTES = 20


@dataclass(kw_only=True)
class Built:
    """The result of a rebuild.

    `added`: rows that the database lacked, by kind. `dangling`: rows that were left out because they referred to
    missing rows, by table. `back`: number of purged rows that the old database had with their words, and that are
    forgotten now, by (space, tombstone). `notes`: sentences about damaged files.
    """

    added: Counter[str] = field(default_factory=Counter[str])
    dangling: Counter[str] = field(default_factory=Counter[str])
    back: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    notes: list[str] = field(default_factory=list[str])

    def note(self, text: str) -> None:
        if len(self.notes) < _NOTES:
            self.notes.append(text)


def build(new: Path, home: Path, *, is_current: bool, unreadable: Collection[Unreadable] = ()) -> Built:
    """Add the rows of the files of a home to the database `new`.

    With `is_current`, `new` is a copy of the home's database, so its rows are right and only missing rows are added.
    Otherwise the files are newer, and rows that are in both are taken from the files. Rows with values that were
    `unreadable` are always taken from the files. Raises StoreUnavailable if the database has turns of a space without
    its name.
    """
    damaged = {(value.table, value.values) for value in unreadable}
    built = Built()
    with open_database(new, write=True) as con:
        con.execute("BEGIN")
        if not is_current and (identity := homes.identity(home)):
            con.execute("UPDATE home SET uuid = ?, key = ?", identity)
        guard = con.execute("SELECT sql FROM sqlite_master WHERE name = 'turn_is_evidence'").get
        con.execute("DROP TRIGGER IF EXISTS turn_is_evidence")
        quotas = quota_rows.set_aside(HomeTransaction(con))  # nothing that is in the files is left out
        _require_names(con, home)
        built.dangling.update(_remove_dangling(con, only="space"))  # before its number is given again
        names = {str(name) for (name,) in con.execute("SELECT name FROM space")}
        for name in sorted(names | {path.name for path in (home / "spaces").glob("*/") if path.is_dir()}):
            _SpaceFiles(SqliteTransaction(con, home, name), built, is_current=is_current, damaged=damaged).add()
        built.dangling.update(_remove_dangling(con))
        _make_derived(con, home)
        quota_rows.put_back(HomeTransaction(con), quotas)
        if guard:
            con.execute(guard)
        con.execute("COMMIT")
    return built


def _make_derived(con: apsw.Connection, home: Path) -> None:
    """Index the words of all rows, correct the counters, and record the lengths of the line files of the rows."""
    for layer in _LAYERS:
        con.execute(f"INSERT INTO {layer}_terms ({layer}_terms) VALUES ('delete-all')")
    con.execute("DELETE FROM term_range")
    list(repair.repair_word_index(con))
    for layer in _LAYERS:
        newest: Any = con.execute(f"SELECT space, max(id) FROM {layer} GROUP BY space").fetchall()
        for space, last in newest:
            terms.cover(con, layer, space, 1, last)
    con.execute("DELETE FROM file")
    names: Any = con.execute("SELECT name FROM space").fetchall()
    for (name,) in names:
        tx = SqliteTransaction(con, home, name)
        catch_up_counters(tx)
        for path in copies.line_files(tx):
            tx.insert("file", path=path, bytes=sum(map(len, copies.lines(tx, path))))


class _SpaceFiles:
    """The files of a space, and the rows that are added from them.

    If the database lost its latest turns and stored other turns since, the number or position of a turn in a file may
    belong to another turn. The turn in the file then gets a new number at the end of its session.
    """

    def __init__(
        self,
        tx: SqliteTransaction,
        built: Built,
        *,
        is_current: bool,
        damaged: Collection[tuple[str, tuple[Any, ...]]],
    ) -> None:
        self.tx, self._built, self._is_current, self._damaged = tx, built, is_current, damaged
        self._paths = [
            *sorted(path for pattern in copies.LINE_FILES for path in tx.folder.glob(pattern)),
            *kept_beside(tx.home, tx.name),
        ]
        self._notes: dict[str, TurnRow] = {}
        self._moved: list[TurnRow] = []
        self._moved_sessions, self._restored_sessions = set[str](), set[str]()
        self._forgotten, self._reused = set[str](), set[str]()
        """Ids that are forgotten according to the files, and ids that the database has given to other rows."""

    def add(self) -> None:
        if not (self.tx.space or self._paths or any(self.tx.folder.glob("refs/*.md"))):
            return
        self._rows = LineImport(self.tx)
        for row in self._results():
            self._put("results", row)
        tombstones = self._last_rows(tombstone_rows.TOMBSTONES_FILE)
        valid = [row for row in tombstones.values() if isinstance(row, TombstoneRow)]
        self._forgotten = {id for row in valid if row.undone_at is None for id in row.ids}
        for fields in self._lines("conversations/"):
            if isinstance(row := self._row(fields), TurnRow):
                self._add_turn(row)
        self._add_statements(undone=undone_corrections(valid))
        for rows in (self._last_rows(canvas_rows.FILE), self._last_rows("offload-"), tombstones):
            self._add_all(rows)
        self._rows.finish()
        self._add_moved()
        self._rows.finish()
        for number in canvas_rows.differing_canvases(self.tx):
            canvas_rows.draw(self.tx, number)
        self._built.back |= {(self.tx.name, tombstone): count for tombstone, count in self._rows.kept.items()}

    # reading

    def _lines(self, prefix: str) -> Iterator[dict[str, Any]]:
        """Yield the fields of the lines of line files whose paths begin with `prefix`; note lines that are damaged."""
        for file in self._paths:
            path = file.relative_to(self.tx.folder).as_posix()
            stream = files.open_regular(file) if path.startswith(prefix) else None
            if stream is None:
                continue
            with stream:
                for number, line in enumerate(stream, start=1):
                    if not line.endswith(b"\n"):
                        break  # it was never written to its end
                    try:
                        fields: Any = json.loads(line)
                        key_of(fields)
                    except WRONG:
                        self._built.note(f"{self.tx.name}: line {number} of {path} cannot be read.")
                    else:
                        yield fields

    def _last_rows(self, prefix: str) -> dict[tuple[str, str], LineRow | None]:
        """Return the rows of line files by kind and name, each from its last line; None if that line is invalid."""
        last = {key_of(fields): fields for fields in self._lines(prefix)}
        return {key: self._row(fields) for key, fields in last.items()}

    def _row(self, fields: dict[str, Any]) -> LineRow | None:
        try:
            row = row_of(fields)
            if isinstance(row, TurnRow) and row.told is not None:
                statement_of(row)
            return row
        except WRONG:
            kind, name = key_of(fields)
            self._built.note(f"{self.tx.name}: {name[:40]} of the {kind} in the files is invalid.")
            return None

    def _results(self) -> Iterator[RefRow]:
        for path in sorted((self.tx.folder / "refs").glob("*.md")):
            name = f"refs/{path.name}"
            try:
                yield result_of(files.read_ref_file(read_own(path))[0], name)
            except OSError as error:
                self._built.note(f"{self.tx.name}: {name} cannot be read ({error.strerror}).")
            except Damaged as error:
                self._built.note(f"{self.tx.name}: {name} is damaged: {error}.")
            except WRONG:
                self._built.note(f"{self.tx.name}: {name} is damaged: its front matter says too little.")

    # adding

    def _put(self, kind: str, row: LineRow) -> None:
        """Store a row that the database lacks, or has in an older state."""
        is_restored = isinstance(row, SessionRow) and row.name in self._restored_sessions
        is_there = self._rows.is_there(row) and not is_restored
        is_damaged = (table_of(row).name, (self.tx.space, *key_columns(row).values())) in self._damaged
        if is_there and self._is_current and not is_damaged:
            return
        if self._store(lambda: self._rows.put(row)):
            self._built.added[kind] += not is_there

    def _store(self, put: Callable[[], None]) -> bool:
        """Store a row by `put` in a savepoint. Return False, with nothing stored, if the row is invalid."""
        try:
            with self.tx.con:
                put()
        except WRONG:
            return False
        return True

    def _add_turn(self, row: TurnRow) -> None:
        tx, digest = self.tx, bytes.fromhex(row.sha256)
        stored = tx.one(
            "SELECT session, sha256, content, purged_at FROM turn WHERE space = :space AND id = ?",
            *key_columns(row).values(),
        )
        if self._is_current and stored is not None and stored[3] is not None:
            return  # a purged turn never comes back
        session = tx.session(row.session)
        if stored is not None and session is None and bytes(stored[1]) == digest:
            session = stored[0]
            self._restored_sessions.add(row.session)
            tx.run("INSERT INTO session (space, id, name) VALUES (:space, ?, ?) ON CONFLICT DO NOTHING", session,
                   row.session)  # fmt: skip
        is_same = stored is not None and (stored[0], bytes(stored[1])) == (session, digest)
        if self._is_current and not is_same and (stored is not None or self._is_taken(session, row)):
            self._reused.add(row.id)
            if row.content and row.id not in self._forgotten and not self._has_words(session, row):
                self._moved.append(row)
                self._moved_sessions.add(row.session)
            return
        if row.told:
            self._notes[row.id] = row
        if (
            stored is not None and is_same and row.content and stored[2] != row.content
        ):  # changed outside of this program: the line proves its hash
            self._rows.put(row)
            self._built.added["turns"] += 1
        else:
            self._put("turns", row)

    def _is_taken(self, session: int | None, row: TurnRow) -> bool:
        """Return whether the position of a turn in its session now belongs to another turn."""
        return (
            row.session in self._moved_sessions
            or self.tx.one(
                "SELECT 1 FROM turn WHERE space = :space AND session = ? AND position = ?", session, row.position
            )
            is not None
        )

    def _has_words(self, session: int | None, row: TurnRow) -> bool:
        """Return whether a session has the turn under another number."""
        return (
            self.tx.one(
                "SELECT 1 FROM turn WHERE space = :space AND session = ? AND sha256 = ?"
                " AND (position = ? OR client_id = ? OR learned_at = ?)",
                *(session, bytes.fromhex(row.sha256), row.position, row.client_id, to_ms(row.learned_at)),
            )
            is not None
        )

    def _add_statements(self, *, undone: set[str]) -> None:
        """Add explicit statements in their state after all notes; add none if any note is damaged."""
        try:
            by_number = statements(self._notes.values(), undone=undone)
        except WRONG:  # a note is damaged
            by_number = {}
        present = set(self.tx.column("SELECT id FROM atom WHERE space = :space")) if self._is_current else set[int]()
        for number, statement in sorted(by_number.items()):
            if number in present:
                continue
            is_new = self.tx.one("SELECT 1 FROM atom WHERE space = :space AND id = ?", number) is None
            if self._store(lambda statement=statement: self._rows.put_statement(statement)):
                self._built.added["statements"] += is_new
                for older in statement.ends if f"a{number}" not in undone else ():
                    if older in present:
                        self._rows.end(older, statement)

    def _add_all(self, rows: Mapping[tuple[str, str], LineRow | None]) -> None:
        for (kind, name), row in rows.items():
            if row is None:
                continue
            if self._is_about_other_rows(row):
                self._built.note(f"{self.tx.name}: {name} in the files is about rows that the database has lost.")
            else:
                self._put(kind, row)

    def _is_about_other_rows(self, row: LineRow) -> bool:
        """Return whether a tombstone or version of a canvas has an id that the database gave to another row since."""
        match row:
            case TombstoneRow():
                return not self._reused.isdisjoint(row.ids)
            case VersionRow():
                sql = "SELECT 1 FROM canvas_version WHERE space = :space AND canvas = ? AND version = ? AND crc <> ?"
                if self.tx.one(sql, row.canvas, row.version, row.crc) is not None and self._is_current:
                    self._reused.add(f"c{row.canvas}")
                return f"c{row.canvas}" in self._reused
            case _:
                return False

    def _add_moved(self) -> None:
        tx, names = self.tx, dict[str, str]()
        for row in self._moved:
            position = tx.get(
                "SELECT coalesce(max(position), -1) + 1 FROM turn WHERE space = :space AND session = ?",
                tx.make_session(row.session),
            )
            moved, note = replace(row, id=f"t{tx.next('turn')}", position=position), row.told
            if note:
                names[note["atom"]] = f"a{tx.next('atom')}"
                lists = {key: [names.get(id, id) for id in note[key]] for key in ("ends", "supersedes") if key in note}
                moved = replace(moved, told={**note, **lists, "atom": names[note["atom"]]})
            self._put("turns", moved)
            if note:
                statement = statement_of(moved)
                self._rows.put_statement(statement)
                self._built.added["statements"] += 1
                for older in statement.ends:
                    self._rows.end(older, statement)


def lost_spaces(con: apsw.Connection, home: Path) -> list[str]:
    """Return the folders of spaces that the database lacks.

    If the database has any turn of such a folder, the folder was only renamed, and is left out.
    """
    known = {str(name) for (name,) in con.execute("SELECT name FROM space")}
    return [
        folder.name
        for folder in sorted((home / "spaces").glob("*/"))
        if folder.name not in known
        and any(folder.rglob("*.jsonl"))
        and not any(
            con.execute("SELECT 1 FROM turn WHERE sha256 = ? LIMIT 1", (digest,)).get for digest in _digests_in(folder)
        )
    ]


def _digests_in(folder: Path) -> Iterator[bytes]:
    """Yield the hashes of the turns in the journals of a space."""
    for path in sorted(folder.glob("conversations/*.jsonl")):
        for line in read_own(path).splitlines():
            with suppress(*WRONG):
                yield bytes.fromhex(json.loads(line)["sha256"])


def values_without_files(new: Path, left_out: Iterable[Unreadable]) -> list[Unreadable]:
    """Return the unreadable values that are in no file either."""
    with open_database(new) as con:
        return [
            value
            for value in left_out
            if not (value.is_derived or con.execute(f"SELECT 1 FROM {value.table} WHERE {value.key}", value.values).get)
        ]


def count_rows_without_files(con: apsw.Connection) -> dict[str, int]:
    """Count the rows that only the database has, by kind."""
    made = (
        "(a.work IS NOT NULL OR NOT EXISTS (SELECT 1 FROM turn n WHERE n.space = a.space AND n.id = a.evidence"
        " AND n.role = 'note')) AND a.purged_at IS NULL"
    )
    counts = {
        "statements that models or imports made": f"atom a WHERE {made}",
        "facts of theirs": f"fact f JOIN atom a ON a.space = f.space AND a.id = f.atom WHERE {made}",
        "older versions of scenes": "scene r WHERE version < (SELECT max(version) FROM scene n"
        " WHERE n.space = r.space AND n.slug = r.slug)",
        "versions of the persona": "persona",
    }
    row_counts = {what: con.execute(f"SELECT count(*) FROM {rows}").get for what, rows in counts.items()}
    return {what: count for what, count in row_counts.items() if count}


def _require_names(con: apsw.Connection, home: Path) -> None:
    nameless = con.execute("SELECT DISTINCT space FROM turn WHERE space NOT IN (SELECT id FROM space)").get
    if nameless is not None:
        raise StoreUnavailable(
            f"{home / homes.DATABASE} has lost the name of space {nameless}. Nothing was changed. Restore a backup "
            "(`mcp-memory backup --list`), or move memory.db away: `mcp-memory rebuild` then makes a database "
            "from the files."
        )


def _remove_dangling(con: apsw.Connection, *, only: str | None = None) -> Iterator[str]:
    """Remove references to missing rows, and yield the tables of deleted rows.

    If a column of the reference is nullable, it is set to NULL; otherwise the row is deleted.
    """
    while True:
        violations: list[Any] = con.execute("PRAGMA foreign_key_check").fetchall()
        references = sorted({(table, parent, key) for table, _, parent, key in violations if only in (None, parent)})
        if not references:
            return
        for table, parent, key in references:
            yield from _resolve_reference(con, table, parent, key)


def _resolve_reference(con: apsw.Connection, table: str, parent: str, key: int) -> Iterator[str]:
    columns: Any = con.execute(
        'SELECT k."from", coalesce(k."to", p.name), c."notnull" OR c.pk FROM pragma_foreign_key_list(?1) k'
        ' JOIN pragma_table_info(?1) c ON c.name = k."from"'
        " LEFT JOIN pragma_table_info(?2) p ON p.pk = k.seq + 1 WHERE k.id = ?3",
        (table, parent, key),
    ).fetchall()
    if parent == "tombstone":  # forgotten rows stay forgotten
        con.execute(
            "INSERT INTO tombstone (id, space, reason, at) SELECT DISTINCT t.tombstone, t.space, '',"
            f" CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM {table} t WHERE t.tombstone > 0"
            " ON CONFLICT DO NOTHING"
        )
    same = " AND ".join(f"p.{to} = t.{name}" for name, to, _ in columns)
    is_set = " AND ".join(f"t.{name} IS NOT NULL" for name, _, _ in columns)
    gone = f"{is_set} AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {same})"
    empty = [f"{name} = NULL" for name, _, needed in columns if not needed]
    if empty:
        con.execute(f"UPDATE {table} AS t SET {', '.join(empty)} WHERE {gone}")
    else:
        rows = con.execute(f"DELETE FROM {table} AS t WHERE {gone} RETURNING 1").fetchall()
        yield from (table for _ in rows)


# --- the readable rows of a torn database -----------------------------------------------------------


_MADE_ANEW = {"migration", "term_range", "chunk", "vector_index"}
"""Tables that are not copied, because the new database has its own or they are computed again."""


def salvage(torn: Path, into: Path) -> list[str]:
    """Copy all readable rows to a new, empty database; return the tables that are incomplete, each with the reason."""
    unreadable: list[str] = []
    with open_database(into, write=True) as new:
        new.execute("PRAGMA foreign_keys = OFF; BEGIN")
        for table in _tables(new):
            columns = [str(name) for (name,) in new.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            if why := _salvage_table(torn, new, table, columns):
                unreadable.append(f"{table} ({why})")
        new.execute("COMMIT")
    return unreadable


def _tables(con: apsw.Connection) -> list[str]:
    """Return the names of the tables to copy, sorted."""
    names = con.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " AND name NOT GLOB '*_terms_*' ORDER BY name"
    )
    return [str(name) for (name,) in names if name not in _MADE_ANEW]


def _salvage_table(torn: Path, new: apsw.Connection, table: str, columns: Iterable[str]) -> str | None:
    why = None
    for order in ("", "ORDER BY rowid DESC"):
        # A connection that met a torn page gives errors from then on.
        try:
            with open_database(torn) as con:
                existing = {str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                names = [name for name in columns if name in existing]
                if not names:
                    return None
                marks = ", ".join("?" * len(names))
                insert = f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({marks})"
                for row in con.execute(f"SELECT {', '.join(names)} FROM {table} NOT INDEXED {order}"):
                    new.execute(insert, row)
            return why
        except apsw.Error as error:
            why = str(error)
    return why
