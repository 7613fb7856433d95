"""Summaries of records that a model may better, in SQLite: which are thin, and how they are replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.types import CanvasRow
from mcp_memory.store.protocol import Amended, Conflict, Outcome, ThinRecord
from mcp_memory.store.sql import canvases, jobs, records
from mcp_memory.store.sql.rows import marks, number_of, space_for, space_id, to_ms

__all__ = ["by_program", "commit", "recorded", "thin"]

_COLUMNS = (
    "r.id, (SELECT n.tool_call FROM record n WHERE n.session = r.session AND n.id > r.id AND NOT EXISTS ("
    "  SELECT 1 FROM ref g WHERE g.space = n.space AND g.id = n.ref AND g.tombstone IS NOT NULL)"
    " ORDER BY n.id LIMIT 1),"
    " NOT EXISTS (SELECT 1 FROM record n WHERE n.space = r.space AND n.canvas = r.canvas AND n.node = r.node"
    f" AND n.id > r.id), {records.COLUMNS}"
)
_OF = (
    "JOIN session s ON s.id = r.session JOIN ref f ON f.space = r.space AND f.id = r.ref"
    " WHERE r.summary_by = 'synopsis' AND f.tombstone IS NULL AND r.space = ?"
)


def recorded(con: apsw.Connection, space: str) -> int:
    return con.execute("SELECT count(*) FROM record WHERE space = ?", (space_id(con, space),)).get


def thin(
    con: apsw.Connection,
    space: str,
    *,
    after: int,
    since: datetime,
    most_score: int,
    least_tokens: int,
    limit: int,
) -> list[ThinRecord]:
    """See `Store.thin_records`. Canvases lead: few of them are touched in a few days."""
    rows = con.execute(
        f"SELECT {_COLUMNS} FROM canvas c CROSS JOIN record r ON r.space = c.space AND r.canvas = c.number {_OF}"
        " AND c.updated >= ? AND r.id > ? AND r.score <= ? AND r.tokens_raw >= ?"
        " AND f.content_type <> 'application/octet-stream' ORDER BY r.id LIMIT ?",
        (space_id(con, space), to_ms(since), after, most_score, least_tokens, limit),
    )
    return _thin(rows)


def by_program(con: apsw.Connection, space: str, numbers: Sequence[int]) -> list[ThinRecord]:
    """See `Store.summarised_by_program`."""
    rows = con.execute(
        f"SELECT {_COLUMNS} FROM record r {_OF} AND r.id IN ({marks(numbers)}) ORDER BY r.id",
        (space_id(con, space), *numbers),
    )
    return _thin(rows)


def _thin(rows: Iterable[Sequence[Any]]) -> list[ThinRecord]:
    return [
        ThinRecord(number=number, record=records.of_row(row), then=then or "", newest=bool(newest))
        for number, then, newest, *row in rows
    ]


def commit(
    con: apsw.Connection,
    folder: Path,
    space: str,
    work: str,
    *,
    amended: Sequence[Amended],
    rows: Sequence[CanvasRow],
    upto: int,
    outcome: Outcome,
    now: datetime,
) -> None:
    """See `Store.commit_summaries`."""
    space_no = space_for(con, space)
    jobs.finish(con, space_no, work, outcome=outcome, now=now)
    jobs.move(con, space_no, "summaries", upto, now=now)
    if any(canvases.canvas(con, space, row.number).version != row.version for row in rows):
        raise Conflict  # before any file is written
    for row in rows:
        canvases.save(con, folder, space, row, expected=row.version, make_active=False)
    for one in amended:
        con.execute(
            "UPDATE record SET summary = ?, score = ?, summary_by = 'model', work = ?"
            " WHERE id = ? AND space = ? AND summary_by = 'synopsis'",
            (one.summary, one.score, number_of(work, "w"), one.number, space_no),
        )
    changed = con.execute(
        "SELECT s.name, r.id FROM record r JOIN session s ON s.id = r.session WHERE r.work = ?"
        f" AND r.id IN ({marks(amended)}) ORDER BY r.id",
        (number_of(work, "w"), *(one.number for one in amended)),
    )
    by_session = defaultdict[str, list[int]](list)
    for session, number in changed:
        by_session[str(session)].append(int(number))
    for session, new in by_session.items():
        records.append(con, folder, space, session, new)
