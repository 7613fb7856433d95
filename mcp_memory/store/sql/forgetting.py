"""Forgetting in SQLite: a tombstone takes rows out of every search and listing; undoing it puts them back.

What goes along is `reach`'s to say; `digests` know it again. The rows and files stay: evidence is not rewritten before
it is purged. Index entries go, and come back with the undoing (vectors, and the lines of results, when the background
next catches up).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.store.forgetting import How, Reach, Redrawn
from mcp_memory.store.protocol import Conflict, Layer, Tombstone
from mcp_memory.store.sql import canvases, chunks, digests, forget_reach, tombstones
from mcp_memory.store.sql.rows import number_of, space_for, space_id, to_ms, touch
from mcp_memory.store.sqlite.finding import terms, vectors

__all__ = ["forget", "undo"]


def forget(
    con: apsw.Connection,
    folder: Path,
    space: str,
    ids: Sequence[str],
    *,
    reason: str,
    how: How,
    redrawn: Sequence[Redrawn],
    now: datetime,
) -> Tombstone:
    """See `Store.forget`."""
    space_no = space_for(con, space)
    gone = forget_reach.of(con, space_no, ids)
    took = {"ids": [*gone.ids, *gone.notes], "how": how}
    number: int = con.execute(
        "INSERT INTO tombstone (space, reason, at, took) VALUES (?, ?, ?, ?) RETURNING id",
        (space_no, reason, to_ms(now), json.dumps(took)),
    ).get
    _mark(con, space_no, gone, number)
    digests.add(con, space_no, number)
    _redraw(con, folder, space, redrawn, now=now)
    touch(con, space_no, *_topics(con, space_no, number))
    tombstones.log(con, folder, space_no, [number])
    return tombstones.by_id(con, space_no, number)


def undo(
    con: apsw.Connection, folder: Path, space: str, tombstone: str, *, redrawn: Sequence[Redrawn], now: datetime
) -> Tombstone:
    """See `Store.undo_forget`."""
    number, space_no = number_of(tombstone, "x"), space_id(con, space)
    row = con.execute(
        "SELECT undone_at, purged_at FROM tombstone WHERE id = ? AND space = ?", (number, space_no)
    ).fetchone()
    if space_no is None or row is None or row[0] is not None:
        raise NotFound(f"There is nothing to bring back under {one_line(tombstone, 20)}, or it is back already.")
    if row[1] is not None or _is_husk(con, space_no, number):
        raise NotFound(f"What was forgotten under x{number} was purged: nothing of it is left to bring back.")
    _refuse_second_truth(con, space_no, number)
    _refuse_groundless(con, number)
    undone = tombstones.by_id(con, space_no, number)
    topics = _topics(con, space_no, number)
    _reindex(con, "turn", number)
    _reindex(con, "atom", number)
    for table in ("turn", "atom", "fact", "ref"):
        con.execute(f"UPDATE {table} SET tombstone = NULL WHERE tombstone = ?", (number,))
    con.execute("DELETE FROM forgotten WHERE tombstone = ?", (number,))
    con.execute("UPDATE tombstone SET undone_at = ? WHERE id = ?", (to_ms(now), number))
    _redraw(con, folder, space, redrawn, now=now)
    touch(con, space_no, *topics)
    tombstones.log(con, folder, space_no, [number])
    return Tombstone(
        id=undone.id, ids=undone.ids, reason=undone.reason, at=undone.at, how=undone.how, undone=True, purged=False
    )


# --- marking ----------------------------------------------------------------------------------------


def _mark(con: apsw.Connection, space: int, gone: Reach, tombstone: int) -> None:
    layers: tuple[tuple[Layer, Sequence[str]], ...] = (("turn", [*gone.turns, *gone.notes]), ("atom", gone.atoms))
    for layer, ids in layers:
        numbers = [int(id[1:]) for id in ids]
        con.executemany(f"UPDATE {layer} SET tombstone = ? WHERE id = ?", [(tombstone, number) for number in numbers])
        for number in numbers:
            terms.delete(con, layer, number)
        vectors.delete(con, layer, numbers)
    con.execute("UPDATE fact SET tombstone = ?1 WHERE tombstone IS NULL AND atom IN"
                " (SELECT id FROM atom WHERE tombstone = ?1)", (tombstone,))  # fmt: skip
    for ref in gone.refs:
        con.execute("UPDATE ref SET tombstone = ? WHERE space = ? AND id = ?", (tombstone, space, ref))
        chunks.forget(con, space, ref)


def _redraw(con: apsw.Connection, folder: Path, space: str, redrawn: Sequence[Redrawn], *, now: datetime) -> None:
    if any(canvases.canvas(con, space, one.row.number).version != one.row.version for one in redrawn):
        raise Conflict  # before any file is written
    for one in redrawn:
        canvases.save(
            con,
            folder,
            space,
            one.row,
            expected=one.row.version,
            make_active=False,
            edits=one.edits,
            undo=one.undo,
            now=now,
        )


def _reindex(con: apsw.Connection, layer: Layer, tombstone: int) -> None:
    columns = "id, space, content, name, role" if layer == "turn" else "id, space, text, NULL, NULL"
    rows: list[Any] = con.execute(f"SELECT {columns} FROM {layer} WHERE tombstone = ?", (tombstone,)).fetchall()
    for number, space, text, name, role in rows:
        if role != "note":
            terms.put(con, layer, space, [(number, terms.of_row(layer, text, name))])


def _is_husk(con: apsw.Connection, space: int, tombstone: int) -> bool:
    return any(
        con.execute(
            f"SELECT 1 FROM {table} WHERE space = ? AND tombstone = ? AND purged_at IS NOT NULL LIMIT 1",
            (space, tombstone),
        ).get
        for table in ("turn", "atom", "ref")
    )


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


def _topics(con: apsw.Connection, space: int, tombstone: int) -> list[str]:
    rows = con.execute(
        "SELECT DISTINCT 'session:' || s.name FROM turn t JOIN session s ON s.id = t.session WHERE t.tombstone = ?1"
        " UNION ALL SELECT 'atom:a' || id FROM atom WHERE tombstone = ?1"
        " UNION ALL SELECT 'ref:' || id FROM ref WHERE space = ?2 AND tombstone = ?1",
        (tombstone, space),
    )
    return [str(topic) for (topic,) in rows]
