"""Counters of a space, brought up to its rows: for rows that came with their numbers, or a counter that was lost."""

from __future__ import annotations

from mcp_memory.store.sql.transaction import Transaction

__all__ = ["behind", "catch_up"]

_NUMBERED = (
    *("session", "tombstone", "turn", "atom", "entity_name", "work", "draft", "record", "chunk", "saving"),
    "message_edit",
)


def behind(tx: Transaction) -> list[str]:
    """Return the tables with rows beyond their counter."""
    return [
        table
        for table in _NUMBERED
        if (tx.get(f"SELECT max(id) FROM {table} WHERE space = :space") or 0) > tx.last(table)
    ]


def catch_up(tx: Transaction) -> None:
    """Have every counter go on behind the last row that there is."""
    for table in behind(tx):
        tx.run(
            f"INSERT INTO number (space, kind, last) SELECT space, ?, max(id) FROM {table} WHERE space = :space"
            " GROUP BY space ON CONFLICT (space, kind) DO UPDATE SET last = excluded.last",
            table,
        )
