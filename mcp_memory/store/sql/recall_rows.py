"""The log of recalls: which rows were added to the context of a model, when and for which session.

It is for diagnosis and not evidence. Its length is limited, it is not exported, and it contains no words unless the
owner enables that.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, marks
from mcp_memory.store.values import RecallEntry

KEPT = 500
"""Number of entries that are kept for a space; older entries are deleted."""


def note_recalls(tx: HomeTransaction, entries: Sequence[tuple[str, RecallEntry]]) -> None:
    """Add entries, each given with its space, to the log of recalls, which keeps the last 500 of a space.

    Does not lock the spaces. The log is not evidence: it is not exported, not announced as a change, and the last
    entries may be lost in a crash. Entries of spaces without rows are dropped. A purge erases the queries in
    the log of its space.
    """
    of_space: dict[str, list[RecallEntry]] = {}
    for name, entry in entries:
        of_space.setdefault(name, []).append(entry)
    for name, added in sorted(of_space.items()):  # servers lock the counters in the same order
        counter = tx.one(
            "INSERT INTO number (space, kind, last) SELECT id, 'recall', ? FROM space WHERE name = ?"
            " ON CONFLICT (space, kind) DO UPDATE SET last = number.last + excluded.last RETURNING space, last",
            *(len(added), name),
        )
        if counter is None:
            continue
        space, last = counter
        rows = [row_codec.values_of(entry) for entry in added]
        tx.run_rows(
            f"INSERT INTO recall (space, id, {', '.join(rows[0])}) VALUES {{}}",
            f"({marks(['space', 'id', *rows[0]])})",
            [(space, number, *row.values()) for number, row in enumerate(rows, start=last - len(added) + 1)],
        )
        tx.run("DELETE FROM recall WHERE space = ? AND id <= ?", space, last - KEPT)


def list_recalls(tx: Transaction, *, limit: int = 50) -> list[RecallEntry]:
    """Return the last recalls, newest first. Ids of forgotten rows remain in them."""
    return list(row_codec.rows(tx, RecallEntry, "1 = 1 ORDER BY r.id DESC LIMIT ?", limit))
