"""The line files of a space, derived from its rows: journal, records, canvases and tombstones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, date

from mcp_memory.core.errors import Damaged
from mcp_memory.store.sql import canvases, forgetting, records, turns
from mcp_memory.store.sql.transaction import Transaction, from_ms


def due(tx: Transaction) -> list[str]:
    """Return the line files that the rows of a space require."""
    days = tx.column("SELECT DISTINCT learned_at / 86400000 FROM turn WHERE space = :space")
    sessions = tx.column(
        "SELECT DISTINCT s.name FROM record r JOIN session s ON s.space = r.space AND s.id = r.session"
        " WHERE r.space = :space"
    )
    return [
        *(f"conversations/{from_ms(day * 86_400_000).astimezone(UTC):%Y-%m-%d}.jsonl" for day in days),
        *(f"offload-{session}.jsonl" for session in sessions),
        *([canvases.FILE] if tx.one("SELECT 1 FROM canvas WHERE space = :space LIMIT 1") else []),
        *([forgetting.TOMBSTONES_FILE] if tx.one("SELECT 1 FROM tombstone WHERE space = :space LIMIT 1") else []),
    ]


def lines_of(tx: Transaction, path: str) -> Iterable[bytes]:
    """Return all lines of a line file, from the rows."""
    match path.split("/"):
        case ["conversations", name]:
            return turns.day_lines(tx, date.fromisoformat(name.removesuffix(".jsonl")))
        case [canvases.FILE]:
            return canvases.lines(tx)
        case [forgetting.TOMBSTONES_FILE]:
            return forgetting.tombstone_lines(tx)
        case [name] if name.startswith("offload-"):
            return records.lines(tx, name.removeprefix("offload-").removesuffix(".jsonl"))
        case _:
            raise Damaged(f"{json.dumps(path)} is no line file that this program knows")
