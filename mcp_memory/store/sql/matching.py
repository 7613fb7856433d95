"""Select rows to forget: turns, atoms and results that match words, a session and times."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_memory.store.forgetting import Which
from mcp_memory.store.sql.transaction import Transaction, Value, named_rows, to_ms
from mcp_memory.store.values import Layer

__all__ = ["of"]

_SESSION = "(SELECT id FROM session WHERE space = :space AND name = ?)"


def of(tx: Transaction, which: Which) -> list[str]:
    return [
        *named_rows(_rows(tx, "turn", which), "t"),
        *named_rows(_rows(tx, "atom", which), "a"),
        *_results(tx, which),
    ]


def _rows(tx: Transaction, layer: Layer, which: Which) -> Iterator[int]:
    """Yield the numbers of matching rows, ascending. Atoms match by session and time of their notes."""
    conditions, values = ["r.space = :space", "r.tombstone IS NULL"], list[Value]()
    told, joined = "r", ""
    if layer == "turn":
        conditions.append("r.role <> 'note'")
    elif which.session is not None or which.since or which.until:
        told, joined = "n", "JOIN turn n ON n.space = r.space AND n.id = r.evidence AND n.role = 'note'"
    if which.session is not None:
        conditions.append(f"{told}.session = {_SESSION}")
        values.append(which.session)
    for moment, condition in ((which.since, ">="), (which.until, "<")):
        if moment is not None:
            conditions.append(f"{told}.said_at {condition} ?")
            values.append(to_ms(moment))
    sql = f"SELECT r.id FROM {layer} r {joined} WHERE {' AND '.join(conditions)}"
    if which.terms:
        found = tx.index.with_all_terms(layer, which.terms)
        yield from sorted(number for (number,) in tx.among(f"{sql} AND r.id IN ({{}})", found, *values))
    else:
        yield from tx.column(f"{sql} ORDER BY r.id", *values)


def _results(tx: Transaction, which: Which) -> list[str]:
    """Return refs in which all the words are near each other, because a result is forgotten as a whole."""
    conditions, values = ["f.space = :space", "f.tombstone IS NULL"], list[Value]()
    if which.session is not None:
        conditions.append(
            "(f.session = ? OR f.id IN (SELECT o.ref FROM record o WHERE o.space = f.space AND"
            f" o.session = {_SESSION}))"
        )
        values += [which.session, which.session]
    for moment, condition in ((which.since, ">="), (which.until, "<")):
        if moment is not None:
            conditions.append(f"CAST(round(unixepoch(f.timestamp, 'subsec') * 1000) AS INTEGER) {condition} ?")
            values.append(to_ms(moment))
    sql = f"SELECT f.id FROM ref f WHERE {' AND '.join(conditions)} ORDER BY f.timestamp, f.id"
    found: list[str] = tx.column(sql, *values)
    if not which.terms:
        return found
    held = tx.among(
        "SELECT DISTINCT ref FROM chunk WHERE space = :space AND id IN ({})",
        tx.index.with_all_terms("chunk", which.terms),
    )
    refs = {ref for (ref,) in held}
    return [ref for ref in found if ref in refs]
