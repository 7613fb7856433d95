"""The line files of a space, as their rows have them: journal, records, canvases and tombstones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date

from mcp_memory.core.errors import Damaged
from mcp_memory.store.sql import canvases, records, tombstones, turns
from mcp_memory.store.sql.transaction import Transaction

__all__ = ["lines_of"]


def lines_of(tx: Transaction, path: str) -> Iterable[bytes]:
    """Return all lines that a line file has to have, from the rows."""
    match path.split("/"):
        case ["conversations", name]:
            return turns.day_lines(tx, date.fromisoformat(name.removesuffix(".jsonl")))
        case [canvases.FILE]:
            return canvases.lines(tx)
        case [tombstones.FILE]:
            return tombstones.lines(tx)
        case [name] if name.startswith("offload-"):
            return records.lines(tx, name.removeprefix("offload-").removesuffix(".jsonl"))
        case _:
            raise Damaged(f"{json.dumps(path)} is no line file that this program knows")
