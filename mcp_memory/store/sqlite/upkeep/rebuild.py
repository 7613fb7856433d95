"""A database made anew of the files of a home, beside the one before it, and what that one alone can give.

In three steps, for canvases are drawn in between by those who know how: `begin` fills the new database from the files
(`refilling`); `finish` puts in the drawings, compares with the old one (`comparing`) and then carries over what no file
tells: what a model made, the bill and the ledger, vectors, tokens. What the files could not tell of what they should
is carried over too, and counted as only in the database. The word index is made anew.

The old database is a whole one that nobody else has open: a copy, or what could be read of one that is torn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.types import CanvasRow
from mcp_memory.store.protocol import Layer
from mcp_memory.store.sql import canvases, entities
from mcp_memory.store.sql.terms import of_row
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite.index import terms, vectors
from mcp_memory.store.sqlite.rows import to_ms
from mcp_memory.store.sqlite.unreadable import Unreadable
from mcp_memory.store.sqlite.upkeep.comparison import Compared, compare, compare_words, of_the_database_alone
from mcp_memory.store.sqlite.upkeep.derived_rows import Lost, resolve, transaction_on
from mcp_memory.store.sqlite.upkeep.rows_of_files import Refilled, refill
from mcp_memory.store.sqlite.upkeep.salvage import tables
from mcp_memory.store.sqlite.upkeep.snapshots import opened

__all__ = ["Built", "Drawn", "begin", "compared", "drawable", "facts", "finish", "lacking", "mentions"]

Drawn = dict[tuple[str, int], CanvasRow]
"""Canvases as their history has them, by space and number."""

_BATCH = 2_000
_FROM_FILES = ("turn", "atom", "ref", "canvas", "record", "canvas_edit", "tombstone", "evidence", "fact")
_ALREADY = ("space", "session", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a rebuilding came to. `carried`: rows from the old database by table, beside what the files told."""

    compared: list[Compared] = field(default_factory=list[Compared])
    carried: dict[str, int] = field(default_factory=dict[str, int])
    dangling: Lost = field(default_factory=Lost)
    """Rows that point at nothing, for what they pointed at could not be read; they are left out."""
    back: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """Rows that were purged, and are in what stands in for the old database: forgotten, by space and tombstone."""


def begin(new: Path, old: Path | None, home: Path, *, within: bool = False) -> Refilled:
    """Fill the new, empty database from the files of the home; `within` what the old one knows of them."""
    with opened(new, write=True) as con:
        known = _attach(con, old)
        con.execute("BEGIN")
        if known is not None:  # the same numbers, so that rows can be compared and carried over as they are
            _copy(con, "space")
            _copy(con, "session", but="active_canvas, activated_at")
        if held := homes.identity(home):  # the old one's own word is taken over it
            con.execute("UPDATE main.home SET uuid = ?, key = ?", held)
        refilled = refill(con, home, known=known, within=within)
        con.execute("COMMIT")
        return refilled


def drawable(new: Path, old: Path | None) -> list[tuple[str, int]]:
    """Return the canvases all of whose records and edits came from files."""
    with opened(new, write=True) as con:
        known = _attach(con, old)
        sql = "SELECT s.name, c.number FROM main.canvas c JOIN main.space s ON s.id = c.space WHERE c.text = ''"
        if known is not None:
            count = "(SELECT count(*) FROM {}.{} x WHERE x.space = c.space AND x.canvas = c.number)"
            pairs = [(count.format("old", table), count.format("main", table)) for table in ("record", "canvas_edit")]
            sql += "".join(f" AND {theirs} <= {ours}" for theirs, ours in pairs)
        return [(str(space), int(number)) for space, number in con.execute(sql)]


def compared(new: Path, old: Path, refilled: Refilled, drawn: Drawn) -> tuple[list[Compared], dict[str, int]]:
    """Say how the new one, filled from files alone, compares with the old one, and what that one alone has.

    The new one is of no use then.
    """
    with opened(new, write=True) as con:
        _attach(con, old)
        con.execute("PRAGMA foreign_keys = OFF; PRAGMA temp_store = FILE")
        con.execute("BEGIN")
        _draw(con, drawn)
        _adopt(con, refilled)
        facts(con, refilled, has_old=True)
        # What was purged and came back with a restored database is forgotten, and told of: it is no difference.
        con.execute(
            "UPDATE main.turn AS n SET (role, name, content, client_id, said_at, sha256, told, purged_at) ="
            " (o.role, o.name, o.content, o.client_id, o.said_at, o.sha256, o.told, o.purged_at) FROM old.turn o"
            " WHERE o.id = n.id AND n.content = '' AND n.tombstone = o.tombstone"
        )
        con.execute(
            "UPDATE main.tombstone AS n SET purged_at = NULL FROM old.tombstone o"
            " WHERE o.id = n.id AND o.purged_at IS NULL"
        )
        return compare(con), of_the_database_alone(con)


def finish(new: Path, old: Path | None, refilled: Refilled, drawn: Drawn) -> Built:
    """Complete the new database, and say how it compares with the old one."""
    with opened(new, write=True) as con:
        has_old = _attach(con, old) is not None
        con.execute("PRAGMA foreign_keys = OFF; PRAGMA temp_store = FILE")
        con.execute("BEGIN")
        _draw(con, drawn)
        if has_old:
            _adopt(con, refilled)
        facts(con, refilled, has_old=has_old)
        compared = compare(con) if has_old else []
        taken = _Taken(con)
        if has_old:
            taken.all()
        back = _forgotten_still(con) if has_old else {}
        mentions(con, refilled)
        con.executemany(
            "INSERT OR IGNORE INTO main.held (space, id, reasons, at) VALUES (?, ?, ?, ?)",
            refilled.held,  # pyright: ignore[reportArgumentType]
        )
        _index(con)
        _lengths(con, refilled)
        dangling = resolve(con)
        con.execute("COMMIT")
        if has_old:
            compared += compare_words(con)
            _vectors(con, taken)
        return Built(compared=compared, carried=dict(taken.carried), dangling=dangling, back=back)


def lacking(new: Path, left_out: Iterable[Unreadable]) -> list[Unreadable]:
    """Return which of the values that could not be read no file has told since."""
    with opened(new) as con:
        return [
            one
            for one in left_out
            if not one.is_derived
            and not (
                one.table in (*_FROM_FILES, *_ALREADY)
                and con.execute(f"SELECT 1 FROM main.{one.table} WHERE {one.key}", one.values).get
            )
        ]


def _attach(con: apsw.Connection, old: Path | None) -> dict[tuple[int, str], int] | None:
    """Attach the old database, and return how long it says that line files are; None where there is none."""
    if old is None:
        return None
    con.execute("ATTACH ? AS old", (f"{old.resolve().as_uri()}?mode=ro",))
    rows: Any = con.execute("SELECT space, path, bytes FROM old.file").fetchall()
    return {(space, path): length for space, path, length in rows}


# --- what only both together tell -------------------------------------------------------------------


def _draw(con: apsw.Connection, drawn: Drawn) -> None:
    for (space, number), row in drawn.items():
        groups = json.dumps({id: asdict(group) for id, group in row.groups.items()}, ensure_ascii=False)
        con.execute(
            "UPDATE canvas SET text = ?, status = ?, folded = ?, groups = ?, updated = ?"
            " WHERE number = ? AND space = (SELECT id FROM space WHERE name = ?)",
            (row.text, row.status, row.folded, groups, to_ms(row.updated), number, space),
        )
    con.execute("DELETE FROM canvas WHERE text = ''")


def _adopt(con: apsw.Connection, refilled: Refilled) -> None:
    """Take from the old database what became of rows that the files tell, where no file says that."""
    passed = refilled.passed
    spaces: list[int] = [space for (space,) in con.execute("SELECT id FROM main.space")]
    for space in spaces:
        if (space, canvases.FILE) not in refilled.lengths:
            con.execute(
                "UPDATE main.session AS n SET active_canvas = o.active_canvas, activated_at = o.activated_at"
                " FROM old.session o WHERE o.id = n.id AND n.space = ?",
                (space,),
            )
    later = "SELECT id FROM old.tombstone WHERE id NOT IN (SELECT id FROM main.tombstone)"
    for table, key in (("turn", "n.id = o.id"), ("atom", "n.id = o.id"), ("ref", "n.id = o.id AND n.space = o.space")):
        con.execute(
            f"UPDATE main.{table} AS n SET tombstone = o.tombstone FROM old.{table} o"
            f" WHERE {key} AND o.tombstone IN ({later})"
        )
    con.execute(  # of what was purged no hash can tell
        "UPDATE main.turn AS n SET dated = o.dated FROM old.turn o WHERE o.id = n.id AND n.purged_at IS NOT NULL"
    )
    passed["forgotten before that was kept in a file"] += con.execute(f"SELECT count(*) FROM ({later})").get
    closed = con.execute(
        "UPDATE main.atom AS n SET valid_to = o.valid_to, superseded_by = o.superseded_by,"
        " closed_because = o.closed_because FROM old.atom o WHERE n.id = o.id AND o.valid_to IS NOT NULL"
        " AND (o.superseded_by IS NULL OR o.superseded_by NOT IN (SELECT id FROM main.atom))"
        " AND (n.valid_to, n.superseded_by, n.closed_because) IS NOT (o.valid_to, o.superseded_by, o.closed_because)"
        " RETURNING id"
    ).fetchall()
    passed["told, and ended by what a model drew or an import said"] += len(closed)
    surer = con.execute(
        "UPDATE main.atom AS n SET confidence = o.confidence FROM old.atom o WHERE n.id = o.id"
        " AND o.confidence > n.confidence AND EXISTS (SELECT 1 FROM old.evidence e WHERE e.space = o.space"
        "  AND e.atom = o.id AND e.turn <> o.evidence) RETURNING id"
    ).fetchall()
    passed["told, and said again since"] += len(surer)


def facts(con: apsw.Connection, refilled: Refilled, *, has_old: bool) -> None:
    number = "NULL"
    if has_old:  # those that it lacks come after all that it has
        newest = ", ".join(f"coalesce((SELECT max(id) FROM {db}.fact), 0)" for db in ("old", "main"))
        number = f"coalesce((SELECT id FROM old.fact WHERE atom = ?2), max({newest}) + 1)"
    con.executemany(
        "INSERT INTO main.fact (id, space, atom, entity, entity_key, relation, value, single_valued, valid_from,"
        f" valid_to, tombstone) SELECT {number}, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, a.valid_to, a.tombstone"
        " FROM main.atom a WHERE a.id = ?2",
        refilled.facts,  # pyright: ignore[reportArgumentType]
    )


# --- carried over -----------------------------------------------------------------------------------


class _Taken:
    """Rows of the old database that the new one lacks."""

    def __init__(self, con: apsw.Connection) -> None:
        self._con = con
        self.carried = Counter[str]()

    def all(self) -> None:
        con = self._con
        con.execute("DELETE FROM main.home WHERE EXISTS (SELECT 1 FROM old.home)")
        rest = [table for table in tables(con) if table not in _FROM_FILES and table not in _ALREADY]
        for table in [*_FROM_FILES, *rest]:
            self.table(table)
        con.execute(
            "INSERT INTO main.sqlite_sequence (name, seq) SELECT name, 0 FROM old.sqlite_sequence"
            " WHERE name NOT IN (SELECT name FROM main.sqlite_sequence)"
        )
        con.execute(
            "UPDATE main.sqlite_sequence AS n SET seq = max(n.seq, o.seq) FROM old.sqlite_sequence o"
            " WHERE o.name = n.name AND o.name <> 'chunk'"
        )

    def table(self, table: str) -> None:
        before = self._con.total_changes()
        _copy(self._con, table)
        if count := self._con.total_changes() - before:
            self.carried[table] += count


def _forgotten_still(con: apsw.Connection) -> dict[tuple[str, str], int]:
    """Forget what was carried over from a state in which it was not forgotten yet; return what was purged since."""
    back: dict[tuple[str, str], int] = {}
    rows: Any = con.execute(
        "SELECT x.id, x.space, s.name, x.purged_at, x.took FROM main.tombstone x JOIN main.space s ON s.id = x.space"
        " WHERE x.undone_at IS NULL AND x.took IS NOT NULL"
    ).fetchall()
    for number, space, name, purged, took in rows:
        count = 0
        for id in json.loads(took)["ids"]:
            table, key = {"t": ("turn", id[1:]), "a": ("atom", id[1:])}.get(id[:1], ("ref", id))
            found = con.execute(
                f"UPDATE main.{table} SET tombstone = ? WHERE space = ? AND id = ? AND tombstone IS NULL RETURNING 1",
                (number, space, key),
            ).fetchall()
            count += len(found)
            if found and table == "ref":
                con.execute("DELETE FROM main.chunk WHERE space = ? AND ref = ?", (space, key))
        con.execute(
            "UPDATE main.fact SET tombstone = ?1 WHERE tombstone IS NULL"
            " AND atom IN (SELECT id FROM main.atom WHERE tombstone = ?1)",
            (number,),
        )
        if count and purged is not None:
            con.execute("UPDATE main.tombstone SET purged_at = NULL WHERE id = ? AND space = ?", (number, space))
            back[name, f"x{number}"] = count
    return back


def _copy(con: apsw.Connection, table: str, *, but: str = "") -> None:
    names = ", ".join(name for name in _columns(con, table).split(", ") if name not in but.split(", "))
    con.execute(f"INSERT OR IGNORE INTO main.{table} ({names}) SELECT {names} FROM old.{table}")


def _columns(con: apsw.Connection, table: str) -> str:
    names = [str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))]
    return ", ".join(name for name in names if (table, name) != ("ref", "indexed"))


def mentions(con: apsw.Connection, refilled: Refilled) -> None:
    for atom, (space, names) in refilled.about.items():
        if con.execute("SELECT 1 FROM mention WHERE space = ? AND atom = ?", (space, atom)).get is None:
            entities.mention(transaction_on(con, space), atom, names)


# --- made anew --------------------------------------------------------------------------------------


def _index(con: apsw.Connection) -> None:
    _cut(con, "turn", "SELECT id, space, content, name FROM main.turn WHERE tombstone IS NULL AND role <> 'note'")
    _cut(con, "atom", "SELECT id, space, text, NULL FROM main.atom WHERE tombstone IS NULL")


def _cut(con: apsw.Connection, layer: Layer, sql: str) -> None:
    after = 0
    while True:
        rows: list[Any] = con.execute(f"{sql} AND id > ? ORDER BY id LIMIT ?", (after, _BATCH)).fetchall()
        if not rows:
            return
        after = rows[-1][0]
        for space, some in groupby(rows, key=lambda row: row[1]):
            terms.put(con, layer, space, [(number, of_row(layer, text, name)) for number, _, text, name in some])


def _vectors(con: apsw.Connection, taken: _Taken) -> None:
    """Take the vectors over: making them again can cost hours or money."""
    found: Any = con.execute("SELECT id, identity, dimensions FROM old.vector_index ORDER BY id").fetchall()
    for index, identity, dimensions in found:
        con.execute("BEGIN")
        vectors.ensure(con, identity, dimensions)
        number = con.execute("SELECT id FROM main.vector_index WHERE identity = ?", (identity,)).get
        for layer in ("turn", "atom"):
            con.execute(
                f"INSERT INTO main.{layer}_vec_{number} (rowid, space, embedding)"
                f" SELECT v.rowid, v.space, vec_int8(v.embedding) FROM old.{layer}_vec_{index} v"
                f" WHERE v.rowid IN (SELECT id FROM main.{layer} WHERE tombstone IS NULL)"
            )
            taken.carried["vectors"] += con.execute(f"SELECT count(*) FROM main.{layer}_vec_{number}_rowids").get
        con.execute("COMMIT")


def _lengths(con: apsw.Connection, refilled: Refilled) -> None:
    con.executemany(
        "INSERT INTO main.file (space, path, bytes) VALUES (?, ?, ?)",
        [(space, path, length) for (space, path), length in refilled.lengths.items()],
    )
