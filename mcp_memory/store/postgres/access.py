"""Enters spaces with proofs: the client's side of `row_security`."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors

from mcp_memory.store.postgres.connection import PostgresConnection

Connection = psycopg.Connection[Any]
Purpose = Literal["read", "write", "create"]

WRONG_PROOF, TOO_OLD_TO_WRITE, TOO_OLD_TO_READ, NOT_ENTERED = (f"MM00{number}" for number in range(1, 5))
"""The codes of errors of the functions `enter_space` and `current_space`."""

_NEWEST = 2**31 - 1
_BLOCK = 64  # bytes of a block of SHA-256
_INNER, _OUTER = 0x36, 0x5C


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a program needs to enter spaces: its key, or None, and the number of the newest schema that it knows."""

    key: bytes | None = field(default=None, repr=False)
    version: int

    def proof(self, space: str | None) -> bytes | None:
        """Return the proof for a space, or for all spaces."""
        scope = "every" if space is None else f"space {space}"
        return None if self.key is None else hmac.digest(self.key, scope.encode("utf-8", "surrogatepass"), "sha256")


_of_connections = WeakKeyDictionary[Connection, Access]()


def give_access(con: Connection, access: Access) -> None:
    """Set with what a connection enters spaces."""
    _of_connections[con] = access


def enter(con: Connection, space: str | None, purpose: Purpose) -> Iterator[tuple[int]]:
    """Restrict the rest of a transaction to the rows of a space, or of all spaces for None.

    Yields one row with the number of the space, 0 if it does not exist, -1 for all spaces; the statement is sent at
    once. `write` locks the row of the space; `create` creates it if needed.

    An error of the database with a code of this module means that the key is wrong or this program is too old.
    """
    access = _of_connections[con]
    return PostgresConnection(con).execute(
        "SELECT enter_space(?, ?, ?, ?)", (space, access.proof(space), access.version, purpose)
    )


def enter_as_owner(con: Connection, space: str | None = None) -> None:
    """Restrict the rest of a transaction to the rows of a space, or of all, with a key that only the owner can read."""
    give_access(con, Access(key=read_key(con), version=_NEWEST))
    next(enter(con, space, "read"))


def key_of(secret: str) -> bytes:
    """Return the key of the setting `store_key`, with at most the length of a block."""
    key = secret.encode()
    return key if len(key) <= _BLOCK else hashlib.sha256(key).digest()


def pads(secret: str) -> tuple[bytes, bytes]:
    """Return the inner and the outer block of HMAC-SHA256 for the setting `store_key`."""
    block = key_of(secret).ljust(_BLOCK, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in block) for pad in (_INNER, _OUTER))
    return inner, outer


def read_key(con: Connection) -> bytes | None:
    """Return a key from the database, which only the owner of the tables can read; None for others."""
    sql = "SELECT inner_pad FROM server_key ORDER BY role <> session_user, at DESC LIMIT 1"
    try:
        row = con.execute(sql).fetchone()
    except errors.InsufficientPrivilege:
        return None
    return bytes(byte ^ _INNER for byte in row[0]) if row else None
