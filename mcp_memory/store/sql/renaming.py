"""Replaces the ids of purged results and the names of sessions.

The id of a result is a hash of its content, and the name of a session may contain erased words. Both are replaced by
keyed hashes of themselves, so that only this home can recognise the old name.
"""

from __future__ import annotations

import json
import re
from datetime import UTC

from mcp_memory.store import files
from mcp_memory.store.sql import digests
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, from_ms, neutral_session

_GENERATED = re.compile(
    r"(?:\d{4}-\d{2}-\d{2}|claude-code|codex|gemini|chatgpt|claude-ai|session)-[0-9a-f]{4,10}|\W*\w{0,2}\W*"
)
TABLES_WITH_SESSION = ("ref", "saving", "message_edit", "recall", "followed")
"""Tables with the name of a session in their column `session`."""


def is_generated(session: str) -> bool:
    """Return whether the name of a session was generated, or is too short for a word."""
    return _GENERATED.fullmatch(session) is not None


def rename_purged_ref(tx: HomeTransaction, key: digests.Key, space: int, id: str) -> set[tuple[int, str]]:
    """Replace the id of a purged result by a keyed hash, everywhere.

    Returns the line files that contain the old id, as (number of the space, path).
    """
    new = digests.purged_ref(key, id)
    call = tx.get("SELECT tool_call_id FROM ref WHERE space = ? AND id = ?", space, id)
    tx.run(
        "UPDATE ref SET id = ?, tool = 'tool', content_type = 'text/plain', tool_call_id = ?"
        " WHERE space = ? AND id = ?",
        *(new, None if call is None else digests.purged_id(key, call), space, id),
    )
    for number, call in tx.all("SELECT id, tool_call_id FROM record WHERE space = ? AND ref = ?", space, id):
        kept = None if call is None else digests.purged_id(key, call)
        tx.run("UPDATE record SET tool_call_id = ? WHERE space = ? AND id = ?", kept, space, number)
    sessions = tx.column(
        "SELECT DISTINCT s.name FROM record r JOIN session s ON s.space = r.space AND s.id = r.session"
        " WHERE r.space = ? AND r.ref = ?",
        *(space, id),
    )
    tx.run("UPDATE record SET ref = ? WHERE space = ? AND ref = ?", new, space, id)
    tx.run("UPDATE origin SET id = ? WHERE space = ? AND id = ?", new, space, id)
    tx.run(
        "UPDATE origin SET origin = replace(origin, ?, ?) WHERE space = ? AND id = ?", f":{id}", f":{new}", space, new
    )
    for table, column in (("tombstone", "took"), ("recall", "ids"), ("canvas_version", "detail")):
        sql = f"UPDATE {table} SET {column} = replace({column}, ?, ?) WHERE space = ? AND {column} LIKE ?"
        tx.run(sql, json.dumps(id), json.dumps(new), space, f"%{json.dumps(id)}%")
    tx.run("DELETE FROM change WHERE space = ? AND topic = ?", space, f"ref:{id}")
    return {
        (space, "tombstones.jsonl"),
        (space, "canvases.jsonl"),
        *((space, f"offload-{name}.jsonl") for name in sessions),
    }


def rename_in_logs(tx: Transaction, name: str) -> None:
    """Give a session its neutral name in the tables that store session names as text."""
    new = neutral_session(digests.key_of(tx), name)
    for table in TABLES_WITH_SESSION:
        tx.run(f"UPDATE {table} SET session = ? WHERE space = :space AND session = ?", new, name)


def rename_session(tx: Transaction, number: int, name: str) -> set[str]:
    """Replace the name `name` of a session by a neutral name, also in the files of its results.

    The raw bytes of the results do not change. Returns the paths of the line files that must be rewritten.
    """
    new = neutral_session(digests.key_of(tx), name)
    tx.run("UPDATE session SET name = ? WHERE space = :space AND id = ?", new, number)
    rename_in_logs(tx, name)
    tx.run("DELETE FROM change WHERE space = :space AND topic = ?", f"session:{name}")
    for (path,) in tx.all("SELECT path FROM ref WHERE space = :space AND session = ? AND path <> ''", new):
        if (content := tx.files.read(path)) is not None:
            tx.files.write(path, files.with_session(content, new))
    days = tx.column("SELECT DISTINCT learned_at / 86400000 FROM turn WHERE space = :space AND session = ?", number)
    paths = {f"conversations/{from_ms(day * 86_400_000).astimezone(UTC):%Y-%m-%d}.jsonl" for day in days}
    if tx.one("SELECT 1 FROM record WHERE space = :space AND session = ? LIMIT 1", number):
        paths |= {f"offload-{name}.jsonl", f"offload-{new}.jsonl"}
    return paths
