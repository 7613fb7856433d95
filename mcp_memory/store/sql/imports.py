"""Files whose turns are stored, so that what was done is not done again. One row for each content."""

from __future__ import annotations

from typing import Any

import apsw

from mcp_memory.store.protocol import Imported
from mcp_memory.store.sql.rows import from_ms, space_for, space_id, to_ms

__all__ = ["listed", "note"]


def listed(con: apsw.Connection, space: str) -> list[Imported]:
    """See `Store.imported`."""
    rows: Any = con.execute(
        "SELECT path, sha256, modified, turns, at FROM imported WHERE space = ? ORDER BY at DESC, path",
        (space_id(con, space),),
    )
    return [
        Imported(path=path, sha256=sha256, modified=modified, turns=turns, at=from_ms(at))
        for path, sha256, modified, turns, at in rows
    ]


def note(con: apsw.Connection, space: str, file: Imported) -> None:
    """See `Store.note_import`. The same content found elsewhere, or touched, is known by where it was seen last."""
    con.execute(
        "INSERT INTO imported (space, sha256, path, modified, turns, at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (space, sha256) DO UPDATE SET path = excluded.path, modified = excluded.modified,"
        " turns = excluded.turns, at = excluded.at",
        (space_for(con, space), file.sha256, file.path, file.modified, file.turns, to_ms(file.at)),
    )
