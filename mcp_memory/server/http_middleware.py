"""ASGI middleware for everything served over HTTP and SSE: admits or rejects each request.

A request is rejected, in this order, if its head is too large, its Host or Origin is not allowed, a required token is
missing or wrong, the space is not the client's, or its rate is exceeded. Admitted requests have a `Grant` in their
scope. An SDK session can only be used by the client and space that opened it. A stream ends soon after its token.
The pages at `/ui` have separate sessions (`authentication.TokenAuthenticator`).

Requests with a valid token are admitted whatever other clients do from the same address. Other requests are counted by
address. The response is the same for an unknown space and for a space of another client.

Probes of load balancers and orchestrators need no token. `/livez` answers 200 while the process runs. `/readyz` answers
within two seconds: 200 if the store answers a query, has this program's schema and confirms commits, else 503 and the
reason, which the log has in detail. Its body also says if the clock of this machine is wrong. The store is queried at
most once a second, whoever asks. `/metrics` has a token of its own (`scrapes`).
"""

from __future__ import annotations

import logging
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import mcp.types as wire
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Router

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.logs import SafeText
from mcp_memory.core.metrics import Counter
from mcp_memory.core.requests import Request as Rejection
from mcp_memory.core.requests import write_audit
from mcp_memory.core.server_address import PERSONAL_PARAMETER, SPACE_HEADER, SPACE_PARAMETER
from mcp_memory.core.text import one_line
from mcp_memory.server import authorization, oauth
from mcp_memory.server.authentication import (
    ApiClient,
    Credentials,
    InsufficientScope,
    RateLimit,
    Rejected,
    counted_address,
    memory_unavailable,
    wrong_tokens,
)
from mcp_memory.server.authorization import GRANT, Grant
from mcp_memory.server.scrapes import Scrapes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mcp_memory.service.memory import Memory
    from mcp_memory.ui.app import Interface


logger = logging.getLogger(__name__)

_SPACE_PREFIX = "/space/"  # SSE clients post to paths with this prefix and the space of their stream
_MAX_HEAD_BYTES = 32 * 2**10
_MAX_CONCURRENT = 256
_BODY_SECONDS = 60.0
_TOKEN_CHECK_SECONDS = 1.0
_GRACE_SECONDS = 5.0
_PAGES_PATH = "/ui"
_BEARER = {"WWW-Authenticate": 'Bearer realm="mcp-memory metrics"'}
_REJECTED = Counter("mcp_memory_http_rejected_total", "HTTP requests that were rejected, by status.", "status")
_TOKEN_REQUIRED = "This memory needs its token: send the header `Authorization: Bearer <token>`."
_WRONG_TOKEN = "This token is unknown, has ended or was revoked. Ask who runs the server for another."


class AuthenticationMiddleware:
    """ASGI application that authenticates requests to `app`, the SDK's application."""

    def __init__(
        self,
        app: ASGIApp,
        credentials: Credentials,
        *,
        security: TransportSecuritySettings,
        per_minute: int,
        pages: Interface | None = None,
        metrics_token: str | None = None,
    ) -> None:
        """`per_minute` limits the requests of each client and address; 0: unlimited. `pages` are served at `/ui`.

        Metrics are served at `/metrics`, if `metrics_token` is given.
        """
        self._app = app
        self._pages = pages
        self._credentials = credentials
        self._security = security
        self._probes = Probes(credentials.memory)
        self._scrapes = Scrapes(metrics_token, credentials.memory)
        memory = credentials.memory
        self._clients = RateLimit("client", per_minute, memory) if per_minute else None
        self._addresses = RateLimit("address", per_minute, memory) if per_minute else None
        self._wrong = wrong_tokens(memory)
        self._concurrency = ConcurrencyLimit(_MAX_CONCURRENT)
        issuer = credentials.issuer
        routes = oauth.metadata_routes(issuer) if issuer else []
        self._metadata_router = Router(routes)
        self._metadata_paths = {route.path for route in routes}
        self._challenge = 'Bearer realm="mcp-memory"'
        if issuer:
            self._challenge += f', resource_metadata="{oauth.metadata_url(issuer)}"'

    def stop(self) -> None:
        """End the event streams of the pages, so that the server can stop."""
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
            if self._scrapes.is_scrape(scope):
                await (await self._scrape(scope))(scope, receive, send)
                return
            self._reject_early(scope)
            if self._pages is not None and f"{scope['path']}/".startswith(f"{_PAGES_PATH}/"):
                await self._count_address(scope)
                await self._pages(scope, receive, send)
            elif scope["path"] in self._metadata_paths:
                await self._count_address(scope)
                await self._metadata_router(scope, receive, send)
            else:
                await self._admit(scope, receive, send)
        except Rejected as rejected:
            _REJECTED.add(1, str(rejected.status))
            if rejected.status in (401, 403):
                who, outcome = rejected.who or f"address {_address(scope)}", f"rejected {rejected.status}"
                await write_audit(Rejection(verb="enter", who=who, outcome=outcome))
            await _error_response(rejected)(scope, receive, send)

    async def _scrape(self, scope: Scope) -> Response:
        """Return the metrics. Raises Rejected for a wrong token. Asks the store about wrong tokens only."""
        if self._scrapes.admits(_bearer_token(scope)):
            return await self._scrapes.answer()
        await self._wrong.take(_address(scope))
        raise Rejected(401, "The metrics need their token, which is the setting metrics_token.", _BEARER)

    # --- admission -------------------------------------------------------------------------------

    def _reject_early(self, scope: Scope) -> None:
        """Raise Rejected for a request that is rejected whatever its token."""
        size = sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["query_string"])
        if size > _MAX_HEAD_BYTES:
            raise Rejected(431, "The headers of this request are too large.")
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if not all(map(authorization.is_plain_host, hosts + origins)):
            raise Rejected(421, "Invalid Host or Origin header.")
        if self._security.enable_dns_rebinding_protection:
            _require_allowed(421, "host", hosts or [""], self._security.allowed_hosts)
            _require_allowed(403, "origin", origins, self._security.allowed_origins)

    async def _count_address(self, scope: Scope) -> None:
        """Count a request without a valid token by its address, unless that is local. Raises Rejected for too many."""
        address = _address(scope)
        if self._addresses and not _is_local(address):
            await self._addresses.take(address)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            client = await self._authenticate(scope)
        except McpMemoryError as error:
            raise memory_unavailable(error) from None
        scope, space = _choose_space(scope, client)
        if self._clients and (client.who or not _is_local(_address(scope))):
            await self._clients.take(client.who)
        personal = QueryParams(scope["query_string"]).get(PERSONAL_PARAMETER)
        if personal is not None:
            _require_space(client, personal)
        scope[GRANT] = Grant(
            who=client.who,
            name=client.name or client.who,
            space=space,
            personal=None if personal == space else personal,
            right=client.right,
            is_owner=client.is_owner,
        )
        # The SDK accepts and answers messages of a session only for the user and subject that opened it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=client.who, scopes=[], subject=space))
        with self._concurrency.slot(client.who) as is_free:
            if client.who and not is_free:
                raise Rejected(429, f"This token has {_MAX_CONCURRENT} requests open already.", {"Retry-After": "5"})
            ended_answer = self._unauthorized(', error="invalid_token"', "The token of this request has ended.")
            await _GuardedRequest(self._credentials, client, ended_answer).answer(self._app, scope, receive, send)

    async def _authenticate(self, scope: Scope) -> ApiClient:
        owner = await self._credentials.owner()
        if owner is not None:
            await self._count_address(scope)
            return owner
        token = _bearer_token(scope)
        if token is None:
            await self._count_address(scope)
            raise self._unauthorized("")
        try:
            client = await self._credentials.authenticate(token)
        except oauth.Unreachable as error:
            logger.warning("a token cannot be checked: %s", error)
            raise Rejected(503, "Tokens cannot be checked now. Try again.", {"Retry-After": "10"}) from None
        except InsufficientScope:
            challenge = f'{self._challenge}, error="insufficient_scope", scope="{oauth.SCOPES["read"]}"'
            raise Rejected(403, "This token opens no space here.", {"WWW-Authenticate": challenge}) from None
        if client is None:
            await self._count_address(scope)
            await self._wrong.take(_address(scope))
            raise self._unauthorized(', error="invalid_token"', _WRONG_TOKEN)
        return client

    def _unauthorized(self, why: str, text: str = _TOKEN_REQUIRED) -> Rejected:
        challenge = self._challenge
        if self._credentials.issuer:
            # Clients request the scopes named here. The right to forget is left to those who request it themselves.
            challenge += f'{why}, scope="{oauth.SCOPES["read"]} {oauth.SCOPES["write"]}"'
        return Rejected(401, text, {"WWW-Authenticate": challenge})


def _error_response(rejected: Rejected) -> Response:
    """Return a JSON-RPC error without a request id: clients show its text, but no other body."""
    data = wire.ErrorData(code=wire.INVALID_REQUEST, message=rejected.text)
    error = wire.JSONRPCError(jsonrpc="2.0", id=None, error=data)
    return Response(error.model_dump_json(exclude_unset=True), rejected.status, rejected.headers, "application/json")


def _bearer_token(scope: Scope) -> str | None:
    header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, token = header.partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None


def _address(scope: Scope) -> str:
    """Return the address by which a request is counted."""
    client = scope.get("client")
    return counted_address(str(client[0]) if client else "")


def _is_local(address: str) -> bool:
    """Return whether an address is this machine's. All programs and proxied clients of the machine share it."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True  # a Unix socket


def _require_allowed(status: int, what: str, names: list[str], allowed: list[str]) -> None:
    """Raise Rejected, and log it, if a Host or Origin header is not allowed."""
    for name in names:
        if not authorization.is_allowed(name, allowed):
            problem = f"The {what} {one_line(name, 100)!r} is not allowed by MCP_MEMORY_ALLOWED_HOSTS of this server."
            logger.warning("rejected: %s", SafeText(problem))
            raise Rejected(status, f"{problem} Who runs the server can add it.")


def _choose_space(scope: Scope, client: ApiClient) -> tuple[Scope, str]:
    """Return the scope of a request for the SDK, and its space. Raises Rejected if the client lacks that space."""
    requested = Headers(scope=scope).get(SPACE_HEADER) or QueryParams(scope["query_string"]).get(SPACE_PARAMETER)
    path = str(scope["path"])
    if path.startswith(_SPACE_PREFIX):
        requested, _, rest = path.removeprefix(_SPACE_PREFIX).partition("/")
        scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
    elif requested and scope["method"] == "GET":
        scope = {**scope, "root_path": f"{_SPACE_PREFIX}{requested}"}  # the SDK derives the address to post to from it
    else:
        scope = {**scope}
    space = requested or client.spaces[0]
    _require_space(client, space)
    return scope, space


def _require_space(client: ApiClient, space: str) -> None:
    """Raise Rejected if a space is not the client's."""
    if space not in client.spaces:
        text = f"{one_line(space, 60)!r} is not a space of this token. Its spaces: {', '.join(client.spaces)}."
        raise Rejected(403, text, who=client.name or client.who)


# --- an admitted request -------------------------------------------------------------------------------


class _GuardedRequest:
    """Runs a request with two limits: its body must arrive in time, and its stream ends with the token."""

    def __init__(self, credentials: Credentials, client: ApiClient, ended_answer: Rejected) -> None:
        """`ended_answer` is the response if the token ends before anything was sent."""
        self._credentials, self._client, self._ended_answer = credentials, client, ended_answer
        self._ending = anyio.Event()
        self._timed_out = self._response_started = self._response_ended = self._has_body = False

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        deadline = anyio.current_time() + _BODY_SECONDS
        failure: Exception | None = None

        async def guarded_receive() -> Message:
            if self._has_body:
                return await self._until_over(receive)
            message: Message = {"type": "http.disconnect"}
            with anyio.move_on_at(deadline) as time:
                message = await receive()
            self._timed_out |= time.cancelled_caught
            self._has_body = self._timed_out or not message.get("more_body", False)
            return message

        async def guarded_send(message: Message) -> None:
            if not self._timed_out:
                self._response_started = True
                self._response_ended |= message["type"] == "http.response.body" and not message.get("more_body", False)
                await send(message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks.cancel_scope)
            try:
                await app(scope, guarded_receive, guarded_send)
            except Exception as error:  # noqa: BLE001 - raised again outside of the group, unwrapped
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None and not self._timed_out:
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
            await self._ending.wait()
            first.cancel_scope.cancel()
        return message

    async def _watch(self, answering: anyio.CancelScope) -> None:
        while True:
            await anyio.sleep(_TOKEN_CHECK_SECONDS)
            try:
                if not await self._credentials.is_valid(self._client):
                    break
            except McpMemoryError:
                continue  # the request itself fails too
        self._ending.set()
        await anyio.sleep(_GRACE_SECONDS)
        answering.cancel()

    async def _close(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._timed_out and not self._response_started:
            timeout = Rejected(408, "The request took too long.", {"Connection": "close"})
            await _error_response(timeout)(scope, receive, send)
        elif self._ending.is_set() and not self._response_started:
            await _error_response(self._ended_answer)(scope, receive, send)
        elif self._response_started and not self._response_ended and (self._ending.is_set() or self._timed_out):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class ConcurrencyLimit:
    """Limits the concurrent requests of each key, streams included."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open_requests = Counts[str]()

    @contextmanager
    def slot(self, key: str) -> Generator[bool]:
        """Occupy a slot while the block runs, and yield True; yield False if none is free."""
        if self._open_requests[key] >= self._most:
            yield False
            return
        self._open_requests[key] += 1
        try:
            yield True
        finally:
            self._open_requests[key] -= 1
            if not self._open_requests[key]:
                del self._open_requests[key]


# --- probes ---

_LIVE, _READY = "/livez", "/readyz"
_READY_CACHE_SECONDS = 1.0
_READY_SECONDS = 1.9  # a load balancer waits two
_IN_LOG = "The store cannot be used; the reason is in the log of the server."
_NO_ANSWER = "The store did not answer within 2 s."


class Probes:
    def __init__(self, memory: Callable[[], Awaitable[Memory]]) -> None:
        self._memory = memory
        self._lock = anyio.Lock()
        self._asked_at = float("-inf")
        self._answer = _Readiness()

    async def answer(self, scope: Scope) -> Response | None:
        """Return the response to a probe; None for other requests."""
        if scope["path"] not in (_LIVE, _READY) or scope["method"] not in ("GET", "HEAD"):
            return None
        found = await self._readiness() if scope["path"] == _READY else _Readiness()
        status = 200 if found.is_ready else 503
        return PlainTextResponse(found.text, status_code=status, headers={"Cache-Control": "no-store"})

    async def _readiness(self) -> _Readiness:
        async with self._lock:
            if anyio.current_time() - self._asked_at > _READY_CACHE_SECONDS:
                before, self._answer = self._answer, await self._ask()
                self._asked_at = anyio.current_time()
                if self._answer != before:
                    self._answer.log()
            return self._answer

    async def _ask(self) -> _Readiness:
        with anyio.move_on_after(_READY_SECONDS):
            try:
                memory = await self._memory()
                reason = await memory.not_ready()
            except McpMemoryError as error:
                return _Readiness(is_ready=False, text=error.public or _IN_LOG, details=str(error))
            text = reason or "\n".join(memory.warnings())
            return _Readiness(is_ready=reason is None, text=text, details=text)
        return _Readiness(is_ready=False, text=_NO_ANSWER, details=_NO_ANSWER)


@dataclass(frozen=True, slots=True)
class _Readiness:
    """Whether the store can be used. `text` is shown to anybody, `details` are for the log."""

    is_ready: bool = True
    text: str = ""
    details: str = ""

    def log(self) -> None:
        if not self.is_ready:
            logger.warning("not ready: %s", SafeText(self.details))
        elif self.details:
            logger.warning("ready, with a problem: %s", SafeText(self.details))
        else:
            logger.warning("ready")
