"""Canvases that a model looks over, in SQLite: how much each has grown since, and what came of a look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.types import CanvasRow
from mcp_memory.store.protocol import CanvasEdit, CanvasGrowth, Outcome
from mcp_memory.store.sql import canvases, jobs
from mcp_memory.store.sql.rows import space_for, space_id, to_ms

__all__ = ["commit", "growth"]


def growth(con: apsw.Connection, space: str, *, since: datetime) -> list[CanvasGrowth]:
    """See `Store.canvas_growth`. How far a canvas was looked over stands in the log, in the basis of its last work."""
    rows: Any = con.execute(
        "WITH looked AS MATERIALIZED ("
        " SELECT basis ->> 'canvas' AS canvas, max(basis ->> 'upto') AS upto FROM work"
        " WHERE space = ?1 AND stage = 'canvas' AND state = 'done' GROUP BY 1)"
        " SELECT c.number, c.status, count(*) AS steps, max(r.id) FROM canvas c"
        " LEFT JOIN looked l ON l.canvas = c.number CROSS JOIN record r"
        " ON r.space = c.space AND r.canvas = c.number AND r.id > coalesce(l.upto, 0)"
        " WHERE c.space = ?1 AND c.updated >= ?2 GROUP BY c.number ORDER BY steps DESC, c.number DESC",
        (space_id(con, space), to_ms(since)),
    )
    return [CanvasGrowth(canvas=number, status=status, steps=steps, upto=upto) for number, status, steps, upto in rows]


def commit(
    con: apsw.Connection,
    folder: Path,
    space: str,
    work: str,
    *,
    row: CanvasRow | None,
    expected: int,
    edits: Sequence[CanvasEdit],
    outcome: Outcome,
    now: datetime,
) -> None:
    """See `Store.commit_canvas`."""
    jobs.finish(con, space_for(con, space), work, outcome=outcome, now=now)
    if row is not None:
        canvases.save(con, folder, space, row, expected=expected, make_active=False, edits=edits)
