"""The log of recalls: which rows were added to the context of a model, when and for which session.

It is for diagnosis and not evidence. Its length is limited, it is not exported, and it contains no words unless the
owner enables that.
"""

from __future__ import annotations

from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import RECALLS, RecallEntry

KEPT = 500
"""Number of entries that are kept for a space; older entries are deleted."""


def note_recall(tx: Transaction, entry: RecallEntry) -> None:
    """Add an entry to the log of recalls, which keeps the last 500 of a space.

    Does nothing if the space has no rows. The log is not evidence, so it is not exported. A purge erases the queries in
    the log of its space.
    """
    if not tx.space:
        return
    number = tx.next("recall")
    tx.insert("recall", **row_codec.values_of(entry), id=number)
    tx.run("DELETE FROM recall WHERE space = :space AND id <= ?", number - KEPT)
    tx.announce(RECALLS)


def list_recalls(tx: Transaction, *, limit: int = 50) -> list[RecallEntry]:
    """Return the last recalls, newest first. Ids of forgotten rows remain in them."""
    return list(row_codec.rows(tx, RecallEntry, "1 = 1 ORDER BY r.id DESC LIMIT ?", limit))
