"""Tokens of HTTP clients. They belong to the home, not to a space, and are never deleted, only revoked."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import apsw

from mcp_memory.core.errors import InvalidInput
from mcp_memory.store.access import Token
from mcp_memory.store.sql.rows import from_ms, to_ms

__all__ = ["add", "by_id", "listed", "note_used", "revoke"]

_COLUMNS = "id, name, hash, spaces, rights, at, until, used_at, revoked_at"
_USED_EVERY = timedelta(hours=1)


def add(con: apsw.Connection, token: Token) -> None:
    """See `Store.add_token`."""
    if con.execute("SELECT 1 FROM token WHERE name = ? AND revoked_at IS NULL", (token.name,)).get:
        raise InvalidInput(f"There is a token named {token.name!r}. Take another name, or revoke that one first.")
    con.execute(
        f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            token.id,
            token.name,
            token.hash,
            json.dumps(token.spaces, ensure_ascii=False),
            token.right,
            *(None if moment is None else to_ms(moment) for moment in (token.at, token.until)),
            *(None if moment is None else to_ms(moment) for moment in (token.used_at, token.revoked_at)),
        ),
    )


def by_id(con: apsw.Connection, id: str) -> Token | None:
    """See `Store.token`."""
    row: Any = con.execute(f"SELECT {_COLUMNS} FROM token WHERE id = ?", (id,)).fetchone()
    return None if row is None else _token(*row)


def listed(con: apsw.Connection) -> list[Token]:
    """See `Store.tokens`."""
    rows: Any = con.execute(f"SELECT {_COLUMNS} FROM token ORDER BY at, id")
    return [_token(*row) for row in rows]


def revoke(con: apsw.Connection, id: str, *, now: datetime) -> None:
    """See `Store.revoke_token`."""
    con.execute("UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (to_ms(now), id))


def note_used(con: apsw.Connection, id: str, *, now: datetime) -> None:
    """See `Store.note_token_used`."""
    con.execute(
        "UPDATE token SET used_at = ? WHERE id = ? AND coalesce(used_at, -1) < ?",
        (to_ms(now), id, to_ms(now - _USED_EVERY)),
    )


def _token(
    id: str,
    name: str,
    digest: bytes,
    spaces: str,
    right: Any,
    at: int,
    until: int | None,
    used_at: int | None,
    revoked_at: int | None,
) -> Token:
    return Token(
        id=id,
        name=name,
        hash=digest,
        spaces=tuple(json.loads(spaces)),
        right=right,
        at=from_ms(at),
        until=None if until is None else from_ms(until),
        used_at=None if used_at is None else from_ms(used_at),
        revoked_at=None if revoked_at is None else from_ms(revoked_at),
    )
