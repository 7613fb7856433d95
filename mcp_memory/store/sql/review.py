"""What waits for review, in SQLite: turns and atoms that automatic recall leaves out, why, and what was decided."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.store.sql.rows import from_ms, marks, space_for, space_id, stands, to_ms, touch
from mcp_memory.store.values import Held, Verdict

__all__ = ["OF_ATOM", "PASSES", "count", "listed", "note", "put", "review"]

OF_ATOM = (
    "(SELECT h.reasons FROM held h WHERE h.space = r.space AND h.id = 'a' || r.id AND h.verdict IS NOT 'released')"
)
"""Of a row `r` of atoms, why it is held, as JSON; NULL where it is not."""

PASSES = (
    "NOT EXISTS (SELECT 1 FROM held h WHERE h.space = r.space AND h.id = 'a' || r.id AND h.verdict IS NOT 'released')"
)

_THERE = stands("h.id")
_COLUMNS = "h.id, h.reasons, h.at, h.verdict, h.reviewed_at"


def note(con: apsw.Connection, space: int, reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
    """Hold rows for reasons; what was reviewed before stays as it was decided."""
    con.executemany(
        "INSERT INTO held (space, id, reasons, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(space, id, json.dumps(list(why)), to_ms(now)) for id, why in reasons.items() if why],
    )


def put(con: apsw.Connection, space: str, reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
    """See `Store.put_aside`."""
    number = space_for(con, space)
    note(con, number, reasons, now=now)
    touch(con, number, *_topics(reasons))


def listed(con: apsw.Connection, space: str, ids: Iterable[str] | None, *, limit: int) -> list[Held]:
    """See `Store.held`."""
    number = space_id(con, space)
    if ids is None:
        sql = f"SELECT {_COLUMNS} FROM held h WHERE h.space = ? AND h.verdict IS NULL AND {_THERE}"
        rows: Any = con.execute(f"{sql} ORDER BY h.at DESC, h.id LIMIT ?", (number, limit))
        return [_held(row) for row in rows]
    wanted = list(dict.fromkeys(ids))
    sql = f"SELECT {_COLUMNS} FROM held h WHERE h.space = ? AND h.id IN ({marks(wanted)}) AND {_THERE}"
    found = {one.id: one for one in map(_held, con.execute(sql, (number, *wanted)))}
    return [found[id] for id in wanted if id in found]


def count(con: apsw.Connection, space: str) -> int:
    """See `Store.held_count`."""
    sql = f"SELECT count(*) FROM held h WHERE h.space = ? AND h.verdict IS NULL AND {_THERE}"
    return con.execute(sql, (space_id(con, space),)).get or 0


def review(con: apsw.Connection, space: str, ids: Sequence[str], verdict: Verdict, *, now: datetime) -> list[Held]:
    """See `Store.review`."""
    known = {one.id for one in listed(con, space, ids, limit=0)}
    missing = [one_line(id, 40) for id in ids if id not in known]
    if missing:
        raise NotFound(f"Not held for review: {', '.join(missing[:10])}. Nothing was changed; `review` lists what is.")
    number = space_for(con, space)
    con.executemany(
        "UPDATE held SET verdict = ?, reviewed_at = ? WHERE space = ? AND id = ?",
        [(verdict, to_ms(now), number, id) for id in ids],
    )
    touch(con, number, *_topics(ids))
    return listed(con, space, ids, limit=0)


def _topics(ids: Iterable[str]) -> list[str]:
    return [f"atom:{id}" for id in ids if id.startswith("a")]


def _held(row: Sequence[Any]) -> Held:
    id, reasons, at, verdict, reviewed = row
    return Held(
        id=str(id),
        reasons=tuple(json.loads(str(reasons))),
        at=from_ms(int(at)),
        verdict=verdict,
        reviewed_at=None if reviewed is None else from_ms(int(reviewed)),
    )
