"""Tombstones: records of forgetting, undoing and purging, and their lines in `tombstones.jsonl`.

Each of these operations appends a line without any forgotten words; of lines with the same `tombstone` the last one
counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

from mcp_memory.core.text import iso
from mcp_memory.store import files
from mcp_memory.store.sql.transaction import Transaction, from_ms
from mcp_memory.store.values import Tombstone

__all__ = ["FILE", "by_id", "lines", "listed", "log"]

FILE = "tombstones.jsonl"

_COLUMNS = "reason, at, undone_at, purged_at, took"


def by_id(tx: Transaction, number: int) -> Tombstone:
    """Return a tombstone with the ids of its rows; notes, which go with their atoms, are not listed."""
    reason, at, undone, purged, took = tx.all(
        f"SELECT {_COLUMNS} FROM tombstone WHERE space = :space AND id = ?", number
    )[0]
    return Tombstone(
        id=f"x{number}",
        ids=_ids(tx, number, notes=False),
        reason=reason,
        at=from_ms(at),
        how=_took(took)["how"],
        undone=undone is not None,
        purged=purged is not None,
    )


def listed(tx: Transaction) -> list[Tombstone]:
    return [by_id(tx, number) for number in _numbers(tx)]


def log(tx: Transaction, tombstones: Sequence[int]) -> None:
    """Append the current state of these tombstones to the space's file."""
    tx.files.append(FILE, [_line(tx, number) for number in tombstones], rewrite=lambda: lines(tx), whole=True)


def lines(tx: Transaction) -> Iterator[bytes]:
    """Yield the lines of `tombstones.jsonl`, one for each tombstone."""
    for number in _numbers(tx):
        yield _line(tx, number)


def _numbers(tx: Transaction) -> list[int]:
    return tx.column("SELECT id FROM tombstone WHERE space = :space ORDER BY id")


def _line(tx: Transaction, number: int) -> bytes:
    reason, at, undone, purged, took = tx.all(
        f"SELECT {_COLUMNS} FROM tombstone WHERE space = :space AND id = ?", number
    )[0]
    digests = tx.column("SELECT digest FROM forgotten WHERE space = :space AND tombstone = ? ORDER BY digest", number)
    ids: list[str] = _took(took)["ids"] or _ids(tx, number, notes=True)
    return files.json_line(
        {
            "tombstone": f"x{number}",
            "at": _iso(at),
            "reason": reason,
            "how": _took(took)["how"],
            "ids": ids,
            "undone_at": _iso(undone),
            "purged_at": _iso(purged),
            "digests": [bytes(one).hex() for one in digests],
        }
    )


def _iso(ms: int | None) -> str | None:
    return None if ms is None else iso(from_ms(ms).astimezone(UTC))


def _took(took: str | None) -> dict[str, Any]:
    """Return the ids in a tombstone's row, and how they were selected."""
    return {"ids": [], "how": "ids", **(json.loads(took) if took else {})}


def _ids(tx: Transaction, number: int, *, notes: bool) -> list[str]:
    said = "" if notes else "AND role <> 'note'"
    return tx.column(
        f"SELECT 't' || id FROM turn WHERE space = :space AND tombstone = ? {said} UNION ALL"
        " SELECT 'a' || id FROM atom WHERE space = :space AND tombstone = ? UNION ALL"
        " SELECT id FROM ref WHERE space = :space AND tombstone = ?",
        *(number, number, number),
    )
