"""Forgetting in SQLite: a tombstone takes rows out of every search and listing; undoing it puts them back.

What was drawn from forgotten turns alone goes with them, and what was told goes with its note.
The rows and files stay: evidence is not rewritten. Index entries go, and come back with the undoing (vectors, and
the lines of results, when the background next catches up).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.store.protocol import Layer, Tombstone
from mcp_memory.store.sqlite import chunks, terms, vectors
from mcp_memory.store.sqlite.rows import from_ms, number_of, space_for, space_id, to_ms, touch
from mcp_memory.text import one_line

__all__ = ["forget", "undo"]

# The notes of an atom that no other one rests on.
_FORGET_NOTES = (
    "UPDATE turn SET tombstone = ? WHERE role = 'note' AND tombstone IS NULL"
    " AND id IN (SELECT turn FROM evidence WHERE atom = ?) AND NOT EXISTS ("
    "  SELECT 1 FROM evidence e JOIN atom a ON a.id = e.atom WHERE e.turn = turn.id AND a.tombstone IS NULL)"
)


def forget(con: apsw.Connection, space: str, ids: Sequence[str], *, reason: str, now: datetime) -> Tombstone:
    """See `Store.forget`."""
    wanted = list(dict.fromkeys(id.strip() for id in ids))
    if not wanted:
        raise InvalidInput("There is nothing to forget: name ids such as t12, a5 or r-9f2c1a7b3d4e.")
    space_no = space_for(con, space)
    missing = [id for id in wanted if not _there(con, space_no, id)]
    if missing:
        shown = ", ".join(one_line(id, 40) for id in missing[:10])
        raise NotFound(f"Not in this space, or forgotten already: {shown}. Nothing was forgotten; call again without.")
    number: int = con.execute(
        "INSERT INTO tombstone (space, reason, at) VALUES (?, ?, ?) RETURNING id",
        (space_no, reason, to_ms(now)),
    ).get
    for id in wanted:
        _mark(con, space_no, id, number)
    for id in _groundless(con, number):
        _mark(con, space_no, id, number)
    return _tombstone(con, space_no, number)


def undo(con: apsw.Connection, space: str, tombstone: str, *, now: datetime) -> Tombstone:
    """See `Store.undo_forget`."""
    number, space_no = number_of(tombstone, "x"), space_id(con, space)
    row = con.execute("SELECT undone_at FROM tombstone WHERE id = ? AND space = ?", (number, space_no)).fetchone()
    if space_no is None or row is None or row[0] is not None:
        raise NotFound(f"There is nothing to bring back under {one_line(tombstone, 20)}, or it is back already.")
    undone = _tombstone(con, space_no, number)
    _refuse_second_truth(con, space_no, number)
    _refuse_groundless(con, number)
    _reindex(con, "turn", number)
    _reindex(con, "atom", number)
    for table in ("turn", "atom", "fact", "ref"):
        con.execute(f"UPDATE {table} SET tombstone = NULL WHERE tombstone = ?", (number,))
    con.execute("UPDATE tombstone SET undone_at = ? WHERE id = ?", (to_ms(now), number))
    touch(con, space_no, *_topics(con, undone.ids))
    return Tombstone(id=undone.id, ids=undone.ids, reason=undone.reason, at=undone.at, undone=True)


def _there(con: apsw.Connection, space: int, id: str) -> bool:
    if id.startswith("r-"):
        sql, key = "SELECT 1 FROM ref WHERE space = ? AND id = ? AND tombstone IS NULL", id
    elif id[:1] in ("t", "a") and id[1:].isdecimal():
        table = "turn" if id[0] == "t" else "atom"
        sql, key = f"SELECT 1 FROM {table} WHERE space = ? AND id = ? AND tombstone IS NULL", int(id[1:19])
    else:
        raise InvalidInput(f"{one_line(id, 40)!r} is not an id. Ids look like t12, a5 or r-9f2c1a7b3d4e.")
    return con.execute(sql, (space, key)).get is not None


def _mark(con: apsw.Connection, space: int, id: str, tombstone: int) -> None:
    if id.startswith("r-"):
        con.execute("UPDATE ref SET tombstone = ? WHERE space = ? AND id = ?", (tombstone, space, id))
        chunks.forget(con, space, id)
        touch(con, space, f"ref:{id}")
        return
    layer: Layer = "turn" if id[0] == "t" else "atom"
    number = number_of(id, id[0])
    if layer == "atom":
        con.execute("UPDATE fact SET tombstone = ? WHERE atom = ? AND tombstone IS NULL", (tombstone, number))
    con.execute(f"UPDATE {layer} SET tombstone = ? WHERE id = ? AND tombstone IS NULL", (tombstone, number))
    if layer == "atom":
        con.execute(_FORGET_NOTES, (tombstone, number))
    terms.delete(con, layer, number)
    vectors.delete(con, layer, [number])
    touch(con, space, *_topics(con, [id]))


def _groundless(con: apsw.Connection, tombstone: int) -> list[str]:
    """Return the atoms that rest on nothing any more, now that some turns are forgotten."""
    rows: Any = con.execute(
        "SELECT DISTINCT e.atom FROM turn t JOIN evidence e ON e.turn = t.id JOIN atom a ON a.id = e.atom"
        " WHERE t.tombstone = ? AND a.tombstone IS NULL AND NOT EXISTS ("
        "  SELECT 1 FROM evidence o JOIN turn held ON held.id = o.turn WHERE o.atom = a.id AND held.tombstone IS NULL)"
        " ORDER BY e.atom",
        (tombstone,),
    )
    return [f"a{number}" for (number,) in rows]


def _reindex(con: apsw.Connection, layer: Layer, tombstone: int) -> None:
    columns = "id, space, content, name, role" if layer == "turn" else "id, space, text, NULL, NULL"
    rows: list[Any] = con.execute(f"SELECT {columns} FROM {layer} WHERE tombstone = ?", (tombstone,)).fetchall()
    for number, space, text, name, role in rows:
        if role != "note":
            terms.put(con, layer, space, [(number, terms.of_turn(text, name))])


def _refuse_second_truth(con: apsw.Connection, space: int, tombstone: int) -> None:
    clash = con.execute(
        "SELECT now.atom, now.entity, now.relation, now.value FROM fact old JOIN fact now ON now.space = old.space"
        " AND now.entity_key = old.entity_key AND now.relation = old.relation WHERE old.space = ? AND old.tombstone = ?"
        " AND old.single_valued AND old.valid_to IS NULL AND now.single_valued AND now.valid_to IS NULL"
        " AND now.tombstone IS NULL",
        (space, tombstone),
    ).fetchone()
    if clash is not None:
        raise InvalidInput(
            f"Since then a{clash[0]} says that {clash[1]} {clash[2]} {clash[3]}, and only one such fact can hold. "
            f"Forget a{clash[0]} first, or leave it as it is. Nothing was brought back."
        )


def _refuse_groundless(con: apsw.Connection, tombstone: int) -> None:
    row: Any = con.execute(
        "SELECT a.id, max(t.tombstone) FROM atom a JOIN evidence e ON e.atom = a.id JOIN turn t ON t.id = e.turn"
        " WHERE a.tombstone = ?1 GROUP BY a.id HAVING min(t.tombstone IS NOT NULL AND t.tombstone <> ?1)",
        (tombstone,),
    ).fetchone()
    if row is not None:
        raise InvalidInput(
            f"All that a{row[0]} rests on was forgotten since, under x{row[1]}. Bring that back first. "
            "Nothing was brought back."
        )


def _tombstone(con: apsw.Connection, space: int, number: int) -> Tombstone:
    row: Any = con.execute(
        "SELECT reason, at, undone_at FROM tombstone WHERE id = ? AND space = ?", (number, space)
    ).fetchone()
    reason, at, undone = row
    ids = [
        str(id)
        for (id,) in con.execute(
            "SELECT 't' || id FROM turn WHERE tombstone = ?1 AND role <> 'note' UNION ALL"
            " SELECT 'a' || id FROM atom WHERE tombstone = ?1 UNION ALL"
            " SELECT id FROM ref WHERE space = ?2 AND tombstone = ?1",
            (number, space),
        )
    ]
    return Tombstone(id=f"x{number}", ids=ids, reason=reason, at=from_ms(at), undone=undone is not None)


def _topics(con: apsw.Connection, ids: Sequence[str]) -> list[str]:
    topics: list[str] = []
    for id in ids:
        if id.startswith("r-"):
            topics.append(f"ref:{id}")
        elif id[0] == "a":
            topics.append(f"atom:{id}")
        else:
            session = con.execute(
                "SELECT s.name FROM turn t JOIN session s ON s.id = t.session WHERE t.id = ?",
                (number_of(id, "t"),),
            ).get
            topics.append(f"session:{session}")
    return topics
