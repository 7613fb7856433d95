"""What was forgotten, undone and purged in SQLite: tombstones, and their lines in `tombstones.jsonl`.

Each forgetting, undoing and purging is a line, without any words of it: of lines with the same `tombstone` the last
counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.text import iso
from mcp_memory.store import files
from mcp_memory.store.protocol import Tombstone
from mcp_memory.store.sql.rows import from_ms, space_id
from mcp_memory.store.sqlite.linefiles import append_lines

__all__ = ["FILE", "by_id", "lines", "listed", "log"]

FILE = "tombstones.jsonl"

_COLUMNS = "x.id, x.reason, x.at, x.undone_at, x.purged_at, x.took"


def by_id(con: apsw.Connection, space: int, number: int) -> Tombstone:
    """Return a tombstone, with the ids of what is forgotten under it; notes go with their atoms and are not named."""
    row: Any = con.execute(
        f"SELECT {_COLUMNS} FROM tombstone x WHERE x.id = ? AND x.space = ?", (number, space)
    ).fetchone()
    _, reason, at, undone, purged, took = row
    return Tombstone(
        id=f"x{number}",
        ids=_ids(con, space, number, notes=False),
        reason=reason,
        at=from_ms(at),
        how=_took(took)["how"],
        undone=undone is not None,
        purged=purged is not None,
    )


def listed(con: apsw.Connection, space: str) -> list[Tombstone]:
    """See `Store.tombstones`."""
    number = space_id(con, space)
    rows: Any = con.execute("SELECT id FROM tombstone WHERE space = ? ORDER BY id", (number,)).fetchall()
    return [] if number is None else [by_id(con, number, tombstone) for (tombstone,) in rows]


def log(con: apsw.Connection, folder: Path, space: int, tombstones: Sequence[int]) -> None:
    """Append how these tombstones are now to the file of the space."""
    append_lines(
        con,
        folder,
        space,
        FILE,
        [_line(con, space, number) for number in tombstones],
        rewrite=lambda: lines(con, space),
        whole=True,
    )


def lines(con: apsw.Connection, space: int) -> Iterator[bytes]:
    """Yield the lines of `tombstones.jsonl`, each tombstone's once."""
    rows: Any = con.execute("SELECT id FROM tombstone WHERE space = ? ORDER BY id", (space,)).fetchall()
    for (number,) in rows:
        yield _line(con, space, number)


def _line(con: apsw.Connection, space: int, number: int) -> bytes:
    row: Any = con.execute(
        f"SELECT {_COLUMNS} FROM tombstone x WHERE x.id = ? AND x.space = ?", (number, space)
    ).fetchone()
    _, reason, at, undone, purged, took = row
    digest: Any = con.execute("SELECT digest FROM forgotten WHERE tombstone = ? ORDER BY digest", (number,))
    ids: list[str] = _took(took)["ids"] or _ids(con, space, number, notes=True)
    return files.json_line(
        {
            "tombstone": f"x{number}",
            "at": iso(from_ms(at).astimezone(UTC)),
            "reason": reason,
            "how": _took(took)["how"],
            "ids": ids,
            "undone_at": None if undone is None else iso(from_ms(undone).astimezone(UTC)),
            "purged_at": None if purged is None else iso(from_ms(purged).astimezone(UTC)),
            "digests": [bytes(one).hex() for (one,) in digest],
        }
    )


def _took(took: str | None) -> dict[str, Any]:
    """Return what a row tells of its forgetting; rows from before that was kept tell nothing."""
    return {"ids": [], "how": "ids", **(json.loads(took) if took else {})}


def _ids(con: apsw.Connection, space: int, number: int, *, notes: bool) -> list[str]:
    rows = con.execute(
        "SELECT 't' || id FROM turn WHERE tombstone = ?1 AND (?3 OR role <> 'note') UNION ALL"
        " SELECT 'a' || id FROM atom WHERE tombstone = ?1 UNION ALL"
        " SELECT id FROM ref WHERE space = ?2 AND tombstone = ?1",
        (number, space, notes),
    )
    return [str(id) for (id,) in rows]
