"""Authentication: who sends a request over HTTP, by its bearer token.

A bearer token is the setting's, the machine's (`http-token` in the home), one of the store, or an OAuth access token.
As long as none of them exists, and only this machine can reach the server (`serve --no-token`), every client is the
owner. Tokens are never deleted, so a server that once required them always does.

`Credentials` checks tokens for the middleware (`http_middleware`) and for the key page of the pages at `/ui`
(`TokenDoor`). Both count wrong tokens by address: after twenty in a minute the answer is to wait.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from mcp_memory.core.errors import McpMemoryError, Refused, StoreUnavailable
from mcp_memory.core.lru import LRU
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.rights import Right
from mcp_memory.server import oauth
from mcp_memory.ui.sessions import Reader, TooManyKeys
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.service.memory import Memory


logger = logging.getLogger(__name__)

_LOOKED_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """An authenticated client. `spaces` are those it may use, the first by default."""

    who: str
    spaces: tuple[str, ...]
    right: Right
    is_owner: bool = False
    token: str | None = None
    """The id of its token in the store."""
    until: float | None = None
    """When its OAuth token ends, in seconds since 1970."""


class InsufficientScope(Exception):
    """An OAuth token is genuine, and has no scope or no space of ours."""


class Credentials:
    """The tokens of one server. Raises McpMemoryError where the store is needed and cannot be opened."""

    def __init__(self, settings: Settings, memory: Callable[[], Awaitable[Memory]], *, reachable: bool) -> None:
        """`reachable`: other machines, or others through them, can reach the server. Raises InvalidInput."""
        self._setting = settings.token
        self._claim = settings.oauth_space_claim
        self._owner = ApiClient(who="", spaces=(settings.space,), right="admin", is_owner=True)
        self.memory = memory
        self.issuer = oauth.issuer_of(settings)
        self._needed = reachable or bool(self._setting) or self.issuer is not None
        self._looked = float("-inf")

    async def owner(self) -> ApiClient | None:
        """Return the owner while no token is required."""
        if not self._needed and anyio.current_time() - self._looked > _LOOKED_S:
            self._needed = bool(await (await self.memory()).tokens())
            self._looked = anyio.current_time()
        return None if self._needed else self._owner

    async def of(self, shown: str) -> ApiClient | None:
        """Return the client of a token; None for a wrong token.

        Raises InsufficientScope, and oauth.Unreachable where the token cannot be checked.
        """
        if self._setting and hmac.compare_digest(shown.encode("utf-8", "replace"), self._setting.encode()):
            return replace(self._owner, who="owner")
        token = await (await self.memory()).token_shown(shown) if shown.startswith("mcm_") else None
        if token is not None:
            return ApiClient(who=f"token {token.id}", spaces=token.spaces, right=token.right, token=token.id)
        if self.issuer is None or shown.count(".") != 2:
            return None
        claims = await self.issuer.verify_token(shown)
        if claims is None:
            return None
        right, spaces = oauth.right_of(claims), oauth.spaces_of(claims, self._claim)
        if right is None or not spaces:
            raise InsufficientScope
        who = f"oauth {sha256(oauth.user_of(claims).encode()).hexdigest()[:20]}"
        return ApiClient(who=who, spaces=spaces, right=right, until=int(claims["exp"]))

    async def is_good(self, client: ApiClient) -> bool:
        """Return whether a client that was let in is still to be answered."""
        if client.until is not None:
            return time.time() < client.until
        if client.token is not None:
            return await (await self.memory()).is_good(client.token)
        return bool(self._setting) or await self.owner() is not None


# --- wrong tokens and too many requests ---

_WRONG_A_MINUTE = 20
_MOST_KEYS = 10_000
_SHARES = 20


@dataclass
class _Share:
    """The requests that this server may still admit of one key, or until when the store has none for it."""

    left: int = 0
    empty_until: float = 0.0
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class RateLimit:
    """Requests a minute of each key, on all servers of a memory together.

    A server takes them out of the store in shares of a twentieth of a minute's, and answers from its share.
    """

    def __init__(self, name: str, a_minute: int, memory: Callable[[], Awaitable[Memory]]) -> None:
        """`name` distinguishes the keys of this limit from those of others."""
        self._name, self._a_minute, self._memory = name, a_minute, memory
        self._share = max(1, a_minute // _SHARES)
        self._keys = LRU[str, _Share](_MOST_KEYS)

    async def take(self, key: str) -> None:
        """Take one. Raises Rejected when there is none, with the seconds until there will be."""
        share = self._keys.get_or_put(key, _Share)
        async with share.lock:  # requests at the same time wait for one answer of the store
            if not share.left and share.empty_until <= anyio.current_time():
                share.left = await self._more(key)
                share.empty_until = 0.0 if share.left else anyio.current_time() + 60 / self._a_minute
            if share.left:
                share.left -= 1
                return
            seconds = max(1, ceil(share.empty_until - anyio.current_time()))
        raise Rejected(429, f"Too many requests. Try again in {seconds} s.", {"Retry-After": str(seconds)})

    async def _more(self, key: str) -> int:
        try:
            memory = await self._memory()
            return await memory.take_requests(f"{self._name} {key}", wanted=self._share, a_minute=self._a_minute)
        except McpMemoryError as error:
            raise unavailable(error) from None


def wrong_tokens(memory: Callable[[], Awaitable[Memory]]) -> RateLimit:
    """Return the limit on wrong tokens of an address, which all ways in share."""
    return RateLimit("wrong token", _WRONG_A_MINUTE, memory)


@dataclass
class Rejected(Exception):
    """A request that is not admitted, and the answer to it."""

    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict[str, str])


def network_of(said: str) -> str:
    """Return the address under which the requests of a host are counted."""
    try:
        address = ip_address(said)
    except ValueError:
        return said
    if address.version == 4 or address.is_loopback:
        return said
    return str(IPv6Address(address.packed[:8] + bytes(8)))


def unavailable(error: McpMemoryError) -> Rejected:
    logger.warning("nobody can be let in: %s", error)
    return Rejected(503, "This memory cannot be opened now. Its log says why.")


# --- the token of this machine ---

_FILE = "http-token"
_TOKEN = re.compile(r"mcm_local_[\w-]{43}")
_MOST = 1_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def token_file(home: Path) -> Path:
    """Return the path of the token, which may not exist yet."""
    return home / _FILE


def read_token(home: Path) -> str | None:
    """Return the token of a home; None if it has none. Raises Refused if the file cannot be used."""
    path = token_file(home)
    try:
        token = read_regular(path, _MOST).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(
            f"{path} cannot be read ({error.strerror}). Remove it: the next start makes a new token."
        ) from None
    if not _TOKEN.fullmatch(token):
        raise Refused(f"{path} is damaged: it holds no token. Remove it: the next start makes a new one.")
    if os.name != "nt" and path.stat().st_mode & _OTHERS:
        logger.warning(
            "%s could be read by other users of this machine. Remove it: the next start makes a new one.", path
        )
        path.chmod(0o600)
    return token


def make_token(home: Path) -> str:
    """Make the token of a home and return it, or the one that another process has just made.

    Raises Refused if it cannot be stored.
    """
    path, token = token_file(home), f"mcm_local_{secrets.token_urlsafe(32)}"
    beside = path.with_name(f".{_FILE}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        make_folder(home)
        try:
            with open_private(beside, "xb") as file:
                file.write(token.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            path.hardlink_to(beside)  # fails if the file exists; a rename would replace the token of another process
        finally:
            beside.unlink(missing_ok=True)
    except FileExistsError:
        return read_token(home) or token
    except OSError as error:
        raise Refused(
            f"The token of this server cannot be stored in {path} ({error.strerror}). Set MCP_MEMORY_TOKEN to a long "
            "random secret, or start it with --no-token if every user of this machine may use the memory."
        ) from None
    return token


# --- the pages ---


class TokenDoor:
    """Takes the tokens of one server, as its other requests show them (`ui.sessions.Door`)."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._wrong = wrong_tokens(credentials.memory)

    async def open(self, key: str, address: str) -> Reader | None:
        try:
            client = await self._credentials.of(key)
        except InsufficientScope:
            return None
        except oauth.Unreachable as error:
            logger.warning("a token cannot be checked: %s", error)
            raise StoreUnavailable(t("entry.unreachable")) from None
        if client is None:
            await self._count(network_of(address))
            return None
        return Reader(
            space=client.spaces[0],
            spaces=client.spaces,
            right=client.right,
            is_owner=client.is_owner,
            who=client.who,
            is_good=partial(self._credentials.is_good, client),
        )

    async def _count(self, address: str) -> None:
        try:
            await self._wrong.take(address)
        except Rejected as rejected:
            raise TooManyKeys(int(rejected.headers.get("Retry-After", "60"))) from None
