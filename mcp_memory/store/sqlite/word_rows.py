"""What the user said, found by words alone, on one connection that cannot write.

For a process that has to answer at once: it opens the database without `Database`, whose pool, copies and migration it
does not need. Only rows that need no further judgement are read: turns of the user and statements that rest on the
user's words, current, neither forgotten nor quarantined nor doubted, and from other sessions than the reader's.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.regular_files import require_no_links
from mcp_memory.store.sql.quarantine_rows import DOUBTS_OF_ATOM, PASSES, TURN_PASSES
from mcp_memory.store.sql.transaction import from_ms, to_ms
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite.index.rowids import ID_MASK, span
from mcp_memory.store.sqlite.index.terms import quote_term
from mcp_memory.store.sqlite.migrations import must_be_current

NEWEST = 1_500  # rows read of a word
_BUSY_MS = 200
_CHARS = 20_000  # of a turn
_OTHER_SESSION = "s.name <> :session"
_ATOM = f"""
    FROM atom r JOIN turn t ON t.space = r.space AND t.id = r.evidence
    JOIN session s ON s.space = t.space AND s.id = t.session
    WHERE r.space = :space AND r.source = 'user' AND r.tombstone IS NULL AND r.purged_at IS NULL
    AND r.valid_to IS NULL AND r.valid_from <= :now AND coalesce(r.label, '') <> 'promise'
    AND {PASSES} AND {DOUBTS_OF_ATOM} IS NULL
"""
_SQL = {
    "turn": f"""
        SELECT r.id, r.id, substr(r.content, 1, {_CHARS}), r.said_at, s.name, r.position
        FROM turn r JOIN session s ON s.space = r.space AND s.id = r.session
        WHERE r.space = :space AND r.id IN (SELECT value FROM json_each(:rows)) AND {_OTHER_SESSION}
        AND r.role = 'user' AND r.name IS NULL AND r.tombstone IS NULL AND r.purged_at IS NULL AND {TURN_PASSES}
        AND NOT EXISTS (
            SELECT 1 FROM atom a WHERE a.space = r.space AND a.evidence = r.id AND a.valid_to IS NOT NULL
        )
    """,
    "atom": f"""
        SELECT r.id, r.evidence, r.text, r.valid_from, s.name, t.position
        {_ATOM} AND r.id IN (SELECT value FROM json_each(:rows)) AND {_OTHER_SESSION} AND r.reader IS NULL
    """,
}
_RULES = f"""
    SELECT r.id, r.evidence, r.text, r.valid_from, s.name, t.position
    {_ATOM} AND r.kind = 'instruction' ORDER BY r.priority >= 0, r.valid_from DESC, r.id DESC LIMIT :limit
"""


class WordRow(NamedTuple):
    """A turn or a statement: its id, text, and when it was said or valid; `turn` is the id of the turn behind it."""

    id: str
    turn: str
    text: str
    at: datetime
    session: str
    position: int


class WordRows:
    """The rows of one space, in one snapshot; `open_word_rows` opens it. Raises apsw.Error."""

    def __init__(self, con: apsw.Connection, space: int, now: datetime) -> None:
        self._con = con
        self._space = space
        self._now = to_ms(now)

    def total(self, layer: str) -> int:
        """Return about how many rows a layer has."""
        sql = "SELECT last FROM number WHERE space = ? AND kind = ?"
        return self._con.execute(sql, (self._space, layer)).get or 0

    def with_term(self, layer: str, term: str) -> list[int]:
        """Return the newest rows with a term of the index, newest first."""
        sql = (
            f"SELECT rowid & {ID_MASK} FROM {layer}_terms WHERE {layer}_terms MATCH ? AND rowid BETWEEN ? AND ?"
            f" ORDER BY rowid DESC LIMIT {NEWEST}"
        )
        return [int(row) for (row,) in self._con.execute(sql, (quote_term(term), *span(self._space)))]

    def usable(self, layer: str, rows: Sequence[int], *, session: str) -> list[WordRow]:
        """Return those of the rows that may be shown to a session, in no order."""
        return self._read(layer, _SQL[layer], rows=json.dumps(rows), session=session)

    def rules(self, *, limit: int) -> list[WordRow]:
        """Return the user's current standing rules, the newest first."""
        return self._read("atom", _RULES, limit=limit)

    def _read(self, layer: str, sql: str, **values: str | int) -> list[WordRow]:
        bindings = {"space": self._space, "now": self._now, **values}
        rows: Iterable[Any] = self._con.execute(sql, bindings)
        return [
            WordRow(f"{layer[0]}{id}", f"t{turn}", text, from_ms(at), session, position)
            for id, turn, text, at, session, position in rows
        ]


@contextmanager
def open_word_rows(home: Path, space: str, *, now: datetime) -> Generator[WordRows | None]:
    """Open the rows of a space to read them; None if nothing is stored in it.

    Raises StoreUnavailable if the database cannot be read or has to be upgraded first, NewerHome if its schema is
    newer.
    """
    if not (home / homes.DATABASE).exists():
        yield None
        return
    require_no_links(home)
    try:
        con = homes.open_to_read(home / homes.DATABASE)
        try:
            con.set_busy_timeout(_BUSY_MS)
            con.execute("BEGIN")
            must_be_current(con)
            number = con.execute("SELECT id FROM space WHERE name = ?", (space,)).get
            yield None if number is None else WordRows(con, number, now)
        finally:
            con.close()
    except apsw.Error as error:
        raise StoreUnavailable(f"{home / homes.DATABASE} cannot be read: {error}") from None
