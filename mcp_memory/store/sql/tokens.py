"""Tokens of HTTP clients. They belong to the home, not to a space, and are never deleted, only revoked."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.store.sql.transaction import HomeTransaction, from_ms, optional_ms, to_ms
from mcp_memory.store.values import Token

__all__ = ["add", "by_id", "listed", "note_used", "revoke"]

_COLUMNS = "id, name, hash, spaces, rights, at, until, used_at, revoked_at"
_USED_EVERY = timedelta(hours=1)


def add(tx: HomeTransaction, token: Token) -> None:
    if tx.one("SELECT 1 FROM token WHERE name = ? AND revoked_at IS NULL", token.name):
        raise InvalidInput(f"There is a token named {token.name!r}. Take another name, or revoke that one first.")
    tx.insert(
        "token",
        id=token.id,
        name=token.name,
        hash=token.hash,
        spaces=json.dumps(token.spaces, ensure_ascii=False),
        rights=token.right,
        at=to_ms(token.at),
        until=optional_ms(token.until),
        used_at=optional_ms(token.used_at),
        revoked_at=optional_ms(token.revoked_at),
    )


def by_id(tx: HomeTransaction, id: str) -> Token | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM token WHERE id = ?", id)
    return None if row is None else _token(*row)


def listed(tx: HomeTransaction) -> list[Token]:
    return [_token(*row) for row in tx.all(f"SELECT {_COLUMNS} FROM token ORDER BY at, id")]


def revoke(tx: HomeTransaction, id: str, *, now: datetime) -> None:
    tx.run("UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", to_ms(now), id)


def note_used(tx: HomeTransaction, id: str, *, now: datetime) -> None:
    used_before = to_ms(now - _USED_EVERY)
    tx.run("UPDATE token SET used_at = ? WHERE id = ? AND coalesce(used_at, -1) < ?", to_ms(now), id, used_before)


def _token(id: str, name: str, digest: bytes, spaces: str, right: Any, at: int, *moments: int | None) -> Token:
    until, used_at, revoked_at = (None if one is None else from_ms(one) for one in moments)
    return Token(
        id=id,
        name=name,
        hash=digest,
        spaces=tuple(json.loads(spaces)),
        right=right,
        at=from_ms(at),
        until=until,
        used_at=used_at,
        revoked_at=revoked_at,
    )
