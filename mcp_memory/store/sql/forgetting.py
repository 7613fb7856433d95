"""Forgetting: a tombstone excludes rows from every search and listing; undoing it restores them.

`forget_reach` computes which other rows are forgotten too; `digests` recognise them when they are given again. Rows
and files stay: evidence is not rewritten before it is purged. Index entries are deleted, and restored by the undo
(vectors and the chunks of results by the next background indexing).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.store.forgetting import How, Reach
from mcp_memory.store.sql import canvases, chunks, digests, forget_reach, scenes, terms, tombstones
from mcp_memory.store.sql.transaction import Transaction, number_of, to_ms
from mcp_memory.store.values import CanvasChange, Layer, Tombstone

__all__ = ["forget", "undo"]

_TABLES = ("turn", "atom", "fact", "ref")


def forget(
    tx: Transaction,
    ids: Sequence[str],
    *,
    reason: str,
    now: datetime,
    how: How = "ids",
    redrawn: Sequence[CanvasChange] = (),
) -> Tombstone:
    tx.make_space()
    reach = forget_reach.of(tx, ids)
    number = tx.next("tombstone")
    took = json.dumps({"ids": [*reach.ids, *reach.notes], "how": how})
    tx.insert("tombstone", id=number, reason=reason, at=to_ms(now), took=took)
    _mark(tx, reach, number)
    digests.add(tx, number)
    canvases.change(tx, redrawn)
    tx.touch(*_topics(tx, number))
    tombstones.log(tx, [number])
    scenes.write_files(tx)
    return tombstones.by_id(tx, number)


def undo(tx: Transaction, tombstone: str, *, now: datetime, redrawn: Sequence[CanvasChange] = ()) -> Tombstone:
    number = number_of(tombstone, "x")
    row = tx.one("SELECT undone_at, purged_at FROM tombstone WHERE space = :space AND id = ?", number)
    if row is None or row[0] is not None:
        raise NotFound(f"There is nothing to bring back under {one_line(tombstone, 20)}, or it is back already.")
    if row[1] is not None or _is_husk(tx, number):
        raise NotFound(f"What was forgotten under x{number} was purged: nothing of it is left to bring back.")
    _refuse_second_truth(tx, number)
    _refuse_groundless(tx, number)
    ids, topics = tombstones.by_id(tx, number).ids, _topics(tx, number)
    _reindex(tx, "turn", number)
    _reindex(tx, "atom", number)
    for table in _TABLES:
        tx.run(f"UPDATE {table} SET tombstone = NULL WHERE space = :space AND tombstone = ?", number)
    tx.run("DELETE FROM forgotten WHERE space = :space AND tombstone = ?", number)
    tx.run("UPDATE tombstone SET undone_at = ? WHERE space = :space AND id = ?", to_ms(now), number)
    canvases.change(tx, redrawn)
    tx.touch(*topics)
    tombstones.log(tx, [number])
    scenes.write_files(tx)
    undone = tombstones.by_id(tx, number)
    return Tombstone(id=undone.id, ids=ids, reason=undone.reason, at=undone.at, how=undone.how, undone=True)


def _mark(tx: Transaction, reach: Reach, tombstone: int) -> None:
    layers: tuple[tuple[Layer, Sequence[str]], ...] = (("turn", [*reach.turns, *reach.notes]), ("atom", reach.atoms))
    for layer, ids in layers:
        numbers = [int(id[1:]) for id in ids]
        tx.many(
            f"UPDATE {layer} SET tombstone = ? WHERE space = :space AND id = ?",
            [(tombstone, number) for number in numbers],
        )
        tx.index.remove(layer, numbers)
    tx.run(
        "UPDATE fact SET tombstone = ? WHERE space = :space AND tombstone IS NULL AND atom IN"
        " (SELECT id FROM atom WHERE space = :space AND tombstone = ?)",
        *(tombstone, tombstone),
    )
    for ref in reach.refs:
        tx.run("UPDATE ref SET tombstone = ? WHERE space = :space AND id = ?", tombstone, ref)
        chunks.forget(tx, ref)


def _reindex(tx: Transaction, layer: Layer, tombstone: int) -> None:
    columns = "id, content, name" if layer == "turn" else "id, text, NULL"
    said = "AND role <> 'note'" if layer == "turn" else ""
    rows = tx.all(f"SELECT {columns} FROM {layer} WHERE space = :space AND tombstone = ? {said} ORDER BY id", tombstone)
    for number, text, name in rows:
        tx.index.put_terms(layer, [(number, terms.of_row(layer, text, name))])


def _is_husk(tx: Transaction, tombstone: int) -> bool:
    return any(
        tx.one(
            f"SELECT 1 FROM {table} WHERE space = :space AND tombstone = ? AND purged_at IS NOT NULL LIMIT 1", tombstone
        )
        for table in ("turn", "atom", "ref")
    )


def _refuse_second_truth(tx: Transaction, tombstone: int) -> None:
    clash = tx.one(
        "SELECT now.atom, now.entity, now.relation, now.value FROM fact old JOIN fact now ON now.space = old.space"
        " AND now.entity_key = old.entity_key AND now.relation = old.relation"
        " WHERE old.space = :space AND old.tombstone = ? AND old.single_valued = 1 AND old.valid_to IS NULL"
        " AND now.single_valued = 1 AND now.valid_to IS NULL AND now.tombstone IS NULL",
        tombstone,
    )
    if clash is not None:
        raise InvalidInput(
            f"Since then a{clash[0]} says that {clash[1]} {clash[2]} {clash[3]}, and only one such fact can hold. "
            f"Forget a{clash[0]} first, or leave it as it is. Nothing was brought back."
        )


def _refuse_groundless(tx: Transaction, tombstone: int) -> None:
    row = tx.one(
        "SELECT a.id, max(t.tombstone) FROM atom a JOIN evidence e ON e.space = a.space AND e.atom = a.id"
        " JOIN turn t ON t.space = e.space AND t.id = e.turn WHERE a.space = :space AND a.tombstone = ? GROUP BY a.id"
        " HAVING count(CASE WHEN t.tombstone IS NULL OR t.tombstone = ? THEN 1 END) = 0",
        *(tombstone, tombstone),
    )
    if row is not None:
        raise InvalidInput(
            f"All that a{row[0]} rests on was forgotten since, under x{row[1]}. Bring that back first. "
            "Nothing was brought back."
        )


def _topics(tx: Transaction, tombstone: int) -> list[str]:
    return tx.column(
        "SELECT DISTINCT 'session:' || s.name FROM turn t JOIN session s ON s.space = t.space AND s.id = t.session"
        " WHERE t.space = :space AND t.tombstone = ?"
        " UNION ALL SELECT 'atom:a' || id FROM atom WHERE space = :space AND tombstone = ?"
        " UNION ALL SELECT 'ref:' || id FROM ref WHERE space = :space AND tombstone = ?",
        *(tombstone, tombstone, tombstone),
    )
