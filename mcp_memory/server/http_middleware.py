"""ASGI middleware around everything served over HTTP and SSE: it admits or rejects each request.

A request is rejected, in this order, if its head is too large, its host or origin is not ours, a required token is
missing or wrong, the space is not the client's, or its rate is exceeded. Admitted requests have a `Grant` in
their scope, and an SDK session can only be used by the client and space that opened it. A stream ends soon after its
token. The pages at `/ui` have separate sessions (`authentication.TokenDoor`).

A good token is admitted whatever others do from its address. Requests without a good token are counted by address.
The answer is the same for an unknown space and another client's.

Probes of load balancers and orchestrators need no token and learn nothing else. `/livez` answers 200 as long as the
process does. `/readyz` answers 200 if the store answers a query and has this program's schema, else 503; the reason is
in the log. The store is asked at most once a second, whoever asks.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from ipaddress import ip_address
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
from mcp_memory.core.text import one_line
from mcp_memory.server import authorization, oauth
from mcp_memory.server.authentication import (
    ApiClient,
    Credentials,
    InsufficientScope,
    RateLimit,
    Rejected,
    network_of,
    unavailable,
    wrong_tokens,
)
from mcp_memory.server.authorization import GRANT, Grant

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.app import Interface


logger = logging.getLogger(__name__)

SPACE_HEADER = "mcp-memory-space"
_PREFIX = "/space/"  # what an SSE client posts to says which space its stream is of
_MOST_HEAD = 32 * 2**10
_AT_ONCE = 256
_BODY_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_LEAVE_SECONDS = 5.0
_PAGES = "/ui"
_NEEDED = "This memory needs its token: send the header `Authorization: Bearer <token>`."


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
            raise unavailable(error) from None
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


# --- probes ---

_LIVE, _READY = "/livez", "/readyz"
_ASKED_S = 1.0


class Probes:
    """The probes of one server."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]]) -> None:
        self._memory = memory
        self._lock = anyio.Lock()
        self._asked = float("-inf")
        self._is_ready = False

    async def answer(self, scope: Scope) -> Response | None:
        """Return the answer to a probe; None for other requests."""
        if scope["path"] not in (_LIVE, _READY) or scope["method"] not in ("GET", "HEAD"):
            return None
        is_good = scope["path"] == _LIVE or await self._ready()
        return Response(status_code=200 if is_good else 503, headers={"Cache-Control": "no-store"})

    async def _ready(self) -> bool:
        async with self._lock:
            if anyio.current_time() - self._asked > _ASKED_S:
                self._is_ready = await self._ask()
                self._asked = anyio.current_time()
            return self._is_ready

    async def _ask(self) -> bool:
        try:
            reason = await (await self._memory()).not_ready()
        except McpMemoryError as error:
            reason = str(error)
        if reason is not None:
            logger.warning("not ready: %s", reason)
        return reason is None
