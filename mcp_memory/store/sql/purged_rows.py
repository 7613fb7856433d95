"""Recognises purged rows in old copies of a space (line files and exports) by keyed digests of their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mcp_memory.store.sql import digests
from mcp_memory.store.sql.transaction import HomeTransaction, to_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedRows:
    """Ids and digests of the purged rows of a home."""

    key: digests.Key
    digests: Mapping[bytes, int]
    """Digests of words and results, with the time when each was forgotten, in ms since 1970."""
    turns: frozenset[str]
    """Ids of purged turns."""
    last: int
    """The time of the last purge, in ms since 1970; 0 if there was none."""

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether these fields are those of a purged row.

        The fields are from a line of a line file or an export, or from the front matter of a result. A row that was
        learned after its words were forgotten is a different row. A short turn must also have the id of a purged turn,
        because many turns have the same few words.
        """
        row_digests = list[bytes]()
        text, sha256 = row.get("content", row.get("text")), row.get("sha256")
        if isinstance(text, str):
            is_turn = row.get("role", "note") != "note"
            if not is_turn or digests.is_distinct(text) or row.get("turn", row.get("id")) in self.turns:
                row_digests += digests.of_words(self.key, text)
        elif isinstance(sha256, str):
            row_digests.append(digests.of_result(self.key, sha256))
        return any(_learned_at(row) <= self.digests[digest] for digest in row_digests if digest in self.digests)


def purged_rows(tx: HomeTransaction) -> PurgedRows:
    rows = tx.all(
        "SELECT f.digest, max(x.at) FROM forgotten f JOIN tombstone x ON x.space = f.space AND x.id = f.tombstone"
        " WHERE x.purged_at IS NOT NULL GROUP BY f.digest"
    )
    return PurgedRows(
        key=digests.key_of(tx),
        digests={bytes(digest): at for digest, at in rows},
        turns=frozenset(f"t{id}" for id in tx.column("SELECT id FROM turn WHERE purged_at IS NOT NULL")),
        last=tx.get("SELECT coalesce(max(purged_at), 0) FROM tombstone"),
    )


def _learned_at(row: Mapping[str, Any]) -> int:
    try:
        return to_ms(datetime.fromisoformat(row["learned_at"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0
