"""Purging in SQLite: the record of unverified purges, secure delete, and the texts that other rows retain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.regular_files import is_own
from mcp_memory.store.forgetting import Purge, Purged
from mcp_memory.store.purge_search import Traces, own_words
from mcp_memory.store.sql import purging
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction
from mcp_memory.store.sqlite.index import positions
from mcp_memory.store.sqlite.upkeep import compaction


def purge(tx: Transaction, what: Purge, *, now: datetime) -> Purged:
    """See `Store.purge`.

    Until `note_verified` the purge is recorded as unverified, so that an interrupted purge is found.
    """
    done = purging.purge(tx, what, now=now)
    for first in done.tombstones[:1]:
        tx.run("INSERT INTO unverified_purge (name) VALUES (?) ON CONFLICT DO NOTHING", f"{tx.name}/{first}")
    return done


def unverified_purges(tx: HomeTransaction) -> list[str]:
    return tx.column("SELECT name FROM unverified_purge ORDER BY name")


def note_verified(tx: HomeTransaction, purges: Sequence[str]) -> None:
    tx.many("DELETE FROM unverified_purge WHERE name = ?", [(name,) for name in purges])


def secure_delete(con: apsw.Connection, *, patience: float) -> bool:
    """Remove erased content from free pages, indexes and the log. Must not be called in a transaction.

    Returns False if readers were active for `patience` seconds, so that the log could not be emptied: call it again
    then.
    """
    con.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE")
    try:
        positions.start_again(con)
        for layer in ("turn", "atom", "chunk"):  # a rebuild is needed to drop deleted entries
            con.execute(f"INSERT INTO {layer}_terms ({layer}_terms) VALUES ('optimize')")
        compaction.vacuum(con)
    finally:
        con.execute("PRAGMA temp_store = MEMORY")
    waits: int = con.execute("PRAGMA busy_timeout").get
    con.set_busy_timeout(round(patience * 1_000))
    try:
        if not compaction.checkpoint(con):
            return False
    finally:
        con.set_busy_timeout(waits)
    return True


def exclude_retained(con: apsw.Connection, home: Path, traces: Traces) -> list[str]:
    """See `Store.exclude_retained`."""
    traces.excuse([own_words(), *_schema(con)])
    retained_ids = [
        *traces.excuse(_stored_texts(con, names=False)),
        *traces.excuse(_stored_texts(con, names=True), words=False),
    ]
    refs: Any = con.execute(
        "SELECT r.id, s.name, r.path FROM ref r JOIN space s ON s.id = r.space WHERE r.purged_at IS NULL ORDER BY r.id"
    )
    for id, space, path in refs:
        target = home / "spaces" / space / path
        if is_own(target) and traces.excuse_file(target):
            retained_ids.append(id)
    return list(dict.fromkeys(retained_ids))


_NAMING = {
    *("session.name", "space.name", "token.name", "turn.name", "turn.client_id", "entity_name.name", "entity_name.key"),
    *("ref.tool", "ref.session", "ref.path", "ref.tool_call_id", "ref.arguments", "record.tool_call"),
    *("record.tool_call_id", "record.result_ref", "canvas.label", "canvas.text", "canvas.groups"),
    *("canvas_version.label", "canvas_version.delta", "tombstone.reason", "imported.path", "followed.path"),
    *("recall.session", "saving.session", "message_edit.session", "followed.session", "change.topic", "file.path"),
    "stale_file.path",
    *("scene.slug", "scene.title", "work.basis", "unverified_purge.name"),
}
"""Columns that name things, or quote such names."""


def _schema(con: apsw.Connection) -> Iterator[tuple[str, bytes]]:
    for (sql,) in con.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"):
        yield "schema", str(sql).encode()


def _stored_texts(con: apsw.Connection, *, names: bool) -> Iterator[tuple[str, bytes]]:
    """Yield every text of the rows with its place (`t8`, `a5`, or the table): either all names or all other texts."""
    tables: list[str] = [
        str(name)
        for (name,) in con.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
    ]
    for table in tables:
        columns = [str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        hashed = {"sha256", "hash", "digest", "folded", "present", "vectors", *({"key"} if table == "home" else ())}
        texts = [name for name in columns if name not in hashed and (f"{table}.{name}" in _NAMING) == names]
        if not texts:
            continue
        key = "id" if "id" in columns else "''"
        for id, *values in con.execute(f"SELECT {key}, {', '.join(texts)} FROM {table}"):
            named = f"{table[0]}{id}" if table in ("turn", "atom") else str(id) if table == "ref" else table
            for value in values:
                if isinstance(value, str) and value:
                    yield named, value.encode("utf-8", "surrogatepass")
