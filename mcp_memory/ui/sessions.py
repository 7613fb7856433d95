"""Access to the pages: one-time keys, and the sessions that keys or tokens open.

A key and a cookie have 256 random bits. Both are kept as hashes, in memory only, and compared in constant time;
sessions end with the process. A session ends after twelve hours without a request by its reader. The token of a
session's forms is computed from its cookie, so a form cannot be submitted in another session.

A correct key is always accepted. After twenty wrong keys in a minute, further wrong keys raise TooManyKeys.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Protocol

from mcp_memory.core.lru import LRU
from mcp_memory.core.rights import Right, includes

KEY_SECONDS = 60.0
IDLE_SECONDS = 12 * 3600.0
WRONG_A_MINUTE = 20
_MAX_SESSIONS = 1_000
_BYTES = 32

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The access that a key gives. `space` is shown first; `spaces` are the visible spaces, None for all."""

    space: str
    spaces: tuple[str, ...] | None = None
    right: Right = "admin"
    is_owner: bool = False
    who: str = ""
    name: str = ""
    """The client's name in the audit log; empty for the user of this machine."""
    is_good: Callable[[], Awaitable[bool]] | None = None
    """Returns whether the session's token is still valid, called at each request; None if it cannot be revoked."""

    def may_see(self, space: str) -> bool:
        return self.spaces is None or space in self.spaces

    def allows(self, right: Right) -> bool:
        return includes(self.right, right)


class TooManyKeys(Exception):
    """Too many wrong keys; `seconds` until the next attempt."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Authenticator(Protocol):
    """Checks keys: `OneTimeKeys` here, tokens in `server.authentication`."""

    async def authenticate(self, key: str, address: str) -> Reader | None:
        """Return the reader that a key admits, None for a wrong key; a one-time key is used up by this.

        `address` is the address of the client. Raises TooManyKeys after too many wrong keys.
        """
        ...


class OneTimeKeys:
    """Keys that open the pages for `reader`, each once and for a minute."""

    def __init__(self, reader: Reader, *, clock: Clock = time.monotonic) -> None:
        self._reader, self._clock = reader, clock
        self._keys: dict[bytes, float] = {}
        self._wrong = deque[float]()

    def new(self) -> str:
        """Create a key, accept it for a minute, and return it. The caller puts it into the fragment of an address."""
        key = secrets.token_urlsafe(_BYTES)
        self._keys[_hash(key)] = self._clock() + KEY_SECONDS
        return key

    async def authenticate(self, key: str, address: str) -> Reader | None:
        now, shown = self._clock(), _hash(key)
        self._keys = {hashed: until for hashed, until in self._keys.items() if now < until}
        # All keys are compared, so that timing reveals nothing.
        matches = [hashed for hashed in self._keys if hmac.compare_digest(shown, hashed)]
        if matches:
            del self._keys[matches[0]]
            return self._reader
        while self._wrong and self._wrong[0] <= now - 60:
            self._wrong.popleft()
        if len(self._wrong) >= WRONG_A_MINUTE:
            raise TooManyKeys(max(1, ceil(self._wrong[0] + 60 - now)))
        self._wrong.append(now)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An open session. `id` is the hash of its cookie."""

    id: bytes
    reader: Reader
    form_token: str
    used_at: float


class Sessions:
    """The open sessions of a server."""

    def __init__(self, *, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._open = LRU[bytes, Session](_MAX_SESSIONS)

    def start(self, reader: Reader) -> str:
        """Open a session and return its cookie. If too many are open, the least recently used session ends."""
        cookie = secrets.token_urlsafe(_BYTES)
        id = _hash(cookie)
        self._open.put(id, Session(id=id, reader=reader, form_token=_form_token(cookie), used_at=self._clock()))
        return cookie

    def of(self, cookie: str | None, *, by_reader: bool = True) -> Session | None:
        """Note the use of the session of a cookie, and return it; None if it has ended.

        Requests that a page makes by script are not `by_reader`: they do not count as use.
        """
        id = _hash(cookie or "")
        session = self._open.get(id)
        if session is None or not hmac.compare_digest(session.id, id):
            return None
        now = self._clock()
        if now - session.used_at >= IDLE_SECONDS:
            self.end(session)
            return None
        if by_reader:
            session = self._open.put(id, replace(session, used_at=now))
        return session

    def is_open(self, session: Session) -> bool:
        """Return whether a session is still open, without counting as use."""
        current = self._open.get(session.id)
        return current is not None and self._clock() - current.used_at < IDLE_SECONDS

    def end(self, session: Session) -> None:
        self._open.pop(session.id)


def is_form_token(session: Session, shown: str) -> bool:
    """Return whether the token `shown` with a form is that of the session. It protects against forged requests."""
    return hmac.compare_digest(session.form_token.encode(), shown.encode("utf-8", "replace"))


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


def _form_token(cookie: str) -> str:
    return hmac.digest(cookie.encode(), b"form", "sha256").hex()
