"""Rows made of other rows, where a space lost all of one kind: what is indexed, who names results, who is meant.

A single row that is missing is not told apart from one that never was: a text may have named a result before it was
there. Where a space has none at all of what its texts come to, the rows were deleted.

Rows that point at rows that are gone: what stands in for these, and what has to be left out.

Only rows that cannot do without the other are lost, as a quote without its turn. A job that is gone is made again,
empty and done: it says no more than that a model made what names it. A tombstone whose number was given out is made
again too, so that what was forgotten stays forgotten. Other references are cleared where a row may be without.

Rows of spaces and sessions that are gone, given back by the journals that name what belongs to them.

Other rows know a space and a session by number alone, and the files by name alone. A line of a folder and the row of
the same number and hash are the same thing: that tells which name a number had. Where nothing tells it, nothing is
done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store import files
from mcp_memory.store.naming import named
from mcp_memory.store.sql import chunks, citation_rows, entities
from mcp_memory.store.sqlite import line_files
from mcp_memory.store.sqlite.rows import WITH_A_SPACE
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.unreadable import LINE_FILES, is_line_file

__all__ = ["Lost", "give_back", "made_again", "nameless", "problems", "resolve", "transaction_on"]

_INDEXED = (
    "SELECT r.space, r.id FROM ref r WHERE r.indexed = ? AND r.tombstone IS NULL AND r.bytes > 0"
    " AND r.content_type LIKE 'text/%' AND NOT EXISTS (SELECT 1 FROM chunk c WHERE c.space = r.space)"
)
_TEXTS = (
    "SELECT t.space, 't' || t.id, t.content FROM turn t WHERE t.tombstone IS NULL AND t.role <> 'note' AND {none}"
    " UNION ALL SELECT t.space, 'a' || t.id, t.text FROM atom t WHERE t.tombstone IS NULL AND {none}"
)
_UNCITED = _TEXTS.format(
    none="t.space IN (SELECT space FROM ref WHERE tombstone IS NULL) AND t.space NOT IN (SELECT space FROM citation)"
)
_UNNAMED = (
    "SELECT f.space, f.atom, f.entity FROM fact f WHERE f.entity <> '' AND f.tombstone IS NULL AND f.space NOT IN"
    " (SELECT a.space FROM mention m JOIN atom a ON a.space = m.space AND a.id = m.atom)"
)


def problems(con: apsw.Connection) -> Iterator[str]:
    """Yield what is lacking, a sentence each."""
    if many := con.execute(f"SELECT count(*) FROM ({_INDEXED})", (TERMS_VERSION,)).get:
        yield f"{many} results are not found by their lines: the index has none of them. {_NEXT}"
    if many := len(_citing(con)):
        yield f"{many} turns and statements name results, and no row says which. {_NEXT}"
    if many := con.execute(f"SELECT count(*) FROM ({_UNNAMED})").get:
        yield f"{many} facts are about somebody, and no row says whom. {_NEXT}"


_NEXT = "`mcp-memory doctor --repair` makes these rows again."


def made_again(con: apsw.Connection) -> Iterator[str]:
    """Make these rows again in this transaction, and say so."""
    unindexed: Any = con.execute(_INDEXED, (TERMS_VERSION,)).fetchall()
    for space, ref in unindexed:
        chunks.forget(transaction_on(con, space), ref)
    if unindexed:
        yield f"{len(unindexed)} results, of which the index had nothing, are indexed anew in the background."
    uncited = _citing(con)
    for space, source, text in uncited:
        citation_rows.note(transaction_on(con, space), source, text)
    if uncited:
        yield f"What {len(uncited)} turns and statements name of results is noted again."
    unnamed: Any = con.execute(_UNNAMED).fetchall()
    for space, atom, entity in unnamed:
        entities.mention(transaction_on(con, space), atom, [entity])
    if unnamed:
        yield f"Whom {len(unnamed)} facts are about is noted again."


def transaction_on(con: apsw.Connection, space: int) -> SqliteTransaction:
    """Return a transaction on the rows of a space; its files are not touched."""
    return SqliteTransaction(con, Path(), con.execute("SELECT name FROM space WHERE id = ?", (space,)).get)


def _citing(con: apsw.Connection) -> list[tuple[int, str, str]]:
    """Return (space, source, text) of what names a result: by its hash, which nothing says before it is there."""
    rows: Any = con.execute(_UNCITED).fetchall()
    live: Any = con.execute("SELECT space, id FROM ref WHERE tombstone IS NULL").fetchall()
    refs = {(space, id) for space, id in live}
    return [row for row in rows if any((row[0], name.target) in refs for name in named(row[2]))]


Lost = Counter[str]
"""What was left out, in words, and how many of each."""

_MADE_BY = {
    "atom": ("merge", "t.learned_at"),
    "draft": ("extract", "0"),
    "scene": ("scenes", "t.at"),
    "persona": ("persona", "t.at"),
    "record": ("summaries", "0"),
    "canvas_edit": ("canvas", "0"),
}
"""By table, the stage whose jobs make its rows, and when such a row was made."""
_NAMED = {
    "turn": "'t' || id",
    "atom": "'a' || id",
    "fact": "'the fact of a' || atom",
    "evidence": "'a quote of a' || atom",
    "draft": "'draft ' || id",
    "scene": "'version ' || version || ' of the scene ' || slug",
    "persona": "'version ' || version || ' of the persona'",
    "ref": "id",
    "record": "'record ' || id",
    "canvas": "'canvas ' || number",
    "canvas_edit": "'canvas edit ' || id",
    "tombstone": "'x' || id",
}
"""What rows are called; those of other tables are made of these, or keep the program's own books."""


def resolve(con: apsw.Connection) -> Lost:
    """Have no row of `main` point at nothing, with foreign keys off; return what had to be left out."""
    lost = Lost()
    while found := _violations(con):
        before = con.total_changes()
        for table, parent, key in found:
            lost.update(_resolved(con, table, parent, key))
        if con.total_changes() == before:
            break
    return lost


def _violations(con: apsw.Connection) -> list[tuple[str, str, int]]:
    rows: Any = con.execute("PRAGMA main.foreign_key_check")
    return sorted({(str(table), str(parent), int(key)) for table, _, parent, key in rows})


def _resolved(con: apsw.Connection, table: str, parent: str, key: int) -> Iterator[str]:
    columns: Any = con.execute(
        'SELECT k."from", coalesce(k."to", p.name), c."notnull" OR c.pk FROM pragma_foreign_key_list(?1, \'main\') k'
        " JOIN pragma_table_info(?1, 'main') c ON c.name = k.\"from\""
        " LEFT JOIN pragma_table_info(?2, 'main') p ON p.pk = k.seq + 1 WHERE k.id = ?3",
        (table, parent, key),
    ).fetchall()
    names = [str(name) for name, _, _ in columns]
    same = " AND ".join(f"p.{to} = t.{name}" for name, to, _ in columns)
    gone = " AND ".join(f"t.{name} IS NOT NULL" for name in names)
    gone += f" AND NOT EXISTS (SELECT 1 FROM main.{parent} p WHERE {same})"
    if parent == "work" and table in _MADE_BY:
        stage, at = _MADE_BY[table]
        con.execute(
            "INSERT INTO main.work (id, space, stage, basis, state, holder, until, attempts, at, done_at, outcome)"
            f" SELECT t.work, min(t.space), ?, '{{}}', 'done', '', 0, 0, min({at}), min({at}), '{{}}'"
            f" FROM main.{table} t WHERE t.work > 0 AND {gone} GROUP BY t.work",
            (stage,),
        )
    elif parent == "tombstone":
        con.execute(
            "INSERT INTO main.tombstone (id, space, reason, at) SELECT t.tombstone, min(t.space), '',"
            f" CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM main.{table} t WHERE {gone} AND t.tombstone BETWEEN 1"
            " AND (SELECT seq FROM main.sqlite_sequence WHERE name = 'tombstone') GROUP BY t.tombstone"
        )
    elif table == parent == "entity_name":
        con.execute(f"UPDATE main.entity_name AS t SET entity = id WHERE {gone}")
    if not any(needed for _, _, needed in columns):
        con.execute(f"UPDATE main.{table} AS t SET {', '.join(f'{name} = NULL' for name in names)} WHERE {gone}")
        return
    called = _NAMED.get(table, "NULL")
    rows: Any = con.execute(f"DELETE FROM main.{table} AS t WHERE {gone} RETURNING {called}").fetchall()
    yield from (str(name) for (name,) in rows if name is not None)


def nameless(con: apsw.Connection) -> list[int]:
    """Return the numbers of spaces that have rows, and no name."""
    numbers = " UNION ".join(f"SELECT DISTINCT space FROM {table}" for table in WITH_A_SPACE)
    rows = con.execute(f"SELECT space FROM ({numbers}) WHERE space NOT IN (SELECT id FROM space) ORDER BY space")
    return [int(number) for (number,) in rows]


def give_back(con: apsw.Connection, home: Path) -> None:
    """Name spaces and sessions again, in this transaction, where the files of one folder alone have their lines."""
    lost = nameless(con)
    if lost:
        known = {name for (name,) in con.execute("SELECT name FROM space")}
        found = dict[int, set[str]]()
        for folder in sorted(path for path in (home / "spaces").glob("*/") if path.name not in known):
            for number, _, _ in _rows_in(con, folder):
                found.setdefault(number, set()).add(folder.name)
        for number, names in found.items():
            if number in lost and len(names) == 1 and sum(names & other != set() for other in found.values()) == 1:
                con.execute("INSERT INTO space (id, name) VALUES (?, ?)", (number, *names))
    if con.execute("SELECT 1 FROM turn WHERE session NOT IN (SELECT id FROM session) LIMIT 1").get:
        rows: Any = con.execute("SELECT id, name FROM space").fetchall()
        for number, name in rows:
            for space, session, fields in _rows_in(con, home / "spaces" / name):
                if space == number and session is not None:
                    con.execute(
                        "INSERT INTO session (id, space, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                        (session, space, fields["session"]),
                    )


def _rows_in(con: apsw.Connection, folder: Path) -> Iterator[tuple[int, int | None, dict[str, Any]]]:
    """Yield (space, session of a turn, line) of each line of a folder that has its row in the database."""
    for path in sorted(path for what in LINE_FILES for path in folder.glob(what)):
        name = path.relative_to(folder).as_posix()
        if is_line_file(name):
            yield from line_files.known_rows(con, name, files.beyond(path, 0))
