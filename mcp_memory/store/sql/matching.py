"""What to forget, looked for: turns, atoms and results that hold all of some words, a session and a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from mcp_memory.store.forgetting import Which
from mcp_memory.store.protocol import Layer
from mcp_memory.store.sql.rows import space_id, to_ms

__all__ = ["of"]


def of(con: apsw.Connection, space: str, which: Which) -> list[str]:
    """See `Store.matching`."""
    number = space_id(con, space)
    return [
        *_rows(con, number, "turn", "t", which),
        *_rows(con, number, "atom", "a", which),
        *_results(con, number, which),
    ]


def _rows(con: apsw.Connection, space: int | None, layer: Layer, prefix: str, which: Which) -> Iterator[str]:
    """Yield turns; or atoms, which are of the session and the time in which they were told."""
    # The words and the session are looked up first: most indexes of turns have the space, and it may have a million.
    of_space = "+r.space" if which.terms or which.session is not None else "r.space"
    conditions, values = [f"{of_space} = ?", "r.tombstone IS NULL"], list[int | str | None]([space])
    told, joined = "r", ""
    if layer == "turn":
        conditions.append("r.role <> 'note'")
    elif which.session is not None or which.since or which.until:
        told, joined = "n", "JOIN turn n ON n.id = r.evidence AND n.role = 'note'"
    if which.session is not None:
        conditions.append(f"{told}.session = (SELECT id FROM session WHERE space = ? AND name = ?)")
        values += [space, which.session]
    for moment, condition in ((which.since, ">="), (which.until, "<")):
        if moment is not None:
            conditions.append(f"{told}.said_at {condition} ?")
            values.append(to_ms(moment))
    if which.terms:
        conditions.append(f"r.id IN (SELECT rowid FROM {layer}_terms WHERE {layer}_terms MATCH ?)")
        values.append(_all_of(space, which.terms))
    sql = f"SELECT r.id FROM {layer} r {joined} WHERE {' AND '.join(conditions)} ORDER BY r.id"
    for (number,) in con.execute(sql, values):
        yield f"{prefix}{number}"


def _results(con: apsw.Connection, space: int | None, which: Which) -> Iterator[str]:
    """Yield refs: a result goes whole, so all the words have to stand near each other in it."""
    conditions, values = ["f.space = ?", "f.tombstone IS NULL"], list[int | str | None]([space])
    if which.session is not None:
        conditions.append(
            "(f.session = ? OR f.id IN (SELECT o.ref FROM record o JOIN session s ON s.id = o.session"
            " WHERE o.space = f.space AND s.name = ?))"
        )
        values += [which.session, which.session]
    for moment, condition in ((which.since, ">="), (which.until, "<")):
        if moment is not None:
            conditions.append(f"CAST(round(unixepoch(f.timestamp, 'subsec') * 1000) AS INTEGER) {condition} ?")
            values.append(to_ms(moment))
    if which.terms:
        conditions.append(
            "f.id IN (SELECT c.ref FROM chunk c WHERE c.space = f.space"
            " AND c.id IN (SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH ?))"
        )
        values.append(_all_of(space, which.terms))
    sql = f"SELECT f.id FROM ref f WHERE {' AND '.join(conditions)} ORDER BY f.timestamp, f.id"
    for (id,) in con.execute(sql, values):
        yield str(id)


def _all_of(space: int | None, wanted: Iterable[str]) -> str:
    quoted = ['"' + term.replace('"', '""') + '"' for term in dict.fromkeys(wanted) if "\0" not in term]
    return " AND ".join([f"space : s{space}", *(f"terms : {term}" for term in quoted)])
