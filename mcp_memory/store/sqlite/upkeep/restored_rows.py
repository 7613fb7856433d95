"""Rows of a backup that were forgotten after it was made.

The tombstone lines of the later state have ids and keyed digests, without words. A row is meant if its id is named and
its digest matches; a row without digests, such as a short turn without a time, is meant by its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp_memory.core.regular_files import read_regular
from mcp_memory.store.forgetting import How
from mcp_memory.store.sql import digests, forgetting
from mcp_memory.store.sql.transaction import to_ms
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.upkeep.snapshots import opened

__all__ = ["Returned", "returned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What one tombstone took, as far as it is back: `ids`. None where it is forgotten still and not purged yet."""

    space: str
    tombstone: str
    at: datetime
    reason: str
    how: How
    ids: Sequence[str]
    was_purged: bool


def returned(database: Path, spaces: Path) -> list[Returned]:
    """Return the rows of a database that the tombstones of a later state name."""
    found: list[Returned] = []
    with opened(database) as con:
        for folder in sorted(path for path in spaces.iterdir() if (path / forgetting.TOMBSTONES_FILE).is_file()):
            tx = SqliteTransaction(con, spaces.parent, folder.name)
            if tx.space:
                found += _of_space(tx)
    return found


def _of_space(tx: SqliteTransaction) -> Iterator[Returned]:
    last: dict[str, bytes] = {}
    for line in read_regular(tx.folder / forgetting.TOMBSTONES_FILE).splitlines():
        try:
            last[str(json.loads(line)["tombstone"])] = line
        except (ValueError, KeyError, TypeError):
            continue  # a rebuild names it
    for line in last.values():
        try:
            one = _returned(tx, json.loads(line))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        if one is not None:
            yield one


def _returned(tx: SqliteTransaction, line: dict[str, Any]) -> Returned | None:
    at, was_purged = datetime.fromisoformat(line["at"]), line["purged_at"] is not None
    if line["undone_at"] is not None:
        return None
    held = tx.one(
        "SELECT undone_at, purged_at FROM tombstone WHERE space = :space AND id = ? AND at = ?",
        *(int(line["tombstone"][1:]), to_ms(at)),
    )
    ids = list[str]()
    if held is None:
        wanted = {bytes.fromhex(digest) for digest in line["digests"]}
        ids = [id for id in map(str, line["ids"]) if _is_meant(tx, id, wanted)]
    is_back = bool(ids) if held is None else was_purged and held == (None, None)
    return (
        Returned(
            space=tx.name,
            tombstone=line["tombstone"],
            at=at,
            reason=str(line["reason"]),
            how=line["how"],
            ids=ids,
            was_purged=was_purged,
        )
        if is_back
        else None
    )


def _is_meant(tx: SqliteTransaction, id: str, wanted: set[bytes]) -> bool:
    found = digests.of(tx, id)
    return found is not None and (not found or not wanted.isdisjoint(found))
