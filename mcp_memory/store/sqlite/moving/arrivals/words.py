"""Results, turns, and the statements that rest on them, as they come in.

Turns and atoms come in the order of their telling, an atom behind the turn that it first rests on. A note comes in
with its atom, and its line in the journal tells of that atom as it stands here. A note of what is held already says
nothing new, and is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.core.types import MaskedPlace
from mcp_memory.store import carried
from mcp_memory.store.protocol import NewRef
from mcp_memory.store.sql import refs
from mcp_memory.store.sqlite.moving.arrivals import statements
from mcp_memory.store.sqlite.moving.arrivals.desk import Desk
from mcp_memory.store.sqlite.moving.arrivals.saying import say

__all__ = ["ref", "spoken"]


def ref(desk: Desk, row: carried.Ref) -> None:
    """Take in a result whose bytes are at hand; the same bytes are kept once."""
    known = desk.find(row.id, None, row.origins)
    if known is not None:
        desk.meet(known)
    if known is None and row.data is not None:
        new = NewRef(
            data=row.data,
            tool=row.tool,
            arguments=row.arguments,
            tool_call_id=row.tool_call_id,
            session=row.session,
            timestamp=row.timestamp,
            content_type=row.content_type,
            masked=[MaskedPlace(start=start, end=end, kind=kind) for start, end, kind in row.masked],
        )
        before = desk.con.total_changes()
        known = refs.put(desk.con, desk.folder, desk.space, new, refuse=False).id
        if desk.con.total_changes() > before:
            desk.stored += 1
        else:
            desk.meet(known)
    if known is not None:
        desk.note(row.id, None, row.origins, known)


def spoken(desk: Desk, rows: Sequence[carried.Turn | carried.Atom]) -> None:
    """Take in turns and atoms in their order."""
    run = _Run(desk)
    for row in rows:
        match row:
            case carried.Atom():
                note = run.note if run.note is not None and row.evidence[0].turn == run.note.id else None
                run.note = None if note is not None else run.note
                run.end()
                statements.take(desk, row, note)
            case carried.Turn():
                run.add(row)
    run.end()


class _Run:
    """Turns of one session that are stored together, or a note that waits for its atom."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turns: list[carried.Turn] = []
        self.note: carried.Turn | None = None

    def add(self, row: carried.Turn) -> None:
        same_session = not self._turns or self._turns[0].session == row.session
        if self.note is not None or not same_session or (row.client_id is not None and self._has(row.client_id)):
            self.end()
        known = self._desk.find(row.id, row.learned_at, row.origins)
        known = _same_message(self._desk, row) if known is None else known
        if known is not None:
            self._desk.meet(known)
            self._desk.note(row.id, row.learned_at, row.origins, known)
        elif row.role == "note":
            self.end()
            self.note = row
        else:
            self._turns.append(row)

    def _has(self, client_id: str) -> bool:
        return any(one.client_id == client_id for one in self._turns)

    def end(self) -> None:
        """Store what waits."""
        rows, self._turns = self._turns, []
        if self.note is not None:  # its atom was not carried: it is a turn like any other
            rows, self.note = [*rows, self.note], None
        if rows:
            say(self._desk, rows)


def _same_message(desk: Desk, row: carried.Turn) -> str | None:
    """Return the turn that is the same message of the same client, wherever it was told from."""
    if row.client_id is None:
        return None
    number = desk.con.execute(
        "SELECT id FROM turn WHERE space = ? AND client_id = ? AND sha256 = ? LIMIT 1",
        (desk.number, row.client_id, bytes.fromhex(row.sha256)),
    ).get
    return None if number is None else f"t{number}"
