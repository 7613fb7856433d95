"""Rebuild: a new database with the rows of the old one, or its substitute, that agrees with the files of the home.

The old database is whole and not open elsewhere: a copy, or the rows that `salvage` read around the torn pages of one.
Its rows are written to a new file. Rows that differ from the files or are missing come from the files (`comparison`);
indexes, vectors and other derived tables are left out and rebuilt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.store.sql.transaction import catch_up_counters
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite.index import terms
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.unreadable import Unreadable
from mcp_memory.store.sqlite.upkeep import recovery, repair
from mcp_memory.store.sqlite.upkeep.comparison import take_all
from mcp_memory.store.sqlite.upkeep.snapshots import opened
from mcp_memory.store.values import Layer

_LAYERS: tuple[Layer, ...] = ("turn", "atom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The result of a rebuild. `dangling`: rows that were left out because they referred to missing rows, by table.

    `back`: purged rows that were in the old database and are forgotten, by (space, tombstone). `notes`: sentences about
    damaged files.
    """

    dangling: Mapping[str, int]
    back: Mapping[tuple[str, str], int]
    notes: list[str]


def build(new: Path, home: Path, *, is_alone: bool) -> Built:
    """Have a copy of the old database say what the files of the home say; `is_alone`: it is a new, empty one."""
    with opened(new, write=True) as con:
        con.execute("BEGIN")
        if is_alone and (held := homes.identity(home)):
            con.execute("UPDATE home SET uuid = ?, key = ?", held)
        guard = con.execute("SELECT sql FROM sqlite_master WHERE name = 'turn_is_evidence'").get
        con.execute("DROP TRIGGER IF EXISTS turn_is_evidence")
        recovery.name_again(con, home)
        _must_be_named(con, home)
        dangling = Counter(_left_out(con, only="space"))  # before its number is given again
        taken = take_all(con, home)
        dangling.update(_left_out(con))
        con.execute("DELETE FROM file")
        con.executemany(
            "INSERT INTO file (space, path, bytes) SELECT id, ?, ? FROM space WHERE name = ?",
            [(path, length, space) for (space, path), length in taken.lengths.items()],
        )
        for layer in _LAYERS:
            con.execute(f"INSERT INTO {layer}_terms ({layer}_terms) VALUES ('delete-all')")
        con.execute("DELETE FROM term_range")
        list(repair.words(con))
        for layer in _LAYERS:
            lasts: Any = con.execute(f"SELECT space, max(id) FROM {layer} GROUP BY space").fetchall()
            for space, last in lasts:
                terms.cover(con, layer, space, 1, last)
        names: Any = con.execute("SELECT name FROM space").fetchall()
        for (name,) in names:
            catch_up_counters(SqliteTransaction(con, home, name))
        if guard:
            con.execute(guard)
        con.execute("COMMIT")
    return Built(dangling=dangling, back=taken.kept, notes=taken.notes)


def lacking(new: Path, left_out: Iterable[Unreadable]) -> list[Unreadable]:
    """Return the unreadable values that are in no file either."""
    with opened(new) as con:
        return [
            one
            for one in left_out
            if not (one.is_derived or con.execute(f"SELECT 1 FROM {one.table} WHERE {one.key}", one.values).get)
        ]


def of_the_database_alone(con: apsw.Connection) -> dict[str, int]:
    """Count the rows that are in no file by design, so that they cannot be compared."""
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
    found = {what: con.execute(f"SELECT count(*) FROM {rows}").get for what, rows in counts.items()}
    return {what: count for what, count in found.items() if count}


def _must_be_named(con: apsw.Connection, home: Path) -> None:
    nameless = con.execute("SELECT DISTINCT space FROM turn WHERE space NOT IN (SELECT id FROM space)").get
    if nameless is not None:
        raise StoreUnavailable(
            f"{home / homes.DATABASE} has lost which folder under spaces/ belongs to space {nameless}, and no journal "
            "tells it. Nothing was changed. Put the folder back if it was moved away, or restore a backup: "
            "`mcp-memory backup --list`."
        )


def _left_out(con: apsw.Connection, *, only: str | None = None) -> Iterator[str]:
    """Have no row point at nothing: clear what may be empty, leave other rows out, and yield their tables."""
    while True:
        found: list[Any] = con.execute("PRAGMA foreign_key_check").fetchall()
        wanted = sorted({(table, parent, key) for table, _, parent, key in found if only in (None, parent)})
        if not wanted:
            return
        for table, parent, key in wanted:
            yield from _resolved(con, table, parent, key)


def _resolved(con: apsw.Connection, table: str, parent: str, key: int) -> Iterator[str]:
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
    given = " AND ".join(f"t.{name} IS NOT NULL" for name, _, _ in columns)
    gone = f"{given} AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {same})"
    empty = [f"{name} = NULL" for name, _, needed in columns if not needed]
    if empty:
        con.execute(f"UPDATE {table} AS t SET {', '.join(empty)} WHERE {gone}")
    else:
        rows = con.execute(f"DELETE FROM {table} AS t WHERE {gone} RETURNING 1").fetchall()
        yield from (table for _ in rows)


# --- the readable rows of a torn database -----------------------------------------------------------


_MADE_ANEW = {"migration", "term_range", "chunk", "vector_index"}
"""Tables that are not carried from one database to another."""


def salvage(torn: Path, into: Path) -> list[str]:
    """Copy what can be read to a new, empty database; return the tables of which a part could not be, and why."""
    unreadable: list[str] = []
    with opened(into, write=True) as new:
        new.execute("PRAGMA foreign_keys = OFF; BEGIN")
        for table in _tables(new):
            new.execute(f"DELETE FROM {table}")
            columns = [str(name) for (name,) in new.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            if why := _salvaged_table(torn, new, table, columns):
                unreadable.append(f"{table} ({why})")
        new.execute("COMMIT")
    return unreadable


def _tables(con: apsw.Connection) -> list[str]:
    """Return the tables that hold rows of ours, in the order of their names."""
    names = con.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " AND name NOT GLOB '*_terms_*' ORDER BY name"
    )
    return [str(name) for (name,) in names if name not in _MADE_ANEW]


def _salvaged_table(torn: Path, new: apsw.Connection, table: str, columns: Iterable[str]) -> str | None:
    why = None
    for order in ("", "ORDER BY rowid DESC"):
        # A connection that met a torn page gives errors from then on.
        try:
            with opened(torn) as con:
                held = {str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                names = [name for name in columns if name in held]
                if not names:
                    return None
                marks = ", ".join("?" * len(names))
                insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"
                for row in con.execute(f"SELECT {', '.join(names)} FROM {table} NOT INDEXED {order}"):
                    new.execute(insert, row)
            return why
        except apsw.Error as error:
            why = str(error)
    return why
