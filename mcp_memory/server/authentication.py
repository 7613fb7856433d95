"""Authentication of everything that is served over HTTP and SSE.

`probes` need none, and the pages at `/ui` have separate sessions, which `token_door` opens.

Requests are answered here, in this order, if their head is too large, their host or origin is not ours, a needed
token is missing or wrong, the space is not the client's, or its rate is exceeded. Admitted requests have a `Grant` in
their scope, and an SDK session can only be used by the client and space that opened it. A stream ends soon after its
token.

A good token is admitted whatever others do from its address. Requests without a good token are counted by address:
after twenty wrong tokens in a minute, or too many requests, the answer is to wait. The answer is the same for an
unknown space and another client's.

A bearer token is that of the setting or of the machine (`local_token`), one of the store, or an OAuth access token. As
long as there is none of them, and only this machine can reach the server (`serve --no-token`), every client is the
owner. Tokens are never deleted, so a server that once required them always does.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TYPE_CHECKING

import anyio
import mcp.types as wire
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.lru import LRU
from mcp_memory.core.rights import Right
from mcp_memory.core.text import one_line
from mcp_memory.server import authorization, oauth
from mcp_memory.server.authorization import GRANT, Grant
from mcp_memory.server.probes import Probes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mcp_memory.core.config import Settings
    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.app import Interface


logger = logging.getLogger(__name__)

SPACE_HEADER = "mcp-memory-space"
_PREFIX = "/space/"  # what an SSE client posts to says which space its stream is of
_MOST_HEAD = 32 * 2**10
_WRONG_A_MINUTE = 20
_AT_ONCE = 256
_BODY_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_LEAVE_SECONDS = 5.0
_PAGES = "/ui"
_NEEDED = "This memory needs its token: send the header `Authorization: Bearer <token>`."


@dataclass
class Rejected(Exception):
    """A request that is not admitted, and the answer to it."""

    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict[str, str])


class AuthenticationMiddleware:
    """ASGI application around `app`, the SDK's."""

    def __init__(
        self,
        app: ASGIApp,
        credentials: Credentials,
        *,
        security: TransportSecuritySettings,
        a_minute: int,
        pages: Interface | None = None,
    ) -> None:
        """`a_minute`: requests of a client and of an address; 0 for as many as they like. `pages` are at `/ui`."""
        self._app = app
        self._pages = pages
        self._credentials = credentials
        self._security = TransportSecurityMiddleware(security)
        self._probes = Probes(credentials.memory)
        memory = credentials.memory
        self._clients = RateLimit("client", a_minute, memory) if a_minute else None
        self._addresses = RateLimit("address", a_minute, memory) if a_minute else None
        self._wrong = wrong_tokens(memory)
        self._at_once = ConcurrencyLimit(_AT_ONCE)
        issuer = credentials.issuer
        routes = oauth.metadata_routes(issuer) if issuer else []
        self._open = Router(routes)
        self._open_paths = {route.path for route in routes}
        self._challenge = 'Bearer realm="mcp-memory"'
        if issuer:
            self._challenge += f', resource_metadata="{oauth.metadata_url(issuer)}"'

    def stop(self) -> None:
        """End what pages wait for, so that the server can stop."""
        if self._pages is not None:
            self._pages.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if (probe := await self._probes.answer(scope)) is not None:
            await probe(scope, receive, send)
            return
        try:
            refused = await self._looked_at(scope)
            if refused is not None:
                await refused(scope, receive, send)
            elif self._pages is not None and f"{scope['path']}/".startswith(f"{_PAGES}/"):
                await self._count(scope)
                await self._pages(scope, receive, send)
            elif scope["path"] in self._open_paths:
                await self._count(scope)
                await self._open(scope, receive, send)
            else:
                await self._let_in(scope, receive, send)
        except Rejected as turned:
            await _refusal(turned)(scope, receive, send)

    # --- who comes in -------------------------------------------------------------------------------

    async def _looked_at(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused whatever its token. Raises Rejected too."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["query_string"]) > _MOST_HEAD:
            raise Rejected(431, "The headers of this request are too large.")
        if not all(
            map(authorization.is_plain, Headers(scope=scope).getlist("host") + Headers(scope=scope).getlist("origin"))
        ):
            raise Rejected(421, "This is no name of a host.")
        return await self._security.validate_request(Request(scope))

    async def _count(self, scope: Scope) -> None:
        """Count a request of an address, where no token says whose it is. Raises Rejected where they are too many."""
        address = _address(scope)
        if self._addresses and not _is_here(address):
            await self._addresses.take(address)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            client = await self._client(scope)
        except McpMemoryError as error:
            raise _unavailable(error) from None
        scope, space = _chosen(scope, client)
        if self._clients and (client.who or not _is_here(_address(scope))):
            await self._clients.take(client.who)
        scope[GRANT] = Grant(who=client.who, space=space, right=client.right, is_owner=client.is_owner)
        # The SDK answers on a session, and takes messages for one, only for the user and subject that opened it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=client.who, scopes=[], subject=space))
        with self._at_once.one(client.who) as may_come:
            if client.who and not may_come:
                raise Rejected(429, f"This token has {_AT_ONCE} requests open already.", {"Retry-After": "5"})
            ended = self._unknown(', error="invalid_token"', "The token of this request has ended.")
            await _GuardedRequest(self._credentials, client, ended).answer(self._app, scope, receive, send)

    async def _client(self, scope: Scope) -> ApiClient:
        shown = _bearer(scope)
        owner = await self._credentials.owner()
        if owner is not None:
            await self._count(scope)
            return owner
        if shown is None:
            await self._count(scope)
            raise self._unknown("")
        try:
            client = await self._credentials.of(shown)
        except oauth.Unreachable as error:
            logger.warning("a token cannot be checked: %s", error)
            raise Rejected(503, "Tokens cannot be checked now. Try again.", {"Retry-After": "10"}) from None
        except InsufficientScope:
            wanted = f'{self._challenge}, error="insufficient_scope", scope="{oauth.SCOPES["read"]}"'
            raise Rejected(403, "This token opens no space here.", {"WWW-Authenticate": wanted}) from None
        if client is None:
            await self._count(scope)
            await self._wrong.take(_address(scope))
            raise self._unknown(', error="invalid_token"')
        return client

    def _unknown(self, why: str, text: str = _NEEDED) -> Rejected:
        # A client asks for what stands here: to forget is for those who asked for it by themselves.
        wanted = f'{why}, scope="{oauth.SCOPES["read"]} {oauth.SCOPES["write"]}"'
        challenge = self._challenge + (wanted if self._credentials.issuer else "")
        return Rejected(401, text, {"WWW-Authenticate": challenge})


def _unavailable(error: McpMemoryError) -> Rejected:
    logger.warning("nobody can be let in: %s", error)
    return Rejected(503, "This memory cannot be opened now. Its log says why.")


def _refusal(turned: Rejected) -> Response:
    """Return an error of JSON-RPC for a request whose id was not read: clients show its text, and no other body's."""
    said = wire.ErrorData(code=wire.INVALID_REQUEST, message=turned.text)
    error = wire.JSONRPCError(jsonrpc="2.0", id=None, error=said)
    return Response(error.model_dump_json(exclude_unset=True), turned.status, turned.headers, "application/json")


def _bearer(scope: Scope) -> str | None:
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, token = given.partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None


def _address(scope: Scope) -> str:
    """Return where a request comes from; of IPv6 the network, as whoever has one address there has all of them."""
    client = scope.get("client")
    return network_of(str(client[0]) if client else "")


def network_of(said: str) -> str:
    """Return the address under which the requests of a host are counted."""
    try:
        address = ip_address(said)
    except ValueError:
        return said
    if address.version == 4 or address.is_loopback:
        return said
    return str(IPv6Address(address.packed[:8] + bytes(8)))


def _is_here(address: str) -> bool:
    """Return whether it is this machine, whose programs share one address, as do all that a proxy on it lets in."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True  # a Unix socket


def _chosen(scope: Scope, client: ApiClient) -> tuple[Scope, str]:
    """Return the space of a request, and its scope as the SDK shall see it. Raises Rejected for another's space."""
    asked = Headers(scope=scope).get(SPACE_HEADER) or QueryParams(scope["query_string"]).get("space")
    path = str(scope["path"])
    if path.startswith(_PREFIX):
        asked, _, rest = path.removeprefix(_PREFIX).partition("/")
        scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
    elif asked and scope["method"] == "GET":
        scope = {**scope, "root_path": f"{_PREFIX}{asked}"}  # from here the SDK makes the address to post to
    else:
        scope = {**scope}
    space = asked or client.spaces[0]
    if space not in client.spaces:
        raise Rejected(
            403, f"{one_line(space, 60)!r} is no space of this token. Its spaces: {', '.join(client.spaces)}."
        )
    return scope, space


# --- while it is here -------------------------------------------------------------------------------


class _GuardedRequest:
    """One request while it is answered: its body comes in time, and its stream does not outlive its token."""

    def __init__(self, credentials: Credentials, client: ApiClient, ended: Rejected) -> None:
        """`ended` is the answer once the token has ended, if nothing was sent yet."""
        self._credentials, self._client, self._token_ended = credentials, client, ended
        self._over = anyio.Event()
        self._late = self._began = self._ended = self._has_body = False

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        deadline = anyio.current_time() + _BODY_SECONDS
        failure: Exception | None = None

        async def heard() -> Message:
            if self._has_body:
                return await self._until_over(receive)
            message: Message = {"type": "http.disconnect"}
            with anyio.move_on_at(deadline) as time:
                message = await receive()
            self._late |= time.cancelled_caught
            self._has_body = self._late or not message.get("more_body", False)
            return message

        async def told(message: Message) -> None:
            if not self._late:
                self._began = True
                self._ended |= message["type"] == "http.response.body" and not message.get("more_body", False)
                await send(message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks.cancel_scope)
            try:
                await app(scope, heard, told)
            except Exception as error:  # noqa: BLE001 - raised again outside of the group, as itself
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None and not self._late:
            raise failure
        await self._close(scope, receive, send)

    async def _until_over(self, receive: Receive) -> Message:
        message: Message = {"type": "http.disconnect"}
        async with anyio.create_task_group() as first:

            async def listen() -> None:
                nonlocal message
                message = await receive()
                first.cancel_scope.cancel()

            first.start_soon(listen)
            await self._over.wait()
            first.cancel_scope.cancel()
        return message

    async def _watch(self, answering: anyio.CancelScope) -> None:
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            try:
                if not await self._credentials.is_good(self._client):
                    break
            except McpMemoryError:
                continue  # whatever is asked for fails of itself
        self._over.set()
        await anyio.sleep(_LEAVE_SECONDS)
        answering.cancel()

    async def _close(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._late and not self._began:
            late = Rejected(408, "The request did not come in time.", {"Connection": "close"})
            await _refusal(late)(scope, receive, send)
        elif self._over.is_set() and not self._began:
            await _refusal(self._token_ended)(scope, receive, send)
        elif self._began and not self._ended and (self._over.is_set() or self._late):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


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
            raise _unavailable(error) from None


def wrong_tokens(memory: Callable[[], Awaitable[Memory]]) -> RateLimit:
    """Return the limit on wrong tokens of an address, which all ways in share."""
    return RateLimit("wrong token", _WRONG_A_MINUTE, memory)


class ConcurrencyLimit:
    """How many requests of each key are being answered, streams included."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = Counter[str]()

    @contextmanager
    def one(self, key: str) -> Generator[bool]:
        """Hold one while the block runs; False where there are as many as there may be, and none is held."""
        if self._held[key] >= self._most:
            yield False
            return
        self._held[key] += 1
        try:
            yield True
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]


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
