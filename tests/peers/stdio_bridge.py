"""Puts a server that speaks on standard input and output on HTTP, so that the conformance suites can reach it.

    python stdio_bridge.py COMMAND ARGS…

HTTP itself (headers, sessions, streams) is the SDK's; only where it would hand a message to a server object, the
message goes to the command's process instead, as it is: one process for each session of the handshake generation,
one for all requests of the other. What a stdio server says does not tell which request it belongs to; a progress
token or the only open request does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp.server._streamable_http_modern as modern
import mcp.server.streamable_http_manager as handshake
import uvicorn
from event_store import MemoryEventStore
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import METHOD_NOT_FOUND, JSONRPCRequest, jsonrpc_message_adapter
from starlette.applications import Starlette
from starlette.routing import Route

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
COMMAND = sys.argv[1:]


class Pipe:
    """The process, and its messages."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def send(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def messages(self) -> AsyncIterator[Any]:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            yield json.loads(line)


@asynccontextmanager
async def piped() -> AsyncIterator[Pipe]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe, limit=2**26)
    try:
        yield Pipe(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with anyio.move_on_after(3, shield=True):
            await process.wait()
        if process.returncode is None:
            process.kill()


def token_of(params: Any) -> Any:
    return ((params or {}).get("_meta") or {}).get("progressToken")


# --- sessions ---------------------------------------------------------------------------------------


async def serve_session(_app: Any, read: Any, write: Any, **_: Any) -> None:
    """Stand in for the SDK's loop over the messages of a session."""
    open_requests: dict[Any, Any] = {}

    async def from_client(pipe: Pipe) -> None:
        with suppress(anyio.ClosedResourceError):  # the session was ended
            async for incoming in read:
                message = incoming.message
                if isinstance(message, JSONRPCRequest):
                    open_requests[message.id] = token_of(message.params)
                pipe.send(message.model_dump(by_alias=True, mode="json", exclude_unset=True))
        pipe.close()

    async with piped() as pipe, anyio.create_task_group() as tasks:
        tasks.start_soon(from_client, pipe)
        async for message in pipe.messages():
            if "method" in message:
                token = (message.get("params") or {}).get("progressToken")
                related = next((id for id, its in open_requests.items() if its is not None and its == token), None)
                if related is None and len(open_requests) == 1:
                    (related,) = open_requests
                about = ServerMessageMetadata(related_request_id=related) if related is not None else None
            else:
                open_requests.pop(message["id"], None)
                about = None
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await write.send(SessionMessage(jsonrpc_message_adapter.validate_python(message, by_name=False), about))
        tasks.cancel_scope.cancel()


# --- single requests --------------------------------------------------------------------------------


class Shared:
    """The one process of the generation without sessions; each request gets an id of its own there."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[int, tuple[Any, Any, asyncio.Future[Any]]] = {}
        self.pipe: Pipe

    async def serve(self) -> None:
        async for message in self.pipe.messages():
            if "method" in message:
                await self._tell(message["method"], message.get("params") or {})
            elif message["id"] in self._open:
                _, _, answer = self._open.pop(message["id"])
                if not answer.done():
                    answer.set_result(message)

    async def _tell(self, method: str, params: Any) -> None:
        subscription = (params.get("_meta") or {}).get(SUBSCRIPTION)
        for id, (request, token, _) in reversed(self._open.items()):
            if id == subscription:
                params["_meta"][SUBSCRIPTION] = request.request_id
                await request.notify(method, params)
                return
            if subscription is None and (token == params.get("progressToken") or "progressToken" not in params):
                await request.notify(method, params)
                return

    async def request(self, _app: Any, request: Any, method: str, params: Any, **_: Any) -> Any:
        """Stand in for the SDK's dispatch of a single request."""
        if method == "initialize":
            raise MCPError(METHOD_NOT_FOUND, "This generation has no handshake.")
        self._count += 1
        id = self._count
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[id] = request, token_of(params), answer
        self.pipe.send({"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params}))
        try:
            message = await answer
        except BaseException:
            self._open.pop(id, None)
            self.pipe.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            raise
        if "error" in message:
            raise MCPError(message["error"]["code"], message["error"]["message"], message["error"].get("data"))
        meta = message["result"].get("_meta") or {}
        if SUBSCRIPTION in meta:
            meta[SUBSCRIPTION] = request.request_id
        return message["result"]


class App:
    """What the session manager wants of a server object."""

    get_tool_input_schema = None

    def __init__(self) -> None:
        self.shared = Shared()

    def get_request_handler(self, method: str) -> object:
        return method

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        async with piped() as self.shared.pipe, anyio.create_task_group() as tasks:
            tasks.start_soon(self.shared.serve)
            yield
            tasks.cancel_scope.cancel()


async def main() -> None:
    app = App()
    handshake.serve_loop = serve_session  # type: ignore[assignment]
    modern.serve_one = app.shared.request  # type: ignore[assignment]
    names = ["127.0.0.1:*", "localhost:*"]
    manager = StreamableHTTPSessionManager(
        app,  # type: ignore[arg-type]
        event_store=MemoryEventStore(),
        retry_interval=100,
        security_settings=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    asgi = Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager))], lifespan=lambda _: manager.run())
    server = uvicorn.Server(uvicorn.Config(asgi, port=0, log_level="warning", timeout_graceful_shutdown=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110
            await anyio.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(f"the bridge listens on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)


if __name__ == "__main__":
    anyio.run(main)
