"""Turns stored as they come in, at the end of their session, with their index terms and journal lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mcp_memory.core.types import IMPORTED, NewTurn
from mcp_memory.store import carried
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.sql import digests, turns
from mcp_memory.store.sql.rows import session_for, touch
from mcp_memory.store.sqlite.moving.arrivals.desk import GONE, Desk

__all__ = ["say"]


def say(desk: Desk, rows: Sequence[carried.Turn], *, told: dict[str, Any] | None = None) -> None:
    """Store turns of one session at its end, but for those that were forgotten here."""
    con, name = desk.con, rows[0].session
    session = session_for(con, desk.number, name)
    new = [
        NewTurn(
            role=row.role,
            content=row.content,
            name=row.name,
            said_at=row.said_at,
            client_id=row.client_id,
            guessed=not row.dated,
        )
        for row in rows
    ]
    # The time of a turn without one is when it was learned, which counts here; that of an import is nobody's.
    learned = [turn if (turn.client_id or "").startswith(IMPORTED) else replace(turn, guessed=False) for turn in new]
    again = digests.turns(con, desk.number, session, learned)
    desk.names |= {rows[place].id: GONE for place in again}
    taken = [(row, turn) for place, (row, turn) in enumerate(zip(rows, new, strict=True)) if place not in again]
    if not taken:
        return
    stored = turns.insert(
        con,
        desk.number,
        session,
        name,
        [turn for _, turn in taken],
        now=desk.now,
        hashes=[evidence_hash(turn) for _, turn in taken],
        told=told,
    )
    turns.journal(con, desk.folder, desk.number, stored, now=desk.now)
    for (row, _), turn in zip(taken, stored, strict=True):
        # What a text names is another thing here; what it cites comes in beside it.
        con.execute("DELETE FROM citation WHERE space = ? AND source = ?", (desk.number, turn.id))
        desk.note(row.id, row.learned_at, row.origins, turn.id)
    desk.stored += len(stored)
    touch(con, desk.number, f"session:{name}")
