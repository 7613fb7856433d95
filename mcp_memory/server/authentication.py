"""Authentication: checks the bearer token of a request over HTTP.

Valid tokens are the setting `token`, the machine's token (`http-token` in the home), the tokens in the store, and
OAuth access tokens. While none of them exists, and only this machine can reach the server (`serve --no-token`), every
client is the owner. Tokens are never deleted, so a server that once required them always does.

`Credentials` checks tokens for requests (`http_middleware`) and for the form that opens the pages at `/ui`
(`TokenAuthenticator`). Both count wrong tokens by address, at most twenty a minute.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from mcp_memory.core.errors import McpMemoryError, Refused, StoreUnavailable
from mcp_memory.core.lru import LRU
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.rights import Right
from mcp_memory.server import oauth
from mcp_memory.ui.sessions import Reader, TooManyKeys

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.service.memory import Memory
    from mcp_memory.store.values import Token


logger = logging.getLogger(__name__)

_RECHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """An authenticated client. The first of its `spaces` is the default. `name` is its name in the audit log."""

    who: str
    spaces: tuple[str, ...]
    right: Right
    name: str = ""
    is_owner: bool = False
    token: str | None = None
    """The id of its token in the store."""
    until: float | None = None
    """When its OAuth token ends, in seconds since 1970."""


def _is_equal(token: str, expected: str) -> bool:
    return hmac.compare_digest(token.encode("utf-8", "replace"), expected.encode())


class InsufficientScope(Exception):
    """An OAuth token is valid, but grants none of our scopes, or access to no space."""


class Credentials:
    """Checks the tokens of a server. Methods raise McpMemoryError if they need the store and it cannot be opened."""

    def __init__(self, settings: Settings, memory: Callable[[], Awaitable[Memory]], *, reachable: bool) -> None:
        """Raises InvalidInput for invalid settings.

        If `reachable`, other machines can reach the server, so a token is required.
        """
        self._configured_token = settings.token
        self._claim = settings.oauth_space_claim
        self._owner = ApiClient(who="", name="owner", spaces=(settings.space,), right="operator", is_owner=True)
        self.memory = memory
        self.issuer = oauth.configured_issuer(settings)
        self._requires_token = reachable or bool(self._configured_token) or self.issuer is not None
        self._checked_at = float("-inf")

    async def owner(self) -> ApiClient | None:
        """Return the owner while no token is required, else None."""
        if not self._requires_token and anyio.current_time() - self._checked_at > _RECHECK_SECONDS:
            self._requires_token = bool(await (await self.memory()).tokens())
            self._checked_at = anyio.current_time()
        return None if self._requires_token else self._owner

    async def authenticate(self, token: str) -> ApiClient | None:
        """Return the client of a token; None for a wrong token.

        Raises InsufficientScope for a valid token without rights here, oauth.Unreachable if it cannot be checked.
        """
        if self._configured_token and _is_equal(token, self._configured_token):
            return replace(self._owner, who="owner")
        stored = await (await self.memory()).token_shown(token) if token.startswith("mcm_") else None
        if stored is not None:
            return _client_of(stored)
        if self.issuer is None or token.count(".") != 2:
            return None
        claims = await self.issuer.verify_token(token)
        if claims is None:
            return None
        right, spaces = oauth.token_right(claims), oauth.token_spaces(claims, self._claim)
        if right is None or not spaces:
            raise InsufficientScope
        who = f"oauth {sha256(oauth.token_user(claims).encode()).hexdigest()[:20]}"
        return ApiClient(who=who, name=f"oauth {claims['sub']}", spaces=spaces, right=right, until=int(claims["exp"]))

    async def is_valid(self, client: ApiClient) -> bool:
        """Return whether the token of an admitted client is still valid."""
        if client.until is not None:
            return time.time() < client.until
        if client.token is not None:
            return await (await self.memory()).valid_token(client.token) is not None
        return bool(self._configured_token) or await self.owner() is not None

    # A session of the pages names its credential by a proof, which any server of the memory can check.

    async def secret(self) -> bytes:
        """Return the secret of the memory that signs the sessions of the pages."""
        return await (await self.memory()).secret("sessions of pages")

    async def proof_of(self, client: ApiClient) -> str:
        """Return the proof of a client."""
        if client.token is not None:
            return json.dumps({"token": client.token})
        if client.until is not None:
            return json.dumps({"oauth": asdict(client)})
        return json.dumps({"setting": await self._fingerprint()})

    async def client_of(self, proof: str) -> ApiClient | None:
        """Return the client of a proof that we have signed; None if its token is no longer valid."""
        ((kind, value),) = json.loads(proof).items()
        if kind == "token":
            stored = await (await self.memory()).valid_token(value)
            return None if stored is None else _client_of(stored)
        if kind == "oauth":
            fields: dict[str, Any] = value
            fields["spaces"] = tuple(fields["spaces"])
            client = ApiClient(**fields)
            return client if self.issuer is not None and await self.is_valid(client) else None
        return replace(self._owner, who="owner") if _is_equal(value, await self._fingerprint()) else None

    async def _fingerprint(self) -> str:
        """Return a keyed hash of the setting `token`, whose sessions end when it changes."""
        token = f"token {self._configured_token or ''}"
        return hmac.digest(await self.secret(), token.encode(), "sha256").hex()


def _client_of(token: Token) -> ApiClient:
    return ApiClient(
        who=f"token {token.id}",
        name=f"token {token.id} {token.name}",
        spaces=token.spaces,
        right=token.right,
        is_owner=token.right == "operator",
        token=token.id,
    )


# --- wrong tokens and too many requests ---

_WRONG_A_MINUTE = 20
_MAX_RATE_KEYS = 10_000
_SHARES_A_MINUTE = 20


@dataclass
class _Share:
    """Requests that a server may still admit for a key, and the time until which it does not ask the store for more."""

    left: int = 0
    empty_until: float = 0.0
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class RateLimit:
    """Limits the requests per minute of each key, summed over all servers of a memory.

    To avoid a query for each request, a server reserves a twentieth of the limit at a time in the store.
    """

    def __init__(self, name: str, per_minute: int, memory: Callable[[], Awaitable[Memory]]) -> None:
        """`name` distinguishes the keys of this limit from the keys of other limits."""
        self._name, self._per_minute, self._memory = name, per_minute, memory
        self._share = max(1, per_minute // _SHARES_A_MINUTE)
        self._keys = LRU[str, _Share](_MAX_RATE_KEYS)

    async def take(self, key: str) -> None:
        """Count a request. Raises Rejected if the limit is reached, and if the memory cannot be opened."""
        share = self._keys.get_or_put(key, _Share)
        async with share.lock:  # concurrent requests share an answer of the store
            if not share.left and share.empty_until <= anyio.current_time():
                share.left = await self._more(key)
                share.empty_until = 0.0 if share.left else anyio.current_time() + 60 / self._per_minute
            if share.left:
                share.left -= 1
                return
            seconds = max(1, ceil(share.empty_until - anyio.current_time()))
        raise Rejected(429, f"Too many requests. Try again in {seconds} s.", {"Retry-After": str(seconds)})

    async def _more(self, key: str) -> int:
        try:
            memory = await self._memory()
            return await memory.take_requests(f"{self._name} {key}", count=self._share, a_minute=self._per_minute)
        except McpMemoryError as error:
            raise memory_unavailable(error) from None


def wrong_tokens(memory: Callable[[], Awaitable[Memory]]) -> RateLimit:
    """Return the limit on wrong tokens by address, which requests and the form of the pages share."""
    return RateLimit("wrong token", _WRONG_A_MINUTE, memory)


@dataclass
class Rejected(Exception):
    """A request is rejected, with this response."""

    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    who: str = ""
    """The client in the audit log, if its token is known."""


def counted_address(host: str) -> str:
    """Return the address by which a host is counted; for IPv6 its /64 network, which one host owns."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.version == 4 or address.is_loopback:
        return host
    return str(IPv6Address(address.packed[:8] + bytes(8)))


def memory_unavailable(error: McpMemoryError) -> Rejected:
    logger.warning("requests cannot be authenticated: %s", error)
    return Rejected(503, error.public or "The store cannot be used; the reason is in the log of the server.")


# --- the token of this machine ---

_TOKEN_FILE = "http-token"
_LOCAL_TOKEN = re.compile(r"mcm_local_[\w-]{43}")
_MAX_FILE_BYTES = 1_000
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO


def local_token_file(home: Path) -> Path:
    """Return the path of the machine's token, which may not exist yet.

    Every user and program of a machine can reach its loopback addresses, so clients there need a token too. It is
    created at the first start without another token, printed once, and readable by the owner of the home only. It gives
    the same rights as the setting `token`.
    """
    return home / _TOKEN_FILE


def read_local_token(home: Path) -> str | None:
    """Return the machine's token, None if there is none. If other users could read its file, warn and make it private.

    Raises Refused if the file cannot be used.
    """
    path = local_token_file(home)
    try:
        token = read_regular(path, _MAX_FILE_BYTES).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(
            f"{path} cannot be read ({error.strerror}). Remove it: the next start makes a new token."
        ) from None
    if not _LOCAL_TOKEN.fullmatch(token):
        raise Refused(f"{path} does not contain a token. Remove it: the next start makes a new one.")
    if os.name != "nt" and path.stat().st_mode & _OTHER_USERS:
        logger.warning(
            "%s could be read by other users of this machine. Remove it: the next start makes a new one.", path
        )
        path.chmod(0o600)
    return token


def make_local_token(home: Path) -> str:
    """Create the machine's token and return it, or return the token that another process has just created.

    Raises Refused if it cannot be stored.
    """
    path, token = local_token_file(home), f"mcm_local_{secrets.token_urlsafe(32)}"
    beside = path.with_name(f".{_TOKEN_FILE}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
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
        return read_local_token(home) or token
    except OSError as error:
        raise Refused(
            f"The token of this server cannot be stored in {path} ({error.strerror}). Set MCP_MEMORY_TOKEN to a long "
            "random secret, or start it with --no-token if every user of this machine may use the memory."
        ) from None
    return token


# --- the pages ---


class TokenAuthenticator:
    """Opens the pages at `/ui` with a client's token: for its spaces, with its right, until it ends.

    Implements `ui.sessions.Authenticator`.
    """

    remembered_seconds: int | None = None

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._wrong = wrong_tokens(credentials.memory)

    async def authenticate(self, key: str, address: str) -> Reader | None:
        try:
            client = await self._credentials.authenticate(key)
        except InsufficientScope:
            return None
        except oauth.Unreachable as error:
            logger.warning("a token cannot be checked: %s", error)
            raise StoreUnavailable("Tokens cannot be checked now. Try again.") from None
        if client is None:
            try:
                await self._wrong.take(counted_address(address))
            except Rejected as rejected:
                raise TooManyKeys(int(rejected.headers.get("Retry-After", "60"))) from None
            return None
        return _reader_of(client, await self._credentials.proof_of(client))

    async def resume(self, proof: str) -> Reader | None:
        client = await self._credentials.client_of(proof)
        return None if client is None else _reader_of(client, proof)

    async def secret(self) -> bytes:
        return await self._credentials.secret()

    def sign_ins(self) -> int:
        return 0  # revoking a token ends its sessions

    async def leave(self, proof: str, *, everywhere: bool = False) -> None: ...


def _reader_of(client: ApiClient, proof: str) -> Reader:
    return Reader(
        space=client.spaces[0],
        spaces=client.spaces,
        right=client.right,
        is_owner=client.is_owner,
        who=client.who,
        name=client.name or client.who,
        proof=proof,
    )
