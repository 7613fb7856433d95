"""The home: its spaces with their row counts, the feed of changes, tokens, the usage ledger and the pause.

Tokens of HTTP clients belong to the home, not to a space, and are never deleted, only revoked. The usage ledger has one
row for each call to a language model, made by any process. The pause stops all calls to models.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import get_args

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Kind, Spend, Spent
from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.entity_rows import KNOWN
from mcp_memory.store.sql.quarantine_rows import HELD, WAITING
from mcp_memory.store.sql.transaction import NOW, HomeTransaction, Transaction, from_ms, marks, to_ms
from mcp_memory.store.values import Change, Counts, Grown, Token

_REPLACED = "CASE WHEN tokens_kept < tokens_raw"
"""The start of an SQL expression for results that a shorter text replaced in a model's context."""


DELETED = "|"
"""The start of the name of a deleted space, which no other name has. Its row stays, and keeps its number."""


def spaces(tx: HomeTransaction) -> list[str]:
    """Return the names of all spaces, sorted, without deleted spaces."""
    return tx.column(f"SELECT name FROM space WHERE name NOT LIKE '{DELETED}%' ORDER BY name")


def counts(tx: Transaction) -> Counts:
    """Return the row counts of a space."""

    def count(what: str) -> int:
        return tx.get(f"SELECT {what}") or 0

    of = "WHERE space = :space"
    forgotten, live = f"{of} AND tombstone IS NOT NULL", f"{of} AND tombstone IS NULL"
    refs, raw_bytes, masked = tx.all(f"SELECT count(*), sum(bytes), count(masked) FROM ref {live}")[0]
    records, tokens_raw, tokens_kept = tx.all(
        f"SELECT count(*), sum({_REPLACED} THEN tokens_raw END), sum({_REPLACED} THEN tokens_kept END) FROM record {of}"
    )[0]
    return Counts(
        sessions=count(
            "count(*) FROM session s WHERE s.space = :space AND EXISTS (SELECT 1 FROM turn t WHERE t.space = s.space"
            f" AND t.session = s.id AND t.role <> 'note' AND t.id NOT IN (SELECT id FROM turn {forgotten}))"
        ),
        # All rows minus forgotten rows and notes: three covering indexes. With 100,000 turns this takes a sixth of the
        # time of scanning an index with the role of each turn.
        turns=count(
            f"(SELECT count(*) FROM turn {of}) - (SELECT count(*) FROM turn {forgotten})"
            f" - (SELECT count(*) FROM turn {live} AND role = 'note')"
        ),
        atoms=count(f"(SELECT count(*) FROM atom {of}) - (SELECT count(*) FROM atom {forgotten})"),
        current=count(f"count(*) FROM atom {live} AND valid_to IS NULL AND kind IN {get_args(Kind)}"),
        facts=count(f"count(*) FROM fact {live}"),
        entities=count(f"count(*) FROM entity_name c WHERE {KNOWN}"),
        scenes=count(
            "count(*) FROM scene s WHERE space = :space AND action <> 'delete'"
            " AND version = (SELECT max(version) FROM scene WHERE space = s.space AND slug = s.slug)"
        ),
        forgotten=count("count(*) FROM tombstone WHERE space = :space AND undone_at IS NULL"),
        refs=refs,
        records=records,
        canvases=count(f"count(*) FROM canvas {of}"),
        raw_bytes=raw_bytes or 0,
        tokens_raw=tokens_raw or 0,
        tokens_kept=tokens_kept or 0,
        masked=masked,
        quarantined=count(f"count(*) {HELD} AND {WAITING}"),
    )


def count_unread(tx: Transaction) -> tuple[int, int]:
    """Return how many turns of users and assistants no model has read yet, and in how many sessions."""
    # Join order: sessions first, as in `job_rows.backlog`: a session that was fully read costs one index lookup.
    turns, sessions = tx.all(
        "SELECT count(*), count(DISTINCT t.session) FROM session s"
        " LEFT JOIN progress p ON p.space = s.space AND p.session = s.id"
        " CROSS JOIN turn t ON t.space = s.space AND t.session = s.id"
        " AND t.position >= coalesce(p.position, 0) AND t.role IN ('user', 'assistant')"
        " AND t.id NOT IN (SELECT id FROM turn WHERE space = :space AND tombstone IS NOT NULL)"
        " WHERE s.space = :space"
    )[0]
    return turns, sessions


def grown(tx: Transaction, *, since: datetime) -> Grown:
    """Return how many rows were added to a space at or after a moment."""
    at = to_ms(since)
    # Rows are numbered in order of arrival, so all rows since then have numbers from the first of them on.
    first = tx.get("SELECT min(id) FROM turn WHERE space = :space AND learned_at >= ?", at)
    return Grown(
        turns=tx.get(
            "SELECT (SELECT count(*) FROM turn WHERE space = :space AND id >= ?)"
            " - (SELECT count(*) FROM turn WHERE space = :space AND id >= ? AND role = 'note')",
            *(first, first),
        ),
        atoms=tx.get("SELECT count(*) FROM atom WHERE space = :space AND learned_at >= ?", at),
        results=tx.get(
            "SELECT count(*) FROM record WHERE space = :space AND unixepoch(timestamp, 'subsec') * 1000 >= ?", at
        ),
    )


def last_change(tx: Transaction) -> int:
    """Return a number that grows with every commit of any process that changes the space; 0 before the first."""
    return tx.last_change()


def last_changes(tx: HomeTransaction, spaces: Sequence[str]) -> dict[str, int]:
    """Map each of these spaces to its `last_change`, 0 for an unknown space; cheap enough to poll."""
    sql = (
        "SELECT s.name, n.last FROM space s JOIN number n ON n.space = s.id AND n.kind = 'change' WHERE s.name IN ({})"
    )
    return dict.fromkeys(spaces, 0) | dict(tx.among(sql, spaces))


def changes(tx: Transaction, after: int) -> list[Change]:
    """Return what changed since `last_change` returned `after`, each topic once, in order.

    If `after` is higher than `last_change` is now, the store was restored, and all topics are returned.
    """
    first = after + 1 if after <= last_change(tx) else 0  # the store was restored: anything may have changed
    rows = tx.all("SELECT topic FROM change WHERE space = :space AND seq >= ? ORDER BY seq, topic", first)
    return [Change(space=tx.name, topic=topic) for (topic,) in rows]


# --- tokens of HTTP clients -------------------------------------------------------------------------


USE_NOTED_EVERY = timedelta(hours=1)


def add_token(tx: HomeTransaction, token: Token) -> None:
    """Store a token. Raises InvalidInput if another token with its name is not revoked."""
    values = row_codec.values_of(token)
    stored = tx.get(
        f"INSERT INTO token ({', '.join(values)}) VALUES ({marks(list(values))})"
        " ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING 1",
        *values.values(),
    )
    if stored is None:
        raise InvalidInput(f"There is a token named {token.name!r}. Take another name, or revoke that one first.")


def token(tx: HomeTransaction, id: str) -> Token | None:
    """Return a token, even if it is revoked or expired; None if it is unknown. Cheap enough for every request."""
    return next(row_codec.rows(tx, Token, "r.id = ?", id), None)


def tokens(tx: HomeTransaction) -> list[Token]:
    """Return all tokens, oldest first."""
    return list(row_codec.rows(tx, Token, "1 = 1 ORDER BY r.at, r.id"))


def revoke_token(tx: HomeTransaction, id: str, *, now: datetime) -> None:
    """Revoke a token, for every process. Does nothing if the token is unknown or revoked."""
    tx.run("UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", to_ms(now), id)


def note_token_used(tx: HomeTransaction, id: str, *, now: datetime) -> None:
    """Record that a token was used, unless that was recorded within the last hour."""
    used_before = to_ms(now - USE_NOTED_EVERY)
    tx.run("UPDATE token SET used_at = ? WHERE id = ? AND coalesce(used_at, -1) < ?", to_ms(now), id, used_before)


_REFILLED = f"allowed + CASE WHEN at < {NOW} THEN ({NOW} - at) * ? / 60000.0 ELSE 0 END"
_KEPT_MS = 3_600_000


def take_requests(tx: HomeTransaction, key: str, *, count: int, a_minute: int) -> int:
    """Take up to `count` requests from the rate limit of a client; return how many were granted.

    `key` names the client. The limit allows bursts of up to `a_minute` requests and refills at that rate per minute.
    All processes share it. The limit is a token bucket.
    """
    is_new = tx.get(
        f"INSERT INTO request_rate (key, allowed, at) VALUES (?, ?, {NOW}) ON CONFLICT DO NOTHING RETURNING 1",
        *(key, a_minute),
    )
    if is_new:
        tx.run(f"DELETE FROM request_rate WHERE at < {NOW} - ?", _KEPT_MS)  # their allowance is full again
    allowed: float = tx.get(
        f"UPDATE request_rate SET at = {NOW}, allowed = CASE WHEN {_REFILLED} > ? THEN ? ELSE {_REFILLED} END"
        " WHERE key = ? RETURNING allowed",
        *(a_minute, a_minute, a_minute, a_minute, key),
    )
    taken = min(count, int(allowed))
    if taken:
        tx.run("UPDATE request_rate SET allowed = allowed - ? WHERE key = ?", taken, key)
    return taken


# --- the usage ledger -------------------------------------------------------------------------------


def add_spend(tx: HomeTransaction, spend: Spend) -> None:
    """Record a call to a language model in the ledger, which all spaces share."""
    tx.insert("spend", **row_codec.values_of(spend))


def spent(tx: HomeTransaction, *, since: datetime, until: datetime | None = None) -> list[Spent]:
    """Return the totals of calls from `since` up to, but not including, `until`, by purpose and model."""
    before = () if until is None else (to_ms(until),)
    rows = tx.all(
        "SELECT purpose, model, count(*), count(error), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens),"
        f" sum(cost) FROM spend WHERE at >= ? {'AND at < ?' if before else ''}"
        " GROUP BY purpose, model ORDER BY purpose, model",
        *(to_ms(since), *before),
    )
    names = ("purpose", "model", "calls", "failed", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
    return [Spent(**dict(zip(names, row, strict=True))) for row in rows]


def spent_between(tx: HomeTransaction, moments: Sequence[datetime]) -> list[list[Spent]]:
    """Return the totals of calls, like `spent`, from each moment to the next. The moments must be in order."""
    return [spent(tx, since=since, until=until) for since, until in pairwise(moments)]


# --- the pause ---------------------------------------------------------------------------------------


def pause(tx: HomeTransaction, reason: str, *, now: datetime) -> None:
    """Stop all calls to language models, of every process of the home, until `resume`."""
    tx.run(
        "INSERT INTO pause (id, reason, at) VALUES (1, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, at = excluded.at",
        *(reason, to_ms(now)),
    )


def resume(tx: HomeTransaction) -> None:
    tx.run("DELETE FROM pause")


def paused(tx: HomeTransaction) -> tuple[str, datetime] | None:
    """Return why and since when models are paused; None while they are not."""
    row = tx.one("SELECT reason, at FROM pause")
    return None if row is None else (row[0], from_ms(row[1]))
