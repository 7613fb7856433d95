"""The log of recalls: which rows were added to the context of a model, when and for which session.

It is for diagnosis and not evidence. Its length is limited, it is not exported, and it contains no words unless the
owner enables that: only hashes of the words of each question, by which recalls are found and feedback counts for
similar questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from mcp_memory.store.sql import row_codec, session_rows
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, Value, from_ms, marks, to_ms
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
        numbered = (replace(entry, id=number) for number, entry in enumerate(added, start=last - len(added) + 1))
        rows = [row_codec.values_of(entry) for entry in numbered]
        tx.run_rows(
            f"INSERT INTO recall (space, {', '.join(rows[0])}) VALUES {{}}",
            f"({marks(['space', *rows[0]])})",
            [(space, *row.values()) for row in rows],
        )
        tx.run("DELETE FROM recall WHERE space = ? AND id <= ?", space, last - KEPT)


def list_recalls(
    tx: Transaction, *, client: str | None = None, words: Sequence[str] = (), before: int | None = None, limit: int = 50
) -> list[RecallEntry]:
    """Return the last recalls, newest first. Ids of forgotten rows remain in them.

    `client` selects those of a program, `words` those whose questions had all the words with these hashes, and `before`
    those with a lower number.
    """
    conditions, values = ["1 = 1"], list[Value]()
    if client is not None:
        conditions.append("r.client = ?")
        values.append(client)
    for word in words:
        conditions.append("r.words LIKE ?")
        values.append(f'%"{word}"%')
    if before is not None:
        conditions.append("r.id < ?")
        values.append(before)
    which = f"{' AND '.join(conditions)} ORDER BY r.id DESC LIMIT ?"
    return list(row_codec.rows(tx, RecallEntry, which, *values, limit))


def by_number(tx: Transaction, number: int) -> RecallEntry | None:
    return next(row_codec.rows(tx, RecallEntry, "r.id = ?", number), None)


def clients(tx: Transaction) -> list[str]:
    """Return the names of the programs in the log."""
    return tx.column("SELECT DISTINCT client FROM recall WHERE space = :space AND client IS NOT NULL ORDER BY client")


def said_around(tx: Transaction, session: str, at: datetime, *, limit: int) -> list[tuple[str, datetime, str]]:
    """Return the user's turns of a session that were said last before a moment and first after it.

    They are given with id, time and content, in the order in which they were said, at most `limit` of either side.
    """
    number = tx.session(session)
    said = (
        f"SELECT t.id, t.said_at, t.content FROM turn t WHERE {session_rows.TALK} AND t.session = ? AND t.role = 'user'"
        " AND t.said_at"
    )
    before = tx.all(f"{said} <= ? ORDER BY t.said_at DESC, t.position DESC LIMIT ?", number, to_ms(at), limit)
    after = tx.all(f"{said} > ? ORDER BY t.said_at, t.position LIMIT ?", number, to_ms(at), limit)
    return [(f"t{id}", from_ms(moment), content) for id, moment, content in (*reversed(before), *after)]
