"""Schema migrations of identifiers, the same on every engine.

Identifiers that earlier versions stored as plain hashes of text become keyed hashes: from a plain hash, a text that is
masked or erased could be guessed. And the texts by which equal statements are found become short keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from mcp_memory.core.keyed_hash import keyed_hash
from mcp_memory.store.sql import digests, renaming
from mcp_memory.store.sql.transaction import HomeTransaction, from_ms

_KEYED_FILES = (("imported", "imported files", ("sha256",), 64), ("followed", "followed logs", ("head", "tail"), 24))
"""Tables with hashes of files: the purpose of their secret, the columns, and the number of hex digits."""


_STATEMENTS = 10_000  # read at a time


def key_identifiers(tx: HomeTransaction) -> set[tuple[int, str]]:
    """Replace plain hashes in client ids of turns and in ids of purged results by keyed hashes.

    Returns the line files that contain the old ids, as (number of the space, path). Running it again changes only rows
    that an older program has written since.
    """
    if tx.get("SELECT key FROM home") is None:
        return set()
    key = digests.key_of(tx)
    stale = set(_key_client_ids(tx, key))
    for space, id in tx.all("SELECT space, id FROM ref WHERE purged_at IS NOT NULL AND sha256 = ''"):
        stale |= renaming.rename_purged_ref(tx, key, space, id)
    return stale


def key_file_hashes(tx: HomeTransaction) -> None:
    """Key the hashes of imported files and followed logs.

    It must run only once, because a keyed hash looks like a plain hash and would be keyed again.

    Edits of compressed message lists are deleted, because they are identified by chains of hashes that cannot be keyed
    afterwards. A conversation in progress is compressed again.
    """
    for table, purpose, columns, digits in _KEYED_FILES:
        secret = digests.secret(tx, purpose)
        for space, path, *values in tx.all(f"SELECT space, path, {', '.join(columns)} FROM {table}"):
            hashes = [keyed_hash(secret, value, digits=digits) if value else value for value in values]
            changes = ", ".join(f"{column} = ?" for column in columns)
            which = " AND ".join(f"{column} = ?" for column in columns)
            tx.run(
                f"UPDATE {table} SET {changes} WHERE space = ? AND path = ? AND {which}", *hashes, space, path, *values
            )
    tx.run("DELETE FROM message_edit")


def shorten_statement_keys(tx: HomeTransaction) -> None:
    """Replace the folded texts of statements by their keys. Running it again changes only rows of an older program."""
    after = 0, 0
    while rows := tx.all(
        "SELECT space, id, text FROM atom WHERE purged_at IS NULL AND substr(folded, 1, 1) <> 'H'"
        " AND (space, id) > (?, ?) ORDER BY space, id LIMIT ?",
        *(*after, _STATEMENTS),
    ):
        tx.many(
            "UPDATE atom SET folded = ? WHERE space = ? AND id = ?",
            [(digests.statement_key(text), space, id) for space, id, text in rows],
        )
        after = rows[-1][:2]


def _key_client_ids(tx: HomeTransaction, key: digests.Key) -> Iterator[tuple[int, str]]:
    rows = tx.all("SELECT space, id, client_id, learned_at, purged_at FROM turn WHERE client_id IS NOT NULL")
    for space, id, client_id, learned_at, purged_at in rows:
        stored = digests.keyed_id(key, client_id)
        if purged_at is not None:
            stored = digests.purged_id(key, stored)
        if stored != client_id:
            tx.run("UPDATE turn SET client_id = ? WHERE space = ? AND id = ?", stored, space, id)
            yield space, f"conversations/{from_ms(learned_at).astimezone(UTC):%Y-%m-%d}.jsonl"
