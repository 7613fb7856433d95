"""Access to the pages: one-time keys, and the sessions that keys or tokens open.

A session is its cookie: it names the credential that opened it and the time of its last use, and is signed with a
secret that all servers of a memory share, so any of them accepts it. The credential is checked at each request. With a
token of a server, a session ends after twelve hours without a request by its reader, when the token ends, and when its
reader signs out: the browser deletes the cookie then, and this server accepts no copy of it. (Another server would,
until twelve hours have passed.) The token of a session's forms is computed from its id, so a form cannot be submitted
in another session.

On this machine (`OneTimeKeys`), a key is a time and a random number, signed with 256 bits. It opens the pages once,
within a minute, and only those of a process that started before it was made. The credential is then a sign-in, which
`local_address` keeps: it ends after a month, or when its reader signs out, and no copy of its cookie works any more.

A correct key is always accepted. After twenty wrong keys in a minute, further wrong keys raise TooManyKeys.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Protocol

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.lru import LRU
from mcp_memory.core.rights import Right, includes
from mcp_memory.ui.local_address import AddressFile

KEY_SECONDS = 60.0
IDLE_SECONDS = 12 * 3600
SIGN_IN_SECONDS = 30 * 24 * 3600
WRONG_A_MINUTE = 20
_MAX_ENDED = 10_000
_MAX_COOKIE = 3_500  # bytes; browsers refuse cookies of more than 4,096 with their name and attributes
_NOTED_EVERY = 60.0
_BYTES = 32
_TIME_BYTES, _NONCE_BYTES = 6, 16

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
    """Checks keys: `OneTimeKeys` here, tokens in `server.authentication`.

    `remembered_seconds` is how long a browser keeps a session, None if it ends with the browser.
    """

    remembered_seconds: int | None

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

    def sign_ins(self) -> int:
        """Return the number of sign-ins that `leave` can end, 0 if other means end them."""
        ...

    async def leave(self, proof: str, *, everywhere: bool = False) -> None:
        """End a sign-in, or all, if this can end them."""
        ...


def sign_key(secret: bytes, *, now: float) -> str:
    """Return a key for the pages that are served with this secret. It belongs into the fragment of an address."""
    body = int(now * 1000).to_bytes(_TIME_BYTES) + secrets.token_bytes(_NONCE_BYTES)
    return urlsafe_b64encode(body + _key_signature(secret, body)).decode()


def _key_signature(secret: bytes, body: bytes) -> bytes:
    return hmac.digest(secret, b"key " + body, "sha256")


class OneTimeKeys:
    """Keys that open the pages for `reader`, each once and for a minute, and the sign-ins of browsers that used one."""

    remembered_seconds: int | None = SIGN_IN_SECONDS

    def __init__(self, reader: Reader, file: AddressFile | None = None, *, clock: Clock = time.time) -> None:
        self._reader, self._clock = reader, clock
        self._file = file or AddressFile(None)
        self._started_ms = int(clock() * 1000)
        self._used = dict[bytes, float]()
        self._wrong = deque[float]()

    def new(self) -> str:
        """Return a new key."""
        return sign_key(self._file.address.secret, now=self._clock())

    async def authenticate(self, key: str, address: str) -> Reader | None:
        now = self._clock()
        if self._use(key, now):
            sign_in = replace(self._reader, proof=secrets.token_urlsafe(_NONCE_BYTES))
            kept = {id: until for id, until in self._file.address.sign_ins.items() if now < until}
            await self._keep({**kept, sign_in.proof: now + SIGN_IN_SECONDS})
            return sign_in
        while self._wrong and self._wrong[0] <= now - 60:
            self._wrong.popleft()
        if len(self._wrong) >= WRONG_A_MINUTE:
            raise TooManyKeys(max(1, ceil(self._wrong[0] + 60 - now)))
        self._wrong.append(now)
        return None

    def _use(self, key: str, now: float) -> bool:
        """Return whether a key opens the pages now, which is true once."""
        try:
            raw = urlsafe_b64decode(key.encode("ascii"))
        except ValueError:
            return False
        body, signature = raw[: _TIME_BYTES + _NONCE_BYTES], raw[_TIME_BYTES + _NONCE_BYTES :]
        if not hmac.compare_digest(signature, _key_signature(self._file.address.secret, body)):
            return False
        made_ms = int.from_bytes(body[:_TIME_BYTES])
        self._used = {used: until for used, until in self._used.items() if now < until}
        # An earlier process may have accepted a key that was made before this one started.
        if made_ms < self._started_ms or now >= made_ms / 1000 + KEY_SECONDS or body in self._used:
            return False
        self._used[body] = made_ms / 1000 + KEY_SECONDS
        return True

    async def resume(self, proof: str) -> Reader | None:
        is_signed_in = self._clock() < self._file.address.sign_ins.get(proof, 0)
        return replace(self._reader, proof=proof) if is_signed_in else None

    async def secret(self) -> bytes:
        return self._file.address.secret

    def sign_ins(self) -> int:
        now = self._clock()
        return sum(now < until for until in self._file.address.sign_ins.values())

    async def leave(self, proof: str, *, everywhere: bool = False) -> None:
        left = {} if everywhere else {id: end for id, end in self._file.address.sign_ins.items() if id != proof}
        await self._keep(left)

    async def _keep(self, sign_ins: Mapping[str, float]) -> None:
        self._file.change(sign_ins=sign_ins)
        await anyio.to_thread.run_sync(self._file.save)


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

    def __init__(self, secret: bytes, *, idle_seconds: int = IDLE_SECONDS) -> None:
        self._secret, self._idle_seconds = secret, idle_seconds
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
        return session.id not in self._ended and abs(now - session.used_at) < self._idle_seconds

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
