"""Access to the pages: one-time keys, and the sessions that keys or tokens open.

A key has 256 random bits, and is kept as a hash in memory only. A session is its cookie: it names the credential that
opened it and the time of its last use, and is signed with a secret that all servers of a memory share, so any of them
accepts it. The credential is checked at each request. A session ends after twelve hours without a request by its
reader, when its credential ends, and when its reader signs out: the browser deletes the cookie then, and this server
accepts no copy of it. (Another server would, until twelve hours have passed.) The token of a session's forms is
computed from its id, so a form cannot be submitted in another session.

A correct key is always accepted. After twenty wrong keys in a minute, further wrong keys raise TooManyKeys.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Protocol

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.lru import LRU
from mcp_memory.core.rights import Right, includes

KEY_SECONDS = 60.0
IDLE_SECONDS = 12 * 3600.0
WRONG_A_MINUTE = 20
_MAX_ENDED = 10_000
_MAX_COOKIE = 3_500  # bytes; browsers refuse cookies of more than 4,096 with their name and attributes
_NOTED_EVERY = 60.0
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
    proof: str = ""
    """What `Authenticator.resume` needs to check the credential again; the cookie contains it in readable form."""
    name: str = ""
    """The client's name in the audit log; empty for the user of this machine."""

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

    async def resume(self, proof: str) -> Reader | None:
        """Return the reader of a session, by its `Reader.proof`; None if its credential is no longer valid.

        Raises McpMemoryError if that cannot be checked.
        """
        ...

    async def secret(self) -> bytes:
        """Return the secret that signs sessions, 32 bytes. Raises McpMemoryError if the memory cannot be opened."""
        ...


class OneTimeKeys:
    """Keys that open the pages for `reader`, each once and for a minute."""

    def __init__(self, reader: Reader, *, clock: Clock = time.monotonic) -> None:
        self._reader, self._clock = reader, clock
        self._keys: dict[bytes, float] = {}
        self._secret = secrets.token_bytes(_BYTES)  # so that sessions end with the process
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

    async def resume(self, proof: str) -> Reader | None:
        return self._reader if proof == self._reader.proof else None

    async def secret(self) -> bytes:
        return self._secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An open session, as its cookie states it.

    `used_at` is in seconds since 1970; `secure` is whether it was opened over HTTPS, to which browsers keep it then.
    """

    id: str
    proof: str
    used_at: float
    secure: bool


class Sessions:
    """Signs the cookies of sessions, and checks them. Times are in seconds since 1970."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._ended = LRU[str, None](_MAX_ENDED)

    def start(self, reader: Reader, *, now: float, secure: bool = False) -> Session:
        """Return a new session."""
        return Session(id=secrets.token_urlsafe(_BYTES), proof=reader.proof, used_at=now, secure=secure)

    def of(self, cookie: str | None, *, now: float) -> Session | None:
        """Return the session of a cookie; None if it has ended or is not ours."""
        body, _, signature = (cookie or "").rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign("session", body).encode()):
            return None
        session = Session(**json.loads(urlsafe_b64decode(f"{body}==")))
        return session if self.is_open(session, now=now) else None

    def used(self, session: Session, *, now: float) -> Session | None:
        """Return the session with its use noted; None if a use within the last minute is noted already."""
        return replace(session, used_at=now) if now - session.used_at >= _NOTED_EVERY else None

    def is_open(self, session: Session, *, now: float) -> bool:
        """Return whether a session is still open, without counting as use."""
        return session.id not in self._ended and abs(now - session.used_at) < IDLE_SECONDS

    def end(self, session: Session) -> None:
        self._ended.put(session.id, None)

    def form_token(self, session: Session) -> str:
        """Return the token of the forms of a session. It protects against forged requests."""
        return self._sign("form", session.id)

    def is_form_token(self, session: Session, shown: str) -> bool:
        """Return whether the token `shown` with a form is that of the session."""
        return hmac.compare_digest(self.form_token(session).encode(), shown.encode("utf-8", "replace"))

    def cookie(self, session: Session) -> str:
        """Return the cookie of a session. Raises InvalidInput if it would be larger than browsers accept."""
        body = urlsafe_b64encode(json.dumps(asdict(session), separators=(",", ":")).encode()).decode().rstrip("=")
        if len(body) > _MAX_COOKIE:
            raise InvalidInput("This token opens more spaces than the pages can show. Paste one that opens fewer.")
        return f"{body}.{self._sign('session', body)}"

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.digest(self._secret, f"{purpose} {text}".encode("utf-8", "replace"), "sha256").hex()


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
