"""Beside the rows: what is held for review, what cites what, and how far sessions and stages have come."""

from __future__ import annotations

from typing import Any

from mcp_memory.store import carried
from mcp_memory.store.sql import canvases
from mcp_memory.store.sql.rows import number_of, session_id, to_ms
from mcp_memory.store.sqlite.moving.arrivals.desk import GONE, Desk

__all__ = ["citation", "held", "progress", "session"]


def held(desk: Desk, row: carried.Held) -> None:
    """Hold what was held, with what a person said to it; what was decided here stays decided."""
    name = desk.name(row.id)
    if name != GONE:
        reviewed = None if row.reviewed_at is None else to_ms(row.reviewed_at)
        desk.con.execute(
            "INSERT INTO held (space, id, reasons, at, verdict, reviewed_at) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (desk.number, name, row.reasons, to_ms(row.at), row.verdict, reviewed),
        )


def citation(desk: Desk, row: carried.Citation) -> None:
    source, ref = desk.name(row.source), desk.name(row.ref)
    if GONE not in (source, ref):
        first, last = row.lines or (0, 0)
        desk.con.execute(
            "INSERT INTO citation (space, source, ref, first_line, last_line) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (desk.number, source, ref, first, last),
        )


def session(desk: Desk, row: carried.Session) -> None:
    """Let a session be read as far as it was, where nothing of this home's own waits before that."""
    number = session_id(desk.con, desk.number, row.name)
    if number is None or desk.is_own:
        return
    canvas = desk.name(f"c{row.canvas}") if row.canvas is not None else GONE
    if canvas != GONE and canvases.active(desk.con, desk.space, row.name) is None:
        canvases.activate(desk.con, desk.folder, desk.space, row.name, number_of(canvas, "c"), now=desk.now)
    read = desk.name(row.read) if row.read is not None else GONE
    if read == GONE:
        return
    position: int | None = desk.con.execute(
        "SELECT position + 1 FROM turn WHERE id = ? AND session = ?", (number_of(read, "t"), number)
    ).get
    at: int = desk.con.execute("SELECT position FROM progress WHERE session = ?", (number,)).get or 0
    own: Any = desk.con.execute(
        "SELECT 1 FROM turn t WHERE t.session = ?1 AND t.position >= ?2 AND t.position < ?3 AND t.role <> 'note'"
        " AND NOT EXISTS (SELECT 1 FROM origin o WHERE o.space = ?4 AND o.id = 't' || t.id) LIMIT 1",
        (number, at, position or 0, desk.number),
    ).get
    if position is not None and position > at and own is None:
        desk.con.execute(
            "INSERT INTO progress (session, position, batches, flush, scene) VALUES (?, ?, ?, 0, ?)"
            " ON CONFLICT (session) DO UPDATE SET position = excluded.position,"
            " batches = max(progress.batches, excluded.batches), scene = excluded.scene",
            (number, position, row.batches, row.scene),
        )


def progress(desk: Desk, row: carried.Progress) -> None:
    """Let a stage have told what it told where the atoms came from, where none of this home's own wait before."""
    name = desk.name(row.upto)
    if name == GONE or desk.is_own:
        return
    upto = number_of(name, "a")
    at: int = (
        desk.con.execute(
            "SELECT position FROM stage_cursor WHERE space = ? AND stage = ?", (desk.number, row.stage)
        ).get
        or 0
    )
    own: Any = desk.con.execute(
        "SELECT 1 FROM atom a WHERE a.space = ?1 AND a.id > ?2 AND a.id <= ?3 AND a.tombstone IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM origin o WHERE o.space = ?1 AND o.id = 'a' || a.id) LIMIT 1",
        (desk.number, at, upto),
    ).get
    if upto > at and own is None:
        desk.con.execute(
            "INSERT INTO stage_cursor (space, stage, position, at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (space, stage) DO UPDATE SET position = excluded.position",
            (desk.number, row.stage, upto, to_ms(desk.now)),
        )
